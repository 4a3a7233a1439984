/* Pasting and quoting of expanded arguments; repetition for each thread of the hardware. */
#ifndef DPU_MACRO_UTILS_H
#define DPU_MACRO_UTILS_H

#include <dpu_characteristics.h>

#define __STR_OF_TOKENS(x) #x
#define __STR(x) __STR_OF_TOKENS(x)
#define __CONCAT_TOKENS(x, y) x##y
#define __CONCAT(x, y) __CONCAT_TOKENS(x, y)

#define __FOR_EACH_THREAD(x)                                                                      \
    x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9) x(10) x(11) x(12) x(13) x(14) x(15) x(16)    \
    x(17) x(18) x(19) x(20) x(21) x(22) x(23)

#endif
