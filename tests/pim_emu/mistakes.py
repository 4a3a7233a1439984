"""Wrong DPU programs, each with the right one beside it, as parts of one program in C.

A DPU runs the part that the host variable `which` names. The line that a message must name ends in
`//!`; where two lines meet, the other ends in `//?`.
"""

import dataclasses

TASKLETS = 4
CULPRIT = 2  # the tasklet that makes those mistakes that only one makes


@dataclasses.dataclass(frozen=True)
class Mistake:
    """One wrong program and its twin.

    Attributes:
      name: of the pair.
      fault: the name that the message must begin with.
      wrong: C statements.
      right: the same, without the mistake.
      says: a pattern that the rest of the message matches.
      by: the tasklets that may be named; None: all run it and each may.
      outside: declarations that it needs, also with markers.
      alone: whether a mistake that only the culprit makes is run by nobody else.
    """

    name: str
    fault: str
    wrong: str
    right: str
    says: str = ""
    by: tuple[int, ...] | None = (CULPRIT,)
    outside: str = ""
    alone: bool = True

    @property
    def runs(self) -> str:
        """C condition for the tasklets that run it."""
        return f"me() == {CULPRIT}" if self.by == (CULPRIT,) and self.alone else "1"


_PRELUDE = """
#include <alloc.h>
#include <assert.h>
#include <barrier.h>
#include <defs.h>
#include <handshake.h>
#include <limits.h>
#include <mram.h>
#include <mutex.h>
#include <mutex_pool.h>
#include <sem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__host uint32_t which, zero, result, finished[NR_TASKLETS];
__mram_noinit uint8_t buffer[8192];
__mram uint32_t table[4] = {1, 2, 3, 4};
__dma_aligned uint8_t cache[4096];
uint32_t shared, others[NR_TASKLETS];
volatile uint32_t sink, flag;
extern uint8_t __emu_wram_start[];
BARRIER_INIT(all, NR_TASKLETS);
BARRIER_INIT(pair, 2);
BARRIER_INIT(nobody, 0);
BARRIER_INIT(crowd, NR_TASKLETS + 1);
MUTEX_INIT(first);
MUTEX_INIT(second);
MUTEX_POOL_INIT(pool, 4);
SEMAPHORE_INIT(empty, 0);
SEMAPHORE_INIT(turn, 1);
#define AT(address) ((__mram_ptr uint8_t *)(uintptr_t)(address))
"""

