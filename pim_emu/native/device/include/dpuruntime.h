/* Hints to the compiler. The variables of the vendor's run time have no counterpart here. */
#ifndef DPU_DPURUNTIME_H
#define DPU_DPURUNTIME_H

#include <built_ins.h>
#include <dpuconst.h>
#include <dpufault.h>
#include <macro_utils.h>
#include <stdint.h>

#define likely(x) __builtin_expect((x), 1)
#define unlikely(x) __builtin_expect((x), 0)
#define unreachable() __builtin_unreachable()

#define count_leading_zeros(x) __builtin_clz(x)
#define count_population(x) __builtin_popcount(x)

#endif
