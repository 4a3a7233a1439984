/* What gcc's -fsanitize=thread calls before each load and store and instead of each atomic
 * operation. The engine keeps its own account of them. The linker takes this file into traced
 * programs only: nothing else refers to it.
 */
#include "runtime.h"

static void access_at(const volatile void *address, size_t bytes, enum emu_access access,
                      const void *pc) {
    engine_after(0)->access((const void *)address, bytes, access, pc);
}

#define HOOK(name, bytes, access)                                                                  \
    void __tsan_##name(const void *address) { access_at(address, bytes, access, CALLER); }

/* Tasklets wait for each other by looking at volatile variables: those are no races. */
#define HOOKS_OF(bytes)                                                                            \
    HOOK(read##bytes, bytes, EMU_READ)                                                             \
    HOOK(write##bytes, bytes, EMU_WRITE)                                                           \
    HOOK(unaligned_read##bytes, bytes, EMU_READ)                                                   \
    HOOK(unaligned_write##bytes, bytes, EMU_WRITE)                                                 \
    HOOK(volatile_read##bytes, bytes, EMU_ATOMIC)                                                  \
    HOOK(volatile_write##bytes, bytes, EMU_ATOMIC)                                                 \
    HOOK(unaligned_volatile_read##bytes, bytes, EMU_ATOMIC)                                        \
    HOOK(unaligned_volatile_write##bytes, bytes, EMU_ATOMIC)

HOOKS_OF(1)
HOOKS_OF(2)
HOOKS_OF(4)
HOOKS_OF(8)
HOOKS_OF(16)

#define RANGE_HOOK(name, access)                                                                   \
    void __tsan_##name(const void *address, size_t bytes) {                                        \
        access_at(address, bytes, access, CALLER);                                                 \
    }

RANGE_HOOK(read_range, EMU_READ)
RANGE_HOOK(write_range, EMU_WRITE)

void __tsan_init(void) {}
void __tsan_func_entry(const void *caller) { (void)caller; }
void __tsan_func_exit(void) {}

/* Tasklets of a DPU change only in calls of the engine, so plain operations are atomic. The order
 * asked for is always kept. */
#define EXCHANGE_HOOK(bits, type, operation, expression)                                           \
    type __tsan_atomic##bits##_##operation(volatile type *at, type value, int order) {             \
        (void)order;                                                                               \
        const type old = *at;                                                                      \
        *at = (type)(expression);                                                                  \
        access_at(at, sizeof *at, EMU_ATOMIC, CALLER);                                             \
        return old;                                                                                \
    }

#define COMPARE_HOOK(bits, type, strength)                                                         \
    int __tsan_atomic##bits##_compare_exchange_##strength(volatile type *at, type *expected,       \
                                                          type value, int order, int failure) {    \
        (void)order;                                                                               \
        (void)failure;                                                                             \
        const type old = *at;                                                                      \
        const int same = old == *expected;                                                         \
        if (same)                                                                                  \
            *at = value;                                                                           \
        else                                                                                       \
            *expected = old;                                                                       \
        access_at(at, sizeof *at, EMU_ATOMIC, CALLER);                                             \
        return same;                                                                               \
    }

#define ATOMIC_HOOKS_OF(bits, type)                                                                \
    type __tsan_atomic##bits##_load(const volatile type *at, int order) {                          \
        (void)order;                                                                               \
        const type value = *at;                                                                    \
        access_at(at, sizeof *at, EMU_ATOMIC, CALLER);                                             \
        return value;                                                                              \
    }                                                                                              \
    void __tsan_atomic##bits##_store(volatile type *at, type value, int order) {                   \
        (void)order;                                                                               \
        *at = value;                                                                               \
        access_at(at, sizeof *at, EMU_ATOMIC, CALLER);                                             \
    }                                                                                              \
    EXCHANGE_HOOK(bits, type, exchange, value)                                                     \
    EXCHANGE_HOOK(bits, type, fetch_add, old + value)                                              \
    EXCHANGE_HOOK(bits, type, fetch_sub, old - value)                                              \
    EXCHANGE_HOOK(bits, type, fetch_and, old & value)                                              \
    EXCHANGE_HOOK(bits, type, fetch_or, old | value)                                               \
    EXCHANGE_HOOK(bits, type, fetch_xor, old ^ value)                                              \
    EXCHANGE_HOOK(bits, type, fetch_nand, ~(old & value))                                          \
    COMPARE_HOOK(bits, type, strong)                                                               \
    COMPARE_HOOK(bits, type, weak)

ATOMIC_HOOKS_OF(8, uint8_t)
ATOMIC_HOOKS_OF(16, uint16_t)
ATOMIC_HOOKS_OF(32, uint32_t)
ATOMIC_HOOKS_OF(64, uint64_t)

void __tsan_atomic_thread_fence(int order) { (void)order; }
void __tsan_atomic_signal_fence(int order) { (void)order; }
