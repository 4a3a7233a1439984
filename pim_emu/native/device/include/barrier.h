/* Barriers: tasklets wait until as many have come as the barrier was made for. */
#ifndef DPU_BARRIER_H
#define DPU_BARRIER_H

#include <atomic_bit.h>
#include <attributes.h>
#include <stdint.h>

/* Programs may fill in the first four members of a barrier of their own at run time. */
typedef struct barrier_t {
    uint8_t wait_queue; /* 0xff: nobody waits */
    uint8_t count;
    uint8_t initial_count; /* tasklets that meet */
    uint8_t lock;
    struct {
        uint8_t size, waiting;
        uint16_t unused;
    } __emu; /* the engine's */
} barrier_t;

#define BARRIER_INIT(_name, _counter)                                                              \
    _Static_assert((_counter) < 128 && (_counter) >= -127, "the count of a barrier is one byte");  \
    ATOMIC_BIT_INIT(__CONCAT(barrier_, _name));                                                    \
    barrier_t _name = {                                                                            \
        .wait_queue = 0xff, .count = (uint8_t)(_counter), .initial_count = (uint8_t)(_counter)};

void barrier_wait(barrier_t *barrier);

#endif
