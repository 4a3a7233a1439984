/* Helpers of macros that take an index or none. */
#ifndef DPU_MACRO_UTILS_H
#define DPU_MACRO_UTILS_H

#define PIM_EMU_PASTE_(a, b) a##b
#define PIM_EMU_PASTE(a, b) PIM_EMU_PASTE_(a, b)
#define PIM_EMU_TEXT_(a) #a
#define PIM_EMU_TEXT(a) PIM_EMU_TEXT_(a)
#define PIM_EMU_FOURTH(a, b, c, d, ...) d
/* Nested loops have iterators of different names, so that none hides another. */
#define PIM_EMU_ITERATOR(kind) PIM_EMU_PASTE(kind##_iterator_of_line_, __LINE__)

#endif
