/* What only the emulator can tell. Cycles and seconds are modelled, never measured. */
#ifndef PIM_EMU_H
#define PIM_EMU_H

#include <dpu_error.h>
#include <dpu_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of the last launch of a DPU; sums are over tasklets. */
struct pim_emu_counters {
    uint64_t cycles, instructions;
    uint64_t dma_reads, dma_read_bytes, dma_writes, dma_write_bytes;
    uint64_t dma_cycles; /* in which the DMA engine was busy */
    uint32_t heap_bytes; /* most WRAM heap in use */
};

/* Of an allocated set since its allocation or the last reset. */
struct pim_emu_set_counters {
    uint64_t bytes_to_dpus;   /* each DPU its own data */
    uint64_t bytes_from_dpus;
    uint64_t broadcast_bytes; /* delivered: of each DPU that got them */
    uint64_t launches;
    uint64_t slowest_cycles;  /* sum over launches of the slowest DPU */
    double transfer_seconds;  /* ranks one after the other */
    double launch_seconds;    /* slowest_cycles at the machine's clock */
};

/* A set, rank or DPU stands for the allocated set that it belongs to. */
dpu_error_t pim_emu_get_set_counters(struct dpu_set_t set, struct pim_emu_set_counters *counters);
dpu_error_t pim_emu_reset_set_counters(struct dpu_set_t set);
dpu_error_t pim_emu_get_counters(struct dpu_set_t dpu, struct pim_emu_counters *counters);
/* Of one DPU: the name of its fault and what happened where; both "" if it is not in fault. They
 * stay valid until the DPU is launched or loaded again. */
dpu_error_t pim_emu_get_fault(struct dpu_set_t dpu, const char **name, const char **message);
/* What the calling thread was last told on stderr about a call, since it last took it; or "". */
void pim_emu_take_complaint(char *text, size_t bytes);
/* For launches that begin later: "checks", "strict_dma", "random" (schedule), "seed",
 * "timeout_seconds", "quiet". */
dpu_error_t pim_emu_set(const char *name, double value);
dpu_error_t pim_emu_get_machine(struct dpu_set_t set, const char **name);
/* A constant of the set's machine by its name in the machine's file, e.g. "mram_bytes", "clock_hz".
 * DPU_ERR_UNKNOWN_SYMBOL: there is none. */
dpu_error_t pim_emu_get_machine_fact(struct dpu_set_t set, const char *name, double *value);

#ifdef __cplusplus
}
#endif
#endif
