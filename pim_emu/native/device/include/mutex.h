/* Mutual exclusion. A mutex is an atomic bit, named by its address. */
#ifndef DPU_MUTEX_H
#define DPU_MUTEX_H

#include <atomic_bit.h>
#include <stdbool.h>
#include <stdint.h>
#include <sysdef.h>

typedef uint8_t *mutex_id_t;

#define MUTEX_GET(_name) _name
#define MUTEX_INIT(_name)                                                                          \
    ATOMIC_BIT_INIT(__CONCAT(mutex_, _name));                                                      \
    const mutex_id_t MUTEX_GET(_name) = &ATOMIC_BIT_GET(__CONCAT(mutex_, _name))

void mutex_lock(mutex_id_t mutex);
bool mutex_trylock(mutex_id_t mutex); /* whether it was taken */
void mutex_unlock(mutex_id_t mutex);

#endif
