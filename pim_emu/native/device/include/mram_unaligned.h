/* MRAM at any address, and updates of a few bytes that no other tasklet can tear. */
#ifndef DPU_MRAM_UNALIGNED_H
#define DPU_MRAM_UNALIGNED_H

#include <mram.h>
#include <stdint.h>
#include <vmutex.h>

/* Each 8-byte word of MRAM has one of these virtual mutexes, by its number modulo 2^11. */
#define __MRAM_UNALIGNED_ACCESS_LOG_NB_VLOCK 11
extern struct vmutex __mram_unaligned_access_virtual_locks;
extern __dma_aligned uint8_t __mram_unaligned_access_buffer[DPU_NR_THREADS << 3];

/* At most 2,048 bytes, into a buffer for 16 more. Returns where in it they begin. */
void *mram_read_unaligned(const __mram_ptr void *from, void *buffer, unsigned int nb_of_bytes);

/* At most 2,048 bytes; both addresses must have the same remainder modulo 8. */
void mram_write_unaligned(const void *from, __mram_ptr void *dest, unsigned int nb_of_bytes);

/* Lock the 8-byte word that holds an MRAM address and fetch it: where that address is in WRAM. */
void *__emu_mram_word_fetch(uintptr_t mram);
void __emu_mram_word_store(uintptr_t mram);

#define __emu_mram_with_word(type, dest, pointer, statement)                                       \
    do {                                                                                           \
        const uintptr_t __emu_at = (uintptr_t)(dest);                                              \
        type *const pointer = __emu_mram_word_fetch(__emu_at);                                     \
        statement;                                                                                 \
        __emu_mram_word_store(__emu_at);                                                           \
    } while (0)

/* `update_func(pointer, args)` changes the value in place. */
#define mram_update_int_atomic(dest, update_func, args)                                            \
    __emu_mram_with_word(int, dest, __emu_value, (*(update_func))(__emu_value, args))
#define mram_write_int_atomic(dest, val)                                                           \
    __emu_mram_with_word(int, dest, __emu_value, *__emu_value = (val))
#define mram_update_byte_atomic(dest, update_func, args)                                           \
    __emu_mram_with_word(uint8_t, dest, __emu_value, (*(update_func))(__emu_value, args))
#define mram_write_byte_atomic(dest, val)                                                          \
    __emu_mram_with_word(uint8_t, dest, __emu_value, *__emu_value = (val))

#endif
