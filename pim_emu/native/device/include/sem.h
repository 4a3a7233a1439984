/* Counting semaphores: taking waits while there is nothing to take. */
#ifndef DPU_SEM_H
#define DPU_SEM_H

#include <atomic_bit.h>
#include <attributes.h>
#include <stdint.h>

/* Programs may fill in the first four members of a semaphore of their own at run time. */
typedef struct sem_t {
    uint8_t wait_queue; /* 0xff: nobody waits */
    uint8_t count;      /* signed: below zero, tasklets that wait */
    uint8_t initial_count;
    uint8_t lock;
    struct {
        int16_t count;
        uint16_t known; /* `count` above as the library left it */
    } __emu;            /* the engine's */
} sem_t;

#define SEMAPHORE_INIT(_name, _counter)                                                            \
    _Static_assert((_counter) < 128 && (_counter) >= -127,                                         \
                   "the count of a semaphore is one byte");                                        \
    ATOMIC_BIT_INIT(__CONCAT(semaphore_, _name));                                                  \
    sem_t _name = {.wait_queue = 0xff,                                                             \
                   .count = (uint8_t)(_counter),                                                   \
                   .initial_count = (uint8_t)(_counter),                                           \
                   .__emu = {.count = (_counter), .known = (uint8_t)(_counter)}};

void sem_take(sem_t *sem);
void sem_give(sem_t *sem);

#endif
