/* The engine: machines, DPUs with their memories, programs, and running them. The host interface
 * (host/) is written on this; nothing here knows of sets, symbols by name of a set, or queues. */
#ifndef EMU_ENGINE_H
#define EMU_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../device/abi.h"

/* Sizes, limits and constants of the cost model; the table is generated from machines/ *.toml. */
struct emu_machine {
    const char *name;
    uint32_t ranks, dpus_per_rank, max_tasklets, pipeline_reissue;
    uint32_t mram_bytes, wram_bytes, iram_instructions;
    uint32_t dma_max_bytes, dma_min_bytes, dma_alignment_bytes;
    double clock_hz, dma_read_alpha, dma_write_alpha, dma_cycles_per_byte;
    double random_read_bandwidth;
    double to_dpu_bandwidth, from_dpu_bandwidth, to_rank_bandwidth, from_rank_bandwidth;
    double broadcast_bandwidth;
};
/* NULL: the default. Returns NULL where the name is unknown. */
const struct emu_machine *emu_find_machine(const char *name);

/* --- Programs: parsed once, shared and counted by the DPUs that hold them. --- */
enum emu_memory { EMU_IRAM, EMU_WRAM, EMU_MRAM };
struct emu_symbol {
    enum emu_memory memory;
    uint32_t offset; /* from the start of that memory */
    uint32_t bytes;
};
enum emu_load_status {
    EMU_LOADED,
    EMU_NOT_A_PROGRAM,      /* not an ELF file made by the emulator's compiler */
    EMU_TOO_MANY_TASKLETS,
    EMU_DOES_NOT_FIT,       /* WRAM, MRAM */
    EMU_OUT_OF_MEMORY,
};
struct emu_program;
/* `elf` is copied. `name` is for messages (a path, or "(memory)"). A message that explains a failure
 * goes to stderr through emu_complain. The program starts with one reference. */
enum emu_load_status emu_open_program(const void *elf, size_t bytes, const char *name,
                                      const struct emu_machine *machine,
                                      struct emu_program **program);
void emu_retain_program(struct emu_program *program);
void emu_release_program(struct emu_program *program);
const struct emu_info *emu_program_info(const struct emu_program *program);
bool emu_find_symbol(const struct emu_program *program, const char *name,
                     struct emu_symbol *symbol);

/* --- DPUs --- */
enum emu_state { EMU_EMPTY, EMU_IDLE, EMU_RUNNING, EMU_DONE, EMU_FAULTED };

/* Of the last launch; the sums are over tasklets. Modelled, where cycles are concerned. */
struct emu_counters {
    uint64_t cycles, instructions;
    uint64_t dma_reads, dma_read_bytes, dma_writes, dma_write_bytes;
    uint64_t dma_cycles; /* in which the DMA engine was busy */
    uint32_t heap_bytes; /* most WRAM heap in use */
};

struct emu_dpu;
struct emu_rank;

/* Memory is mapped lazily: nothing of a DPU is resident until it is used. NULL: out of memory. */
struct emu_rank *emu_create_rank(const struct emu_machine *machine, uint32_t index);
void emu_destroy_rank(struct emu_rank *rank); /* no DPU of it may be running */
struct emu_dpu *emu_rank_dpu(struct emu_rank *rank, uint32_t index); /* < dpus_per_rank */

/* Replace the DPU's program: WRAM and the initialised MRAM variables as the program has them, all
 * other MRAM as it was. The DPU holds a reference. The DPU must not be running. */
enum emu_load_status emu_load(struct emu_dpu *dpu, struct emu_program *program);
struct emu_program *emu_dpu_program(const struct emu_dpu *dpu); /* NULL: none */

uint8_t *emu_mram(struct emu_dpu *dpu); /* machine->mram_bytes of them, to be read */
void emu_write_mram(struct emu_dpu *dpu, uint32_t offset, const void *from, size_t bytes);
/* Copy to or from WRAM; while the DPU runs, its live WRAM. The range must lie in WRAM. */
void emu_write_wram(struct emu_dpu *dpu, uint32_t offset, const void *from, size_t bytes);
void emu_read_wram(struct emu_dpu *dpu, uint32_t offset, void *to, size_t bytes);

enum emu_state emu_dpu_state(const struct emu_dpu *dpu); /* safe from any thread */
const struct emu_counters *emu_dpu_counters(const struct emu_dpu *dpu);
/* After a fault: its kind, and a message with the fault's name, DPU, tasklet and line. */
enum emu_fault_kind emu_dpu_fault(const struct emu_dpu *dpu, const char **message);
const char *emu_fault_name(enum emu_fault_kind kind);
/* Text printed by the last launch (a NUL follows it). Kept until the next launch or load. */
const char *emu_dpu_log(const struct emu_dpu *dpu, size_t *bytes, bool *truncated);

/* Run programs on `count` DPUs over the host's cores and return when all have ended. Many threads
 * may do so at a time, for different DPUs. Each DPU must hold a program and not be running.
 * Returns how many faulted, or -1 if there is no memory or thread to run them. */
int emu_run(struct emu_dpu **dpus, size_t count);

/* Checks and scheduling. Read from the environment at the first use, once:
 * PIM_EMU_CHECKS, PIM_EMU_DMA, PIM_EMU_SCHEDULE, PIM_EMU_SEED, PIM_EMU_WORKERS, PIM_EMU_TIMEOUT,
 * PIM_EMU_QUIET.
 * Programs that embed the emulator may change what is returned; it holds for later launches. */
enum emu_schedule { EMU_IN_TIME, EMU_AT_RANDOM };
struct emu_settings {
    bool checks;            /* of barriers */
    bool strict_dma;        /* transfers that the documentation forbids are faults */
    enum emu_schedule schedule;
    uint64_t seed;
    uint32_t workers;
    double timeout_seconds; /* of a tasklet that calls nothing; 0: none */
    bool quiet;             /* no complaints on stderr */
};
struct emu_settings *emu_settings(void);

/* A line on stderr that begins with "pim_emu: ", unless quiet. */
void emu_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The calling thread's last one since it was last taken, or "". */
void emu_take_complaint(char *text, size_t bytes);

#endif
