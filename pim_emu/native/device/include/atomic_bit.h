/* Bits that the hardware takes and gives back in one instruction; here a byte stands for each. */
#ifndef DPU_ATOMIC_BIT_H
#define DPU_ATOMIC_BIT_H

#include <attributes.h>
#include <macro_utils.h>
#include <stdint.h>

#define ATOMIC_BIT_GET(_name) __CONCAT(__atomic_bit_, _name)
#define ATOMIC_BIT_INIT(_name) uint8_t __atomic_bit ATOMIC_BIT_GET(_name)
#define ATOMIC_BIT_EXTERN(_name) extern ATOMIC_BIT_INIT(_name)

extern uint8_t __emu_atomic_start[]; /* of all of them */
#define ATOMIC_BIT_INDEX(_name) ((unsigned int)(&ATOMIC_BIT_GET(_name) - __emu_atomic_start))

void __emu_atomic_bit_acquire(uint8_t *bit);
void __emu_atomic_bit_release(uint8_t *bit);
#define ATOMIC_BIT_ACQUIRE(_name) __emu_atomic_bit_acquire(&ATOMIC_BIT_GET(_name))
#define ATOMIC_BIT_RELEASE(_name) __emu_atomic_bit_release(&ATOMIC_BIT_GET(_name))

#endif