_DMA = [
    Mistake(
        "mram_side", "misaligned DMA",
        "mram_read(buffer + 4, cache, 8); //!", "mram_read(buffer + 8, cache, 8);",
        r"MRAM address 0x0800\w{3}4 ",
    ),
    Mistake(
        "mram_side_of_write", "misaligned DMA",
        "mram_write(cache, buffer + 1, 16); //!", "mram_write(cache, buffer + 16, 16);",
        r"MRAM address 0x0800\w{3}1 ",
    ),
    Mistake(
        "wram_side", "misaligned DMA",
        "mram_read(buffer, cache + 4, 8); //!", "mram_read(buffer, cache + 8, 8);",
        "WRAM address",
    ),
    Mistake(
        "wram_side_of_write", "misaligned DMA",
        "mram_write(cache + 2, buffer, 8); //!", "mram_write(cache + 2040, buffer, 8);",
        "WRAM address",
    ),
    Mistake(
        "two_branches", "misaligned DMA",
        """if (zero)
    mram_read(buffer + 8, cache + 16, 8);
else
    mram_read(buffer + 4, cache, 8); //!
sink = cache[0];""",
        """if (zero)
    mram_read(buffer + 8, cache + 16, 8);
else
    mram_read(buffer + 16, cache, 8);
sink = cache[0];""",
    ),
    *(
        Mistake(
            f"size_{size}", "bad DMA size",
            f"{call}, {size}); //!", f"{call}, {right});",
            f"^{size} B, must be a multiple of 8 from 8 to 2048",
        )
        for size, right, call in [
            (0, 8, "mram_read(buffer, cache"),
            (4, 8, "mram_read(buffer, cache"),
            (12, 16, "mram_write(cache, buffer"),
            (2056, 2048, "mram_read(buffer, cache"),
            (4096, 2048, "mram_write(cache, buffer"),
        ]
    ),
    Mistake(
        "null_buffer", "DMA outside WRAM",
        "mram_read(buffer, (void *)(uintptr_t)zero, 8); //!",
        "__dma_aligned uint8_t local[16]; mram_read(buffer, local, 16);",
        "^8 B at",
    ),
    Mistake(
        "buffer_past_the_end", "DMA outside WRAM",
        "mram_read(buffer, __emu_wram_start + 65528 + zero, 16); //!",
        "mram_write(__emu_wram_start + 65528 + zero, buffer, 8);",
        "^16 B at",
    ),
    Mistake(
        "code_as_buffer", "DMA outside WRAM",
        "mram_write((void *)((uintptr_t)mem_alloc & ~7ul), buffer, 8); //!",
        "mram_write(mem_alloc(8), buffer, 8);",
        "^8 B at",
    ),
    Mistake(
        "mram_end", "MRAM out of bounds",
        "mram_read(AT(0x0c000000), cache, 8); //!", "mram_read(AT(0x0bfffff8), cache, 8);",
        "^8 B at 0x0c000000",
    ),
    Mistake(
        "across_the_end", "MRAM out of bounds",
        "mram_write(cache, AT(0x0bfffff8), 16); //!", "mram_write(cache, AT(0x0bfffff0), 16);",
        "^16 B at 0x0bfffff8",
    ),
    Mistake(  # DMA takes addresses that count from 0 too
        "neither_offset_nor_address", "MRAM out of bounds",
        "mram_read(AT(zero + 0x04000000), cache, 8); //!", "mram_read(AT(zero), cache, 8);",
        "^8 B at 0x04000000",
    ),
    Mistake(
        "read_past_mram", "MRAM out of bounds",
        "sink = *AT(0x0c000000); //!", "sink = *AT(0x0bffffff);", "0x0c000000",
    ),
    Mistake(
        "write_past_mram", "MRAM out of bounds",
        "table[zero + 0x1000000] = 7; //!", "table[zero + 3] = 7;", "0x0c00",
    ),
    Mistake(
        "null_mram_pointer", "MRAM out of bounds",
        "sink = *AT(zero); //!", "sink = table[zero];", "0x00000000",
    ),
    Mistake(
        "write_to_null_mram", "MRAM out of bounds",
        "*AT(zero + 4) = 1; //!", "*AT(zero + 0x08000000) = 1;", "0x00000004",
    ),
]  # fmt: skip

_MEMORY = [
    Mistake(
        "heap_by_and_by", "WRAM overflow",
        "for (uint32_t i = 0; i < 1000; ++i)\n    mem_alloc(1000); //!",
        "for (uint32_t i = 0; i < 1000; ++i) { mem_reset(); mem_alloc(1000); }",
        "^mem_alloc of 1000 B, but [0-9]{1,3} B of the heap are free",
    ),
    Mistake(
        "heap_at_once", "WRAM overflow",
        "mem_alloc(60000 + zero); //!", "mem_reset(); mem_alloc(40000 + zero);",
        "^mem_alloc of 60000 B",
    ),
    Mistake(
        "recursion", "stack overflow",
        "result = deeper(1000 + zero);", "result = deeper(3 + zero);", "frame",
        outside="""
static __attribute__((noipa)) uint32_t deeper(uint32_t n) { //!
    volatile uint32_t here[16];
    here[n % 16] = n;
    return n == 0 ? 0 : deeper(n - 1) + here[n % 16];
}""",
    ),
    Mistake(
        "big_array", "stack overflow",
        "result = large();", "result = small();", "a frame of [45][0-9]{3} B",
        outside="""
static __attribute__((noipa)) uint32_t large(void) { //!
    volatile uint8_t here[5000];
    return here[which % 5000] = 1;
}
static __attribute__((noipa)) uint32_t small(void) {
    volatile uint8_t here[500];
    return here[which % 500] = 1;
}""",
    ),
    Mistake(
        "variable_array", "stack overflow",
        "result = variable(20000 + zero);", "result = variable(200 + zero);", "STACK_SIZE",
        outside="""
static __attribute__((noipa)) uint32_t variable(uint32_t n) {
    volatile uint8_t here[n]; //!
    here[n - 1] = 1;
    return here[n - 1];
}""",
    ),
    Mistake(
        "null_write", "WRAM out of bounds",
        "*(volatile uint32_t *)(uintptr_t)zero = 1; //!",
        "*(volatile uint32_t *)(uintptr_t)&result = 1;",
    ),
    Mistake(
        "wild_read", "WRAM out of bounds",
        "sink = *(volatile uint32_t *)(0x123456789000ul + zero); //!", "sink = cache[zero];",
        "0x123456789000",
    ),
    Mistake(
        "far_overrun", "WRAM out of bounds",
        "cache[66000 + zero] = 1; //!", "cache[4000 + zero] = 1;",
    ),
    Mistake(
        "write_to_code", "WRAM out of bounds",
        "*(volatile uint8_t *)(uintptr_t)mem_alloc = 1; //!", "*(volatile uint8_t *)cache = 1;",
    ),
    Mistake(
        "copy_to_nowhere", "WRAM out of bounds",
        "mutex_lock(first);\nmutex_unlock(first);\n"
        "memcpy((void *)(uintptr_t)zero, cache, 64 + zero); //!",
        "memcpy(cache + 64, cache, 64 + zero);",
    ),
    Mistake(
        "printing_nowhere", "WRAM out of bounds",
        'printf("%s", (const char *)(uintptr_t)(zero + 64)); //!', 'printf("%s", "text");',
    ),
    Mistake(
        "call_of_nothing", "WRAM out of bounds",
        "nothing[zero + 1](7); //!\n++result;", "nothing[zero](7);",
        outside="""
static __attribute__((noipa)) void something(uint32_t x) { sink = x; }
void (*nothing[2])(uint32_t) = {something, 0};""",
    ),
]  # fmt: skip

