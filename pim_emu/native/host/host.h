/* What the parts of the host interface share.
 *
 * One lock guards the registry of ranks and all queues; work itself is done outside it, by whoever
 * has made the ranks busy. Handles that programs hold are numbers that look like pointers (slot and
 * generation of a rank, see handles.c), so a stale one is recognised and none is dereferenced. */
#ifndef HOST_H
#define HOST_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <dpu.h>
#include <dpu_management.h>
#include <dpu_program.h>
#include <pim_emu.h>

#include "../engine/engine.h"

#define HOST_MOST_RANKS 1024u     /* allocated at a time */
#define HOST_MRAM_AT 0x08000000u /* of the addresses in struct dpu_symbol_t */
#define HOST_IRAM_AT 0x80000000u

extern pthread_mutex_t host_lock;

/* A message on stderr that says what is wrong with a call. Returns the code. */
dpu_error_t host_refuse(dpu_error_t code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* --- Programs: program.c --- */
struct program {
    struct dpu_program_t shown;
    struct emu_program *engine;
    const struct emu_machine *machine;
    uint32_t references; /* DPUs that hold it */
    struct program *next;
};
void host_drop_program(struct program *program); /* one reference; under the lock */

/* --- Ranks and sets of them --- */
/* What dpu_prepare_xfer gave. `used`: a transfer has used the buffer and kept it. */
struct prepared {
    void *buffer;
    bool used;
};

struct member {
    struct emu_dpu *engine;
    struct program *program;
    struct prepared prepared[2]; /* by others, and by a callback that holds the rank */
};

/* Ranks that were allocated together. */
struct allocation {
    const struct emu_machine *machine;
    struct dpu_rank_t **handles; /* with a null after them; never freed, see handles.c */
    uint32_t nr_ranks;
    struct rank **ranks;
    bool scatter;         /* of the profile */
    uint32_t most_blocks; /* of a scattered transfer, for each DPU */
    bool closing;         /* dpu_free waits */
    uint32_t callbacks;   /* running in threads of their own */
    bool other_clocks;    /* of traced, fast or random launches */
    struct pim_emu_set_counters counters;
};

struct rank {
    uint32_t generation;
    struct allocation *owner; /* NULL: free */
    const struct emu_machine *machine;
    uint32_t index;     /* in its machine */
    uint32_t position;  /* in its allocation */
    uint32_t first_dpu; /* as well */
    uint32_t nr_dpus;   /* enabled: the first ones */
    struct emu_rank *engine;
    struct member *members; /* dpus_per_rank of them */
    struct _dpu_description_t description;
    /* The queue: see queue.c. */
    struct entry *head, *tail;
    uint64_t queued, started; /* numbers of the last entry */
    bool busy;      /* somebody works with the rank */
    bool launching; /* and it is a launch */
    bool held;      /* and it is a callback, in the thread `holder` */
    pthread_t holder;
    uint32_t pins; /* calls under way; the rank stays allocated */
    pthread_cond_t changed;
    pthread_t thread;
    bool has_thread, stop;
    pid_t thread_owner; /* the process that has it */
    dpu_error_t error; /* of an asynchronous job; dpu_sync takes it */
    uint32_t error_kind;
};

/* What a set stands for: ranks, or one DPU of one rank. */
struct scope {
    const struct emu_machine *machine;
    uint32_t nr_ranks;
    int only; /* index of the DPU, or -1: all */
    struct rank *ranks[HOST_MOST_RANKS];
};

/* Resolve a set and pin its ranks, until host_leave. */
dpu_error_t host_enter(struct dpu_set_t set, struct scope *scope);
void host_leave(const struct scope *scope);
uint32_t host_first(const struct scope *scope);                           /* DPU of a rank */
uint32_t host_end(const struct scope *scope, const struct rank *rank);
uint32_t host_count_dpus(const struct scope *scope);

struct dpu_rank_t *host_rank_handle(const struct rank *rank);
struct dpu_t *host_dpu_handle(const struct rank *rank, uint32_t dpu);
/* NULL: stale. Under the lock. */
struct rank *host_rank_of(const struct dpu_rank_t *handle);
struct rank *host_dpu_of(const struct dpu_t *handle, uint32_t *dpu);
struct rank *host_slot(uint32_t slot);
struct dpu_rank_t **host_make_handles(uint32_t count); /* NULL: no memory */

/* --- Profiles: profile.c --- */
struct profile {
    const struct emu_machine *machine;
    bool dispatch, scatter;
    uint32_t most_blocks; /* 0: as many as the set has DPUs */
};
bool host_parse_profile(const char *text, struct profile *profile);
void host_describe(const struct emu_machine *machine, dpu_description_t description);

/* --- Jobs: queue.c --- */
enum job_kind { JOB_LAUNCH = 1, JOB_TRANSFER, JOB_SCATTER, JOB_CALLBACK };
const char *host_job_name(uint32_t kind);

/* Work on the ranks of a scope, here or by the threads of the ranks. */
struct job {
    enum job_kind kind;
    dpu_error_t (*run)(struct job *job, struct rank *rank, uint32_t position);
    /* Instead of `run`, where an earlier job of the rank failed. May be NULL. */
    void (*skip)(struct job *job, struct rank *rank);
    void (*end)(struct job *job); /* all ranks are done: free it */
    uint32_t pending;
    struct entry *entries;
};

enum host_errors { HOST_STOP_AT_ERROR, HOST_KEEP_ERROR, HOST_TAKE_ERROR };
/* Wait until the ranks are idle and make them busy; ranks that a callback of this thread holds are
 * as they should be. The error of an earlier job is returned with DPU_ERR_ASYNC_JOBS and the ranks
 * are not acquired (STOP), ignored (KEEP), or returned plainly and cleared (TAKE: acquired). */
dpu_error_t host_acquire(const struct scope *scope, enum host_errors errors);
void host_release(const struct scope *scope);
/* Run on each rank in turn, in this thread, when they are idle. */
dpu_error_t host_do(const struct scope *scope, struct job *job);
/* Run on each rank in its thread, after what is queued there. The job is on the heap; it is ended
 * in any case. */
dpu_error_t host_enqueue(const struct scope *scope, struct job *job);
/* As host_do, but without waiting for a launch that runs. */
dpu_error_t host_do_beside(const struct scope *scope, struct job *job);
/* Under the lock, as the rest. */
bool host_holds(const struct rank *rank); /* a callback in this thread */
void host_fail(struct rank *rank, uint32_t kind, dpu_error_t error);
dpu_error_t host_failure(const struct rank *rank); /* with DPU_ERR_ASYNC_JOBS */
bool host_is_idle(const struct rank *rank);
void host_stop_thread(struct rank *rank);

/* --- Transfers --- */
/* Of the program that all DPUs of the scope hold. */
dpu_error_t host_symbol_of_set(const struct scope *scope, const char *name,
                               struct dpu_symbol_t *symbol);
/* A symbol's part in the memory that holds it. */
struct range {
    bool mram;
    uint32_t offset;
    size_t bytes;
};
dpu_error_t host_check_range(const struct scope *scope, const char *name,
                             struct dpu_symbol_t symbol, uint32_t offset, size_t length,
                             struct range *range);
/* Which of a member's two prepared buffers this thread means. Under the lock. */
struct prepared *host_prepared(struct rank *rank, uint32_t dpu);

/* --- Counting: report.c --- */
void host_count_transfer(struct rank *rank, dpu_xfer_t direction, uint32_t dpus, size_t bytes);
void host_count_broadcast(struct rank *rank, uint32_t dpus, size_t bytes);
void host_report(const struct allocation *allocation, uint32_t nr_dpus);

/* The allocation whose callback this thread runs, or NULL: it cannot wait for itself. */
extern __thread const struct allocation *host_in_callback;

#endif
