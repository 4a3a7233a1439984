/* What the parts of the engine share. */
#ifndef EMU_INTERNAL_H
#define EMU_INTERNAL_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "engine.h"

#define EMU_PAGE 4096u

/* --- program.c --- */
/* A copy of a program at an address of its own, for one worker. */
struct emu_image {
    uint8_t *base;                   /* of the mapping */
    size_t bytes;
    ptrdiff_t delta;                 /* run address minus link address */
    uint8_t *text, *library, *text_end; /* of the program, of the run-time library */
    uint8_t *wram;                   /* wram_bytes of them, page aligned */
    uint8_t *atomic, *atomic_end;    /* mutexes */
    struct emu_environment *environment;
    void (*entry)(void);
    void (*boot)(void);
    uint8_t *initial_wram;           /* static_bytes, relocated for this address */
    _Atomic(uint32_t) open;          /* bytes of WRAM that are accessible: see emu_open_wram */
};

struct emu_program {
    atomic_uint references;
    const struct emu_machine *machine;
    char *name;
    uint8_t *elf;
    size_t elf_bytes;
    struct emu_info info;
    uint32_t image_start, image_end; /* link addresses of all but MRAM */
    uint32_t wram_start, static_bytes;
    uint32_t stack_bytes;            /* of all tasklets, declared */
    uint32_t mram_used;              /* bytes of MRAM taken by variables */
    pthread_mutex_t lock;            /* of what follows */
    struct emu_image **images;       /* by worker */
    uint32_t image_count;
    struct emu_line *lines;          /* source lines found so far */
    _Atomic(struct emu_warning *) warnings; /* given so far */
};

/* --- symbols.c --- */
/* Link address of a symbol; false: there is none. */
bool emu_symbol_address(const struct emu_program *program, const char *name, uint32_t *address,
                        uint32_t *bytes);
/* The name of the object or function that holds a link address, or NULL. */
const char *emu_symbol_at(const struct emu_program *program, uint32_t address);

/* --- image.c --- */
/* NULL: no memory below 4 GiB. */
struct emu_image *emu_image_of(struct emu_program *program, uint32_t worker);
void emu_free_image(struct emu_image *image);
/* Let the program use WRAM up to here. The rest is protected until it is touched: it need not be
 * saved with each DPU. False: it is open already, or cannot be. */
bool emu_open_wram(struct emu_image *image, const struct emu_machine *machine, uint32_t bytes);
/* Make pointers in initialised MRAM variables those of the image. */
void emu_relocate_mram(const struct emu_program *program, const struct emu_image *image,
                       uint8_t *window);

/* --- dpu.c --- */
struct emu_dpu {
    struct emu_rank *rank;
    uint32_t index; /* over all ranks */
    uint32_t worker;
    uint8_t *window; /* MRAM address a lies at window + a */
    uint8_t *mram;
    uint8_t *wram;   /* as the last launch left it */
    uint32_t wram_used;
    struct emu_program *program;
    struct emu_image *image;
    uint64_t whole; /* a bit for each MRAM chunk that is memory of its own: see memory.c */
    _Atomic(enum emu_state) state;
    pthread_mutex_t live_lock;
    uint8_t *live;   /* WRAM while it is in the worker's image */
    struct emu_counters counters;
    enum emu_fault_kind fault;
    char *fault_message;
    char *log;
    size_t log_bytes, log_capacity;
    bool log_truncated;
};

/* The DPU has, and keeps, WRAM up to here; its live_lock is held. */
void emu_use_wram(struct emu_dpu *dpu, size_t bytes);

/* --- memory.c --- */
#define EMU_WINDOW (1ull << 32) /* addresses that a 32-bit MRAM pointer can reach */
/* From a DPU's window to the next. An index of 32 bits that wraps below 0 lies as many times 4 GiB
 * too far as an element has bytes: never in another DPU's MRAM, whatever the size up to 64. */
#define EMU_WINDOW_STEP (EMU_WINDOW + (130ull << 20))
#define EMU_WINDOWS_BEYOND 16u /* as much is reserved behind the last one: for 16 B */
uint8_t *emu_map_windows(uint32_t count); /* reserved, nothing accessible; NULL: no memory */
void emu_unmap_windows(uint8_t *windows, uint32_t count);
bool emu_map_mram(uint8_t *at, uint32_t bytes); /* lazily, filled with the pattern */
/* Give chunks that are about to be overwritten as a whole large pages. */
void emu_make_whole(uint8_t *mram, uint32_t offset, size_t bytes, uint64_t *whole);
/* Pointers to stacks fit 31 bits, as on a DPU, while there is room: the kernel hands out 1 GiB of it,
 * and images need that more. Below 4 GiB, or NULL. */