_SYNCHRONISATION = [
    Mistake(
        "missing_arrival", "deadlock",
        "if (me() == 3) return;\nbarrier_wait(&all); //!", "barrier_wait(&all);",
        "at barrier 'all', to which 3 of 4 have come", by=(0, 1, 2),
    ),
    Mistake(
        "opposite_order", "deadlock",
        """if (me() > 1) return;
mutex_lock(me() == 0 ? first : second);
barrier_wait(&pair);
mutex_lock(me() == 0 ? second : first); //!""",
        """if (me() > 1) return;
mutex_lock(first);
mutex_lock(second);
mutex_unlock(me() == 0 ? second : first);
mutex_unlock(me() == 0 ? first : second);
barrier_wait(&pair);""",
        "for mutex '[a-z_]*first', held by tasklet 0", by=(0, 1),
    ),
    Mistake(
        "locked_twice", "deadlock",
        "mutex_lock(first);\nmutex_lock(first); //!",
        "mutex_lock(first);\nmutex_unlock(first);\nmutex_lock(first);",
        f"for mutex '[a-z_]*first', held by tasklet {CULPRIT}",
    ),
    Mistake(
        "never_unlocked", "deadlock",
        """if (me() == 0) mutex_lock(second);
barrier_wait(&all);
if (me() == 2) mutex_lock(second); //!""",
        """if (me() == 0) mutex_lock(second);
barrier_wait(&all);
if (me() == 0) mutex_unlock(second);
if (me() == 2) mutex_lock(second);""",
        "for mutex '[a-z_]*second', held by tasklet 0", by=(0, 2),
    ),
    Mistake(
        "nothing_given", "deadlock",
        "sem_take(&empty); //!", "sem_give(&empty);\nsem_take(&empty);", "for semaphore 'empty'",
    ),
    Mistake(
        "nobody_notifies", "deadlock",
        "if (me() == 2) handshake_wait_for(1); //!",
        "if (me() == 2) handshake_wait_for(1);\nif (me() == 1) handshake_notify();",
        "to be notified by tasklet 1", by=(1, 2),
    ),
    Mistake(
        "nobody_waits", "deadlock",
        "if (me() == 1) handshake_notify(); //!",
        "if (me() == 1) handshake_notify();\nif (me() == 3) handshake_wait_for(1);",
        "for somebody to take its notification", by=(1, 3),
    ),
    Mistake(
        "barrier_for_nobody", "barrier misuse",
        "barrier_wait(&nobody); //!", "if (me() < 2) barrier_wait(&pair);",
        "'nobody' is for 0 tasklets, the program has 4", by=None,
    ),
    Mistake(
        "barrier_for_too_many", "barrier misuse",
        "barrier_wait(&crowd); //!", "barrier_wait(&all);",
        "'crowd' is for 5 tasklets, the program has 4", by=None,
    ),
    Mistake(
        "one_too_many", "barrier misuse",
        "if (me() != 3) barrier_wait(&pair); //!",
        "for (int i = 0; i < 5; ++i)\n    if (me() > 1) barrier_wait(&pair);",
        "one tasklet too many comes to 'pair', which is for 2", by=(0, 1, 2),
    ),
    Mistake(
        "waits_for_itself", "handshake misuse",
        f"handshake_wait_for({CULPRIT}); //!", "sink = me();", "waits for tasklet 2",
    ),
    Mistake(
        "waits_for_none_such", "handshake misuse",
        "handshake_wait_for(4 + zero); //!", "sink = me();", "waits for tasklet 4",
    ),
    Mistake(
        "two_wait_for_one", "handshake misuse",
        "if (me() == 1 || me() == 2) handshake_wait_for(0); //!",
        """if (me() == 0) { handshake_notify(); handshake_notify(); }
if (me() == 1) handshake_wait_for(0);
if (me() == 1) handshake_notify();
if (me() == 2) { handshake_wait_for(1); handshake_wait_for(0); }""",
        "waits for tasklet 0, for which tasklet [12] already waits", by=(1, 2),
    ),
    Mistake(
        "no_mutex", "mutex misuse",
        "mutex_lock(cache + zero); //!", "mutex_lock(first);", "was not made by MUTEX_INIT",
    ),
    Mistake(
        "endless_giving", "semaphore overflow",
        "for (uint32_t i = 0; i < 40000; ++i)\n    sem_give(&empty); //!",
        "for (uint32_t i = 0; i < 100; ++i) sem_give(&empty);",
    ),
]  # fmt: skip

