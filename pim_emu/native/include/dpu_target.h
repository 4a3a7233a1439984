/* Kinds of DPUs that a profile can ask for. All are emulated here. */
#ifndef DPU_TARGET_H
#define DPU_TARGET_H

typedef enum _dpu_type_t {
    FUNCTIONAL_SIMULATOR = 0,
    CYCLE_ACCURATE_SIMULATOR = 1,
    RTL_SIMULATOR = 2,
    HW = 3,
    BACKUP_SPI = 4,
    SCENARIO = 5,
    NB_OF_DPU_TYPES = 6
} dpu_type_t;

#endif
