// The headers in C that the host shares with DPU programs and the other drivers of training.

#ifndef ACCEL_RL_UPMEM_COMMON_HPP
#define ACCEL_RL_UPMEM_COMMON_HPP

#define _Static_assert static_assert
#define ARL_NUMERICS ARL_FP32  // only for names that do not depend on it

extern "C" {
#include "../interface.h"
#include "../match.h"
#include "../owned.h"
#include "order.h"
#include "record.h"
#include "rule.h"
}

#undef ARL_NUMERICS
#undef _Static_assert

#endif