_PROGRAM = [
    Mistake("division", "division error", "result = 7 / zero; //!", "result = 7 / (zero + 1);"),
    Mistake("remainder", "division error", "result = 7 % zero; //!", "result = 7 % (zero + 2);"),
    Mistake(
        "quotient", "division error",
        "result = (uint32_t)((INT_MIN + (int)zero) / ((int)zero - 1)); //!",
        "result = (uint32_t)((INT_MIN + (int)zero) / ((int)zero - 2));",
    ),
    Mistake(
        "abort", "stopped by the program", "if (zero == 0) abort(); //!", "if (zero) abort();",
        "abort",
    ),
    Mistake(
        "assertion", "stopped by the program", "assert(zero == 1); //!", "assert(zero == 0);",
        "assertion failed: zero == 1",
    ),
    Mistake(
        "halt", "stopped by the program", "if (zero == 0) halt(); //!", "if (zero) halt();", "halt",
    ),
    Mistake(
        "trap", "stopped by the program", "if (zero == 0) __builtin_trap(); //!",
        "if (zero) __builtin_trap();",
    ),
]  # fmt: skip

# What only a traced build can see.
_RACES = [
    Mistake(
        "counter", "race", "++shared; //!",
        "mutex_lock(first);\n++shared;\nmutex_unlock(first);", "'shared'", by=None,
    ),
    Mistake(
        "no_barrier", "race",
        "if (me() == 1) shared = 5; //!\nif (me() == 2) others[2] = shared; //?",
        "if (me() == 1) shared = 5;\nbarrier_wait(&all);\nif (me() == 2) others[2] = shared;",
        "'shared'", by=(1, 2),
    ),
    Mistake(
        "same_value", "race", "shared = 1; //!",
        "others[me()] = 1;", "writes 'shared', which tasklet [0-3] wrote", by=None,
    ),
    Mistake(
        "other_mutex", "race",
        """mutex_lock(me() == 0 ? first : second);
++shared; //!
mutex_unlock(me() == 0 ? first : second);""",
        """mutex_pool_lock(&pool, 6);
++shared;
mutex_pool_unlock(&pool, 6);""",
        "'shared'", by=None,
    ),
    Mistake(
        "reader_without_mutex", "race",
        """if (me() == 0) {
    others[0] = shared; //!
    return;
}
mutex_lock(first);
shared = me(); //?
mutex_unlock(first);""",
        """mutex_lock(first);
if (me() == 0) others[0] = shared;
else shared = me();
mutex_unlock(first);""",
        "'shared'", by=None,
    ),
    Mistake(
        "fill", "race",
        "if (me() == 1) memset(cache, 1, 64 + zero); //!\nif (me() == 2) cache[63] = 2; //?",
        "if (me() == 1) memset(cache, 1, 63 + zero);\nif (me() == 2) cache[63] = 2;",
        "'cache'", by=(1, 2),
    ),
    Mistake(
        "overlap_in_mram", "race",
        "mram_write(cache + 64 * me(), buffer + 8 * me(), 16); //!",
        "mram_write(cache + 64 * me(), buffer + 16 * me(), 16);",
        r"writes 'buffer' \(MRAM word 0x0800\w{4} to 0x0800\w{4}\), which tasklet [0-3] wrote",
        by=None,
    ),
    Mistake(
        "read_of_mram", "race",
        "if (me() == 1) mram_read(buffer, cache, 64); //!\n"
        "if (me() == 2) mram_write(cache + 512, buffer + 56, 8); //?",
        "if (me() == 1) mram_read(buffer, cache, 64);\nbarrier_wait(&all);\n"
        "if (me() == 2) mram_write(cache + 512, buffer + 56, 8);",
        "MRAM", by=(1, 2),
    ),
    Mistake(
        "variable_in_mram", "race",
        "if (me() == 1) table[2] = 5; //!\nif (me() == 2) others[2] = table[2]; //?",
        "if (me() == 1) table[2] = 5;\nbarrier_wait(&all);\nif (me() == 2) others[2] = table[2];",
        "MRAM", by=(1, 2),
    ),
    Mistake(
        "buffer_of_dma", "race",
        """if (me() == 1) mram_read(buffer, cache, 64); //!
if (me() == 2) others[2] = cache[60]; //?""",
        """if (me() == 1) mram_read(buffer, cache, 64);
if (me() == 1) handshake_notify();
if (me() == 2) handshake_wait_for(1);
if (me() == 2) others[2] = cache[60];""",
        "'cache'", by=(1, 2),
    ),
    Mistake(
        "who_read_where", "race",
        """if (me() == 1) others[1] = shared; //?
if (me() != 2) return;
mram_read(buffer, cache, 2048);
others[2] = shared;
shared = 3; //!""",
        "if (me() < 2) others[me()] = shared;\nbarrier_wait(&all);\nif (me() == 2) shared = 3;",
        "^writes 'shared', which tasklet 1 read", by=(2,), alone=False,
    ),
    Mistake(
        "below_wram", "WRAM out of bounds",
        "sink = __emu_wram_start[zero - 8ul]; //!", "sink = __emu_wram_start[zero];", "read of 1 B",
    ),
    Mistake(
        "code_as_data", "WRAM out of bounds",
        "sink = *(uint32_t *)(uintptr_t)mem_alloc; //!", "sink = *(uint32_t *)cache;",
        "read of 4 B",
    ),
]  # fmt: skip

