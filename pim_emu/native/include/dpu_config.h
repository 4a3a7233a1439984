/* Programs include this for types; resetting and configuring ranks has no use in the emulator. */
#ifndef DPU_CONFIG_H
#define DPU_CONFIG_H

#include <dpu_description.h>
#include <dpu_error.h>
#include <dpu_types.h>

#endif
