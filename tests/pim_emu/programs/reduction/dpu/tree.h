#ifndef TREE_H
#define TREE_H

#include "common.h"

/* Add up one value of each tasklet. All tasklets call it; tasklet 0 gets the sum. */
T tree_reduce(unsigned int tasklet_id, T value);

#endif