PLAIN = [*_DMA, *_MEMORY, *_SYNCHRONISATION, *_PROGRAM]
TRACED = [*PLAIN, *_RACES]


# Programs without a mistake: what they add up to in `result`, declarations, and statements that all
# tasklets run. All of them synchronise, each in a way of its own.
RIGHT = {
    "a_mutex": (100, "", """
for (int i = 0; i < 25; ++i) {
    mutex_lock(first);
    ++shared;
    mutex_unlock(first);
}
barrier_wait(&all);
if (me() == 0) result = shared;"""),
    "double_buffers": (128, "uint32_t cells[2][NR_TASKLETS];", """
uint32_t now = 0;
cells[0][me()] = 1;
barrier_wait(&all);
for (int step = 0; step < 5; ++step, now ^= 1) {
    cells[now ^ 1][me()] = cells[now][(me() + 1) % 4] + cells[now][(me() + 3) % 4];
    barrier_wait(&all);
}
if (me() == 3)
    for (int i = 0; i < 4; ++i) result += cells[now][i];"""),
    "semaphores_as_signals": (42, "SEMAPHORE_INIT(filled, 0);\nSEMAPHORE_INIT(taken, 0);", """
for (uint32_t i = 0; i < 4; ++i) {
    if (me() == 1) {
        shared = 7 * i;
        sem_give(&filled);
        sem_take(&taken);
    }
    if (me() == 2) {
        sem_take(&filled);
        result += shared;
        sem_give(&taken);
    }
}"""),
    "a_semaphore_as_mutex": (4, "", """
sem_take(&turn);
++result;
sem_give(&turn);"""),
    "a_chain_of_handshakes": (10, "", """
if (me() > 0) handshake_wait_for(me() - 1);
others[me()] = (me() > 0 ? others[me() - 1] : 0) + me() + 1;
if (me() < 3) handshake_notify();
else result = others[3];"""),
    "a_pool_of_mutexes": (64, "uint32_t bins[8];", """
for (uint32_t i = 0; i < 16; ++i) {
    const uint32_t bin = (me() * 5 + i * 3) % 8;
    mutex_pool_lock(&pool, bin);
    ++bins[bin];
    mutex_pool_unlock(&pool, bin);
}
barrier_wait(&all);
if (me() == 1)
    for (int i = 0; i < 8; ++i) result += bins[i];"""),
    "trying_to_lock": (4, "", """
while (!mutex_trylock(first)) continue;
++result;
mutex_unlock(first);"""),
    "neighbouring_bytes": (0x04030201, "uint8_t bytes[4] __attribute__((aligned(4)));", """
bytes[me()] = (uint8_t)(me() + 1);
barrier_wait(&all);
if (me() == 2) memcpy(&result, bytes, 4);"""),
    "blocks_of_mram": (1 + 2 + 3 + 4, "__dma_aligned uint64_t words[NR_TASKLETS];", """
words[me()] = me() + 1;
mram_write(&words[me()], buffer + 8 * me(), 8);
barrier_wait(&all);
mram_read(buffer + 8 * ((me() + 1) % 4), &words[me()], 8);
mutex_lock(second);
result += (uint32_t)words[me()];
mutex_unlock(second);"""),
    "a_table_in_mram": (40, "", """
mutex_lock(second);
result += table[0] + table[1] + table[2] + table[3];
mutex_unlock(second);"""),
    "a_shared_heap": (6, "uint32_t *heap;", """
if (me() == 3) {
    mem_reset();
    heap = mem_alloc(4 * sizeof *heap);
}
barrier_wait(&all);
heap[me()] = me();
barrier_wait(&all);
if (me() == 0) result = heap[0] + heap[1] + heap[2] + heap[3];"""),
    "heaps_of_their_own": (4 * 8, "", """
uint32_t *mine = mem_alloc(64);
mine[15] = 8;
mutex_lock(first);
result += mine[15];
mutex_unlock(first);"""),
    "a_stack_of_another": (77, "uint32_t *volatile where;", """
uint32_t here = 0;
if (me() == 0) where = &here;
barrier_wait(&all);
if (me() == 2) *where = 77;
barrier_wait(&all);
if (me() == 0) result = here;"""),
    "an_array_on_the_stack": (0x01010101, "", """
__dma_aligned uint32_t here[8];
memset(cache + 64 * me(), 1, 32);
mram_write(cache + 64 * me(), buffer + 64 * me(), 32);
mram_read(buffer + 64 * me(), here, 32);
if (me() == 1) result = here[7];"""),
}  # fmt: skip


