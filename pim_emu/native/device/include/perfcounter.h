/* The performance counter. Here its cycles and instructions are modelled, not measured. */
#ifndef DPU_PERFCOUNTER_H
#define DPU_PERFCOUNTER_H

#include <stdbool.h>
#include <stdint.h>

typedef uint64_t perfcounter_t; /* a multiple of 16 */

typedef enum _perfcounter_config_t {
    COUNT_SAME = 0,
    COUNT_CYCLES = 1,
    COUNT_INSTRUCTIONS = 2, /* of all tasklets */
    COUNT_NOTHING = 3,
    COUNT_DISABLE_BOTH = 6, /* these two are a fault on DPUs of version v1A */
    COUNT_ENABLE_BOTH = 7,
} perfcounter_config_t;

extern const volatile uint32_t CLOCKS_PER_SEC; /* cycles in a second of the DPU */

/* Choose what is counted. Returns the counter's value: 0 if it was reset. */
perfcounter_t perfcounter_config(perfcounter_config_t config, bool reset_value);
perfcounter_t perfcounter_get(void);

#ifdef __dpu_v1B__
typedef struct {
    perfcounter_t cycles;
    perfcounter_t instr;
} perfcounter_pair_t;
#define perfcounter_config __emu_perfcounter_config_v1B
#define perfcounter_get_both __emu_perfcounter_get_both
perfcounter_t perfcounter_config(perfcounter_config_t config, bool reset_value);
perfcounter_pair_t perfcounter_get_both(bool should_reset);
#endif

#endif
