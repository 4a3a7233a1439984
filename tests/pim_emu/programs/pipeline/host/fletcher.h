#ifndef FLETCHER_H
#define FLETCHER_H

#include "common.h"

checksum_t checksum_host(const uint8_t *bytes);

#endif