uint8_t *emu_map_stacks(size_t bytes);
void emu_fill_pattern(uint8_t *at, size_t bytes);
bool emu_write_all(int file, const uint8_t *from, size_t bytes);

/* --- low_memory.c: readable and writable, or NULL where there is no such gap --- */
#define EMU_LOW (2ull << 30)
uint8_t *emu_map_low(size_t bytes); /* below 2 GiB */
uint8_t *emu_map_at(uintptr_t at, size_t bytes);
uint8_t *emu_map_below(uintptr_t end, size_t bytes);

/* --- run.c: a launch of one DPU on one worker --- */
enum emu_waiting {
    EMU_NOTHING,
    EMU_ON_BARRIER,
    EMU_ON_MUTEX,
    EMU_ON_SEMAPHORE,
    EMU_ON_NOTIFIER, /* for another's notification */
    EMU_ON_WAITER    /* for somebody to take its notification */
};

/* A place in a program that reads MRAM, perhaps in even steps. */
#define EMU_STREAM_BITS 3
struct emu_stream {
    const void *pc;
    uint32_t last, step; /* where in MRAM it read last, and how far from the time before */
};

struct emu_tasklet {
    void *stack_pointer;
    uint8_t *stack_bottom, *stack_top; /* the host's */
    uint8_t *stack_limit;              /* below it, the declared stack is overrun */
    void *fiber;                       /* what a sanitizer calls this stack */
    bool ended;
    enum emu_waiting waiting;
    const void *object;    /* that it waits for */
    const void *pc;        /* of its last service */
    uint64_t instructions; /* accounted for */
    uint64_t number;       /* of its wait, among all */
    bool transfers;        /* its transfer lasts */
    double then_computes;  /* turns, which are known already */
    struct emu_stream streams[1 << EMU_STREAM_BITS];
};

/* What is to come, in its order: a ring. */
#define EMU_EVENTS 32u /* a power of two, one for each tasklet */
struct emu_event {
    double at;
    uint32_t tasklet;
};
struct emu_events {
    uint32_t first, count;
    struct emu_event items[EMU_EVENTS];
};

#define EMU_NOBODY 255u
#define EMU_MOST_MUTEXES 256u
#define EMU_MOST_BARRIERS 64u

struct emu_run {
    struct emu_dpu *dpu;
    struct emu_program *program;
    struct emu_image *image;
    const struct emu_machine *machine;
    struct emu_tasklet tasklets[EMU_MOST_TASKLETS];
    struct emu_settings settings; /* as they were when it began */
    uint32_t count, current, alive;
    double time;                      /* modelled cycles since the launch */
    double turns;                     /* of the pipeline: see schedule.c */
    struct emu_events computing;      /* by the turn at which each comes to its next service */
    struct emu_events transfers;      /* by the time at which each ends */
    uint64_t random;
    double dma_free, dma_busy;        /* when the DMA engine is; cycles that it has been busy */
    double dma_smallest;              /* cycles in which a smallest transfer occupies it */
    void *host_stack_pointer;
    _Atomic(uint64_t) heartbeat;      /* services called: the watchdog looks at it */
    _Atomic(uint64_t) overdue;        /* one more than it was when the watchdog sent a signal */
    uint64_t waits;                   /* so far */
    struct emu_counters counters;
    const uint8_t *heap_end;
    uint8_t owner[EMU_MOST_MUTEXES];  /* of a mutex by its number, or EMU_NOBODY */
    struct {
        const void *barrier;
        uint32_t size, tasklets;
    } meetings[EMU_MOST_BARRIERS];    /* which tasklets have come to which barrier */
    enum emu_fault_kind fault;
    char message[1024];
    struct emu_races *races;          /* NULL: the program is not traced */
};

/* What a worker owns, whichever thread works for it. */
struct emu_worker {
    pthread_mutex_t lock;
    uint8_t *stacks;
    size_t stacks_bytes;
    struct emu_races *races;
    pthread_mutex_t thread_lock; /* of the next two */
    bool busy;
    pthread_t thread; /* that works, while busy */
    struct emu_run run;
};

extern __thread struct emu_run *emu_current __attribute__((tls_model("initial-exec")));

bool emu_make_stacks(struct emu_worker *worker); /* false: no memory below 4 GiB */
/* Run the DPU to its end; the calling thread holds the worker's lock. */
void emu_run_dpu(struct emu_worker *worker, struct emu_dpu *dpu);

/* --- schedule.c --- */
/* Charge the current tasklet with the instructions since its last service, and let another run if
 * its time has come, or by chance. Every service begins with it. */
