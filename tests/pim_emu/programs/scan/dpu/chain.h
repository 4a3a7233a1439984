#ifndef CHAIN_H
#define CHAIN_H

#include "common.h"

/* Pass a sum from tasklet to tasklet; returns that of the tasklets before. All tasklets call it. */
T handshake_chain(unsigned int tasklet_id, T value);

#endif
