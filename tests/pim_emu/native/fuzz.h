/* A fuzzer of the host interface: random calls, good and bad, against a model of what they do.
 *
 * The model is the documentation: for each call it says which codes may be returned (none: DPU_OK),
 * and it keeps a shadow of the memories, programs and queues of all sets. What is queued is applied
 * to the shadow at once, because the ranks work in order. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdatomic.h>

#include <dpu.h>
#include <dpu_management.h>
#include <dpu_memory.h>
#include <dpu_program.h>
#include <pim_emu.h>

#define E(code) (1ull << DPU_ERR_##code)
#define SETS 3
#define STALE 8
#define MOST_RANKS 4
#define MOST_BYTES 1024u /* of a transfer that is expected to work */

/* Variables of the programs, see fuzz_dpu.c. */
enum variable { MODE, WORDS, RUNS, BUFFER, VARIABLES };
enum { STOPS = 1, PRINTS = 2 }; /* values of `mode` */
extern const char *const variable_names[VARIABLES];
uint32_t variable_bytes(enum variable variable, int program);

/* What one DPU holds. Bytes that the model cannot foresee are not known. */
struct shadow {
    uint32_t load; /* number of the load that gave it its program; 0: none */
    int program;   /* 1 or 2 */
    bool outcome_known, faulted, printed;
    struct buffer *prepared;
    bool used;
    uint8_t bytes[VARIABLES][4096], known[VARIABLES][4096];
};

/* Memory of the host that a transfer may use until its set is idle. */
struct buffer {
    struct buffer *next;
    uint8_t *bytes, *expected, *known;
    size_t size;
};

struct rank {
    uint32_t first, count; /* DPUs */
    bool queued, launched; /* since it was last known to be idle */
    dpu_error_t error;     /* that waits for dpu_sync */
    uint32_t error_kind;
};

/* Of callbacks: where to count them, and what they return. */
struct argument {
    struct set *set;
    dpu_error_t code;
};

struct set {
    bool live, scatter;
    struct dpu_set_t handle;
    uint32_t nr_ranks, nr_dpus, most_blocks;
    struct rank ranks[MOST_RANKS];
    struct shadow *dpus;
    struct buffer *buffers;
    struct dpu_program_t *program; /* of the last load */
    uint32_t program_load;
    struct argument good, bad;
    bool wanders;      /* a callback goes on beside its queues */
    atomic_uint calls; /* of callbacks, and how many there may have been */
    uint32_t least_calls, most_calls;
};

struct fuzz {
    uint64_t seed, random;
    uint32_t operation, loads;
    const char *paths[3]; /* of programs 1 and 2 */
    uint8_t *files[3];
    size_t file_bytes[3];
    struct set sets[SETS];
    struct dpu_set_t stale[STALE], stale_dpu[STALE];
    uint32_t nr_stale;
};

/* A set as an argument: of `owner`, or one that is refused with `errors`. */
struct target {
    struct dpu_set_t handle;
    uint64_t errors;
    struct set *owner;
    struct dpu_rank_t *ranks[MOST_RANKS]; /* where the handle needs a list of its own */
    uint32_t first_rank, nr_ranks;
    int only; /* DPU of the owner, or -1 */
};

/* --- fuzz_model.c --- */
uint32_t draw(struct fuzz *fuzz, uint32_t below);
bool chance(struct fuzz *fuzz, uint32_t percent);
_Noreturn void fail(const struct fuzz *fuzz, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void choose_target(struct fuzz *fuzz, struct target *target, uint32_t bad_percent);
uint32_t first_dpu(const struct target *target);
uint32_t end_dpu(const struct target *target);
struct rank *rank_of(struct set *set, uint32_t dpu);
bool was_queued(const struct target *target);
bool has_error(const struct target *target);

/* What a call waits for. */
enum wait { NOTHING, QUEUE, IDLE, BESIDE };
/* Hold a returned code to the model. Whether the call did its work, except on ranks in error. */
bool settle(struct fuzz *fuzz, const char *call, const struct target *target, enum wait wait,
            uint64_t errors, dpu_error_t got);
void expect(struct fuzz *fuzz, const char *call, uint64_t errors, dpu_error_t got);
/* Codes for naming a variable of the target's program: of no or of different programs. */
uint64_t program_errors(const struct target *target);
int program_of(const struct target *target);
struct buffer *new_buffer(struct fuzz *fuzz, struct set *set, size_t size);
void verify(struct fuzz *fuzz, const struct buffer *buffer);
void verify_and_free(struct fuzz *fuzz, struct set *set); /* all buffers */
void put(struct shadow *dpu, enum variable variable, uint32_t at, const uint8_t *from, size_t size);
void get(const struct shadow *dpu, enum variable variable, uint32_t at, struct buffer *into,
         size_t size);
void forget(struct shadow *dpu, enum variable variable);
void make_idle(struct fuzz *fuzz, struct set *set); /* and hold it to all that was expected */

/* --- fuzz_sets.c, fuzz_transfers.c, fuzz_queues.c: one operation each --- */
void do_alloc(struct fuzz *fuzz);
void do_free(struct fuzz *fuzz);
void free_set(struct fuzz *fuzz, struct set *set);
void do_load(struct fuzz *fuzz);
void do_queries(struct fuzz *fuzz);
void do_iterate(struct fuzz *fuzz);
void do_copy(struct fuzz *fuzz);
void do_prepare(struct fuzz *fuzz);
void do_push(struct fuzz *fuzz);
void do_direct(struct fuzz *fuzz);
void do_scatter(struct fuzz *fuzz);
void do_launch(struct fuzz *fuzz);
void do_sync(struct fuzz *fuzz);
void do_status(struct fuzz *fuzz);
void do_log(struct fuzz *fuzz);
void do_callback(struct fuzz *fuzz);

#endif