void emu_account(struct emu_run *run, const void *pc);
/* The current tasklet's transfer lasts until then; it goes on afterwards. */
void emu_transfer_until(struct emu_run *run, double time);
/* The current tasklet waits until `emu_wake`; a fault if nobody is left to wake it. */
void emu_wait(struct emu_run *run, enum emu_waiting waiting, const void *object);
void emu_wake(struct emu_run *run, uint32_t tasklet);
/* Charge the current tasklet as `emu_account` does, and go on: it is about to be stopped. */
void emu_settle(struct emu_run *run);
/* The tasklet that waits longest, or -1. */
int emu_first_waiting(const struct emu_run *run, enum emu_waiting waiting, const void *object);
_Noreturn void emu_end_tasklet(struct emu_run *run);
void emu_run_tasklets(struct emu_run *run); /* returns when all have ended, or after a fault */
_Noreturn void emu_leave_run(struct emu_run *run); /* to the caller of emu_run_tasklets */
uint64_t emu_random(struct emu_run *run);

/* --- switch.S --- */
void emu_switch(void **save, void *to);
void emu_tasklet_start(void);
void emu_call_program(void (*function)(void)); /* code that takes r15 for its own */

/* --- fault.c, line.c --- */
/* "file.c:12 (function)" of a link address; "0x..." where unknown. Stays valid with the program. */
const char *emu_source_line(struct emu_program *program, uint32_t address);
void emu_free_lines(struct emu_line *lines);
_Noreturn void emu_fail(struct emu_run *run, enum emu_fault_kind kind, const void *pc,
                        const char *format, ...) __attribute__((format(printf, 4, 5)));
_Noreturn void emu_vfail(struct emu_run *run, enum emu_fault_kind kind, const void *pc,
                         const char *format, va_list arguments);
_Noreturn void emu_fail_deadlock(struct emu_run *run);
_Noreturn void emu_fail_timeout(struct emu_run *run, const void *pc);
/* "file.c:12 (function)" of an address in the running image. */
const char *emu_place(struct emu_run *run, const void *pc);
/* "'name'" of an object in WRAM, or its address. The text has 64 bytes. */
const char *emu_name_object(struct emu_run *run, const void *object, char *text);

/* --- warning.c --- */
/* Something that the hardware does and its documentation forbids: a fault where the settings are
 * strict; otherwise a warning, once for each `kind` (a bit) and source line. `text` says what. */
void emu_tell_odd(struct emu_run *run, enum emu_fault_kind fault, uint32_t kind, const char *text,
                  const void *pc);
void emu_free_warnings(struct emu_program *program);

/* --- signals.c --- */
/* Make this the handler of what programs raise, now and after others have taken its place. */
bool emu_take_signals(void);
void emu_unblock_signals(sigset_t *old); /* on the calling thread */
#define EMU_SIGNAL_STACK (64u * 1024u)
#define EMU_WATCHDOG_SIGNAL SIGURG

/* --- watchdog.c --- */
void emu_start_watchdog(struct emu_worker *workers, uint32_t count);
bool emu_is_overdue(struct emu_run *run); /* and has made no call since the watchdog saw that */

/* --- services.c, sync.c, dma.c, race.c --- */
extern const struct emu_services emu_all_services;
void emu_dma(uint32_t mram, void *wram, uint32_t bytes, enum emu_access direction, const void *pc);
void emu_barrier_wait(struct emu_barrier *barrier, const void *pc);
void emu_mutex_lock(uint8_t *mutex, const void *pc);
int emu_mutex_trylock(uint8_t *mutex, const void *pc);
void emu_mutex_unlock(uint8_t *mutex, const void *pc);
void emu_semaphore_take(struct emu_semaphore *semaphore, const void *pc);
void emu_semaphore_give(struct emu_semaphore *semaphore, const void *pc);
void emu_handshake_wait(uint32_t tasklet, const void *pc);
void emu_handshake_notify(const void *pc);
/* Whether the bytes lie in WRAM, or on the stack of a tasklet (which stands for WRAM). */
bool emu_in_wram(const struct emu_run *run, const void *address, size_t bytes);

/* Tables for the machine: the old ones where they are large enough. NULL: no memory. */
struct emu_races *emu_make_races(struct emu_races *old, const struct emu_machine *machine);
void emu_free_races(struct emu_races *races);
void emu_begin_races(struct emu_run *run);
void emu_race_wram(struct emu_run *run, const void *address, size_t bytes, enum emu_access access,
                   const void *pc);
void emu_race_mram(struct emu_run *run, uint32_t offset, size_t bytes, enum emu_access access,
                   const void *pc);
/* What a tasklet has done before it releases an object happens before what another does after it
 * has acquired it. */
void emu_race_release(struct emu_run *run, const void *object, uint32_t tasklet);
void emu_race_acquire(struct emu_run *run, const void *object, uint32_t tasklet);

#endif
