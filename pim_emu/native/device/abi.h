/* What a DPU program and the engine that runs it agree on.
 *
 * A program is an x86-64 image that the engine loads once for each of its workers. It calls the
 * engine only through the table of services, which the engine writes into the image's environment.
 * Tasklets are coroutines of one worker: between two services nothing else runs on the DPU.
 */
#ifndef EMU_ABI_H
#define EMU_ABI_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#define EMU_ABI 3u
#define EMU_MAGIC 0x554d4550u      /* "PEMU" */
#define EMU_MRAM_BASE 0x08000000u  /* of MRAM in the address space of a DPU, as symbols and pointers */
#define EMU_PROGRAM_BASE 0x10000000u /* where programs are linked; they may be loaded above it */
#define EMU_HEAP_ALIGNMENT 64u /* a line of the host's cache: blocks in the heap are copied faster */
#define EMU_MOST_TASKLETS 24       /* of any machine; the machine description may allow fewer */

/* How a program was built: it decides what can be checked while it runs. */
enum emu_build {
    EMU_COUNTED = 1, /* r15 counts modelled instructions */
    EMU_STACKS = 2,  /* functions check their stack */
    EMU_TRACED = 4,  /* every load and store is reported: races, bounds, interleavings */
};

/* In section .emu.info, made when the program is linked. */
struct emu_info {
    uint32_t magic, abi;
    uint32_t build;       /* of enum emu_build; object files may add to it, see .emu.build */
    uint32_t nr_tasklets; /* NR_TASKLETS */
    uint32_t stack_bytes[EMU_MOST_TASKLETS];
};

/* Objects in WRAM on which tasklets meet. The engine blocks and wakes; programs only declare. */
struct emu_barrier {
    uint8_t size;    /* tasklets that meet */
    uint8_t waiting; /* tasklets that have arrived */
    uint16_t unused;
};

struct emu_semaphore {
    int16_t count;
    uint16_t unused;
};

/* Why a DPU was stopped. Each has a name that messages begin with: see engine/fault.c. */
enum emu_fault_kind {
    EMU_FAULT_NONE,
    EMU_FAULT_DMA_ALIGNMENT,
    EMU_FAULT_DMA_SIZE,
    EMU_FAULT_DMA_WRAM,     /* the WRAM side of a transfer lies outside WRAM */
    EMU_FAULT_MRAM_BOUNDS,
    EMU_FAULT_WRAM_BOUNDS,
    EMU_FAULT_WRAM_OVERFLOW, /* the heap is full */
    EMU_FAULT_STACK_OVERFLOW,
    EMU_FAULT_BARRIER,
    EMU_FAULT_MUTEX,
    EMU_FAULT_SEMAPHORE,
    EMU_FAULT_HANDSHAKE,
    EMU_FAULT_DEADLOCK,
    EMU_FAULT_RACE,
    EMU_FAULT_DIVISION,
    EMU_FAULT_TIMEOUT,
    EMU_FAULT_LIBRARY, /* a precondition of a library function */
    EMU_FAULT_PROGRAM, /* the program asked for it: abort, a failed assertion */
};

enum emu_access { EMU_READ = 0, EMU_WRITE = 1, EMU_ATOMIC = 2 };

/* `pc` is the address in the program to which the service was called for: messages name its line. */
struct emu_services {
    void (*dma)(uint32_t mram, void *wram, uint32_t bytes, enum emu_access direction,
                const void *pc); /* EMU_READ: MRAM to WRAM */
    void (*barrier_wait)(struct emu_barrier *barrier, const void *pc);
    void (*mutex_lock)(uint8_t *mutex, const void *pc);
    int (*mutex_trylock)(uint8_t *mutex, const void *pc); /* whether it was taken */
    void (*mutex_unlock)(uint8_t *mutex, const void *pc);
    void (*semaphore_take)(struct emu_semaphore *semaphore, const void *pc);
    void (*semaphore_give)(struct emu_semaphore *semaphore, const void *pc);
    void (*handshake_wait)(uint32_t tasklet, const void *pc); /* for the notification of one */
    void (*handshake_notify)(const void *pc); /* and wait until it is taken */
    /* Stop the DPU. The message continues the name of the fault. */
    void (*fault)(enum emu_fault_kind kind, const void *pc, const char *format, ...)
        __attribute__((noreturn, format(printf, 3, 4)));
    void (*halt)(void) __attribute__((noreturn)); /* end the calling tasklet */
    void (*print)(const char *format, va_list arguments, const void *pc); /* to the DPU's log */
    uint64_t (*cycles)(void);                      /* modelled, since the launch */
    void (*yield)(const void *pc);
    /* A load or store of the calling tasklet to WRAM, of traced programs only. */
    void (*access)(const void *address, size_t bytes, enum emu_access access, const void *pc);
    uint32_t (*stack_free)(void); /* bytes of the calling tasklet's declared stack not in use */
    void (*heap)(const void *end); /* the heap now ends here */
    void *(*copy)(void *to, const void *from, size_t bytes, const void *pc);
    void *(*move)(void *to, const void *from, size_t bytes, const void *pc);
    void *(*fill)(void *to, int value, size_t bytes, const void *pc);
    int (*compare)(const void *a, const void *b, size_t bytes, const void *pc);
    uint64_t (*launch_instructions)(void); /* by all tasklets, since the launch */
};

/* One for each loaded image, outside WRAM (section .emu.env). */
struct emu_environment {
    const struct emu_services *services;
    uint64_t instructions; /* of the calling tasklet so far: r15, stored before each service */
    uint32_t tasklet;      /* that is running: me() */
    uint32_t traced;       /* whether `access` wants to be called */
};

#endif
