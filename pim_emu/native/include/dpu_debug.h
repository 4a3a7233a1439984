/* Programs include this for types; the emulator reports faults by message (see pim_emu.h). */
#ifndef DPU_DEBUG_H
#define DPU_DEBUG_H

#include <dpu_error.h>
#include <dpu_types.h>

#endif