def right_program() -> str:
    """A program in C of which `which` selects one of `RIGHT`."""
    parts, cases = [_PRELUDE], []
    for index, (name, (_, outside, body)) in enumerate(RIGHT.items()):
        parts.append(f"{outside}\nstatic __attribute__((noipa)) void {name}(void) {{{body}\n}}")
        cases.append(f"    case {index}: {name}(); break;")
    return "\n".join([*parts, "int main(void) {\n    switch (which) {", *cases, "    }\n}\n"])


def program(mistakes: list[Mistake]) -> str:
    """A program in C of which `which` selects a part: 2k is mistake k, 2k + 1 its twin."""
    parts, cases = [_PRELUDE], []
    for index, mistake in enumerate(mistakes):
        parts.append(_marked(mistake.outside, mistake))
        for offset, kind in enumerate(("wrong", "right")):
            body = _marked(getattr(mistake, kind), mistake)
            function = f"{kind}_{mistake.name}"
            parts.append(f"static __attribute__((noipa)) void {function}(void) {{\n{body}\n}}")
            cases.append(f"    case {2 * index + offset}: if ({mistake.runs}) {function}(); break;")
    parts.append("int main(void) {\n    switch (which) {")
    parts += [*cases, "    }", "    finished[me()] = 1;", "    return 0;", "}", ""]
    return "\n".join(parts)


def _marked(text: str, mistake: Mistake) -> str:
    """Markers of the text, made unique."""
    return text.replace("//!", f"// ! {mistake.name}").replace("//?", f"// ? {mistake.name}")


def marked_line(source: str, mistake: Mistake, mark: str) -> int | None:
    """Number of the line with a mistake's mark, "!" or "?"; None if there is no such mark."""
    for number, line in enumerate(source.splitlines(), 1):
        if line.endswith(f"// {mark} {mistake.name}"):
            return number
    return None
