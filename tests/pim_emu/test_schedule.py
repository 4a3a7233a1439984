"""Order and time: seeds, interleavings, what memory keeps, and the modelled cycles.

Cycles are compared with closed forms from the machine's constants, never with the emulator's own.
"""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sdk_present import needs_sdk

import pim_emu
from pim_emu.cost.pipeline import round_robin_cycles

pytestmark = [needs_sdk, pytest.mark.usefixtures("settings")]

MACHINE = pim_emu.load_machine()
PATTERN = bytes.fromhex("deadbeeffeedface")  # of memory that nobody has written


# --- Order ---

ORDER = """
#include <alloc.h>
#include <defs.h>
#include <mram.h>
#include <mutex.h>
#include <stdint.h>
#include <stdio.h>
__mram_noinit uint8_t rows[24 * 256];
__host uint32_t order[24], next;
MUTEX_INIT(guard);
int main(void) {
    uint8_t *row = mem_alloc(256);
    for (uint32_t i = 0; i < 5; ++i) mram_read(rows + 256 * me(), row, 8 << (i + me()) % 6);
    printf("%u ", me());
    mutex_lock(guard);
    order[next++] = me();
    mutex_unlock(guard);
}
"""

SCRIPT = """
import json, sys
import numpy as np
import pim_emu

pim_emu.configure(seed=int(sys.argv[2]), random=sys.argv[3] == "random")
found = pim_emu.run(sys.argv[1], dpus=9, gather={"order": (np.uint32, 12)})
cycles = [counters.cycles for counters in found.counters]
print(json.dumps([found.logs, cycles, found["order"].tolist()]))
"""


@pytest.fixture(scope="module")
def order() -> pim_emu.DpuProgram:
    return pim_emu.build(ORDER, tasklets=12)


def outcome(program: pim_emu.DpuProgram, seed: int, mode: str, workers: int) -> list:
    """Logs, cycles and results of nine DPUs, from a process of its own."""
    folder = Path(pim_emu.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(program.path), str(seed), mode],
        env={**os.environ, "PIM_EMU_WORKERS": str(workers)},
        capture_output=True, text=True, check=True, cwd=folder,
    )  # fmt: skip
    return json.loads(done.stdout)


@pytest.mark.parametrize("mode", ["time", "random"])
def test_a_seed_decides_everything_whatever_the_workers(order: pim_emu.DpuProgram, mode: str):
    alone = outcome(order, 7, mode, workers=1)
    assert outcome(order, 7, mode, workers=2) == alone
    assert outcome(order, 7, mode, workers=2) == alone
    assert outcome(order, 8, mode, workers=1)[0] != alone[0]
    logs, _, results = alone
    for log, result in zip(logs, results, strict=True):
        assert sorted(result) == sorted(map(int, log.split())) == list(range(12))


def test_seeds_and_dpus_draw_orders_of_their_own(order: pim_emu.DpuProgram):
    for random in (False, True):
        seen = set()
        for seed in range(1, 6):
            pim_emu.configure(seed=seed, random=random)
            seen.update(pim_emu.run(order, dpus=4).logs)
        assert len(seen) > 15, random  # of 20


def test_tasklets_run_in_the_order_of_their_modelled_clocks():
    program = pim_emu.build(
        """
#include <defs.h>
#include <mram.h>
#include <stdio.h>
__mram_noinit uint64_t word;
int main(void) {
    __dma_aligned uint64_t here;
    for (unsigned int i = me(); i < 10; ++i) mram_read(&word, &here, 8);
    printf("%u ", me());
}
""",
        tasklets=10,
    )
    for seed in range(5):
        pim_emu.configure(seed=seed)
        assert pim_emu.run(program).logs == ["9 8 7 6 5 4 3 2 1 0 "]


def test_tasklets_are_woken_in_the_order_in_which_they_came():
    program = pim_emu.build(
        """
#include <barrier.h>
#include <defs.h>
#include <mutex.h>
#include <stdio.h>
BARRIER_INIT(all, NR_TASKLETS);
MUTEX_INIT(guard);
int main(void) {
    printf("%u ", me());
    mutex_lock(guard);
    printf("%u ", me());
    barrier_wait(&all);
    printf("%u ", me());
}
""".replace("    barrier", "    mutex_unlock(guard);\n    barrier"),
        tasklets=8,
    )
    seen = set()
    for seed in range(6):
        pim_emu.configure(seed=seed)
        [log] = pim_emu.run(program).logs
        words = log.split()
        came = list(dict.fromkeys(words))
        # The last to come to the barrier goes on, then the others in their order.
        assert words[-8:] == came[-1:] + came[:-1] or words[-8:] == came
        seen.add(log)
    assert len(seen) == 6


# Latent races, as published programs have them: the last tasklet moves the place on after its own
# transfer, while others use it. What comes out depends on the order alone.
LATENT = """
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <stdint.h>
__mram_noinit uint64_t input[64 * 24], output[64 * 24 + 256];
__host uint32_t place, sum;
__host uint64_t trace[24];
BARRIER_INIT(all, NR_TASKLETS);
int main(void) {
    __dma_aligned uint64_t row[64];
    for (uint32_t round = 0; round < 4; ++round) {
        const uint32_t bytes = 8u << (me() + round) % 7;
        mram_read(&input[64 * me()], row, bytes);
        const uint32_t before = sum;
        if (ARRIVES) barrier_wait(&all);
        mram_write(row, &output[place + me()], 8);
        mram_read(&output[(place + 5 * me()) % 1024], row, 8);
        trace[me()] = trace[me()] * 31 + row[0] + place;
        sum = before + 1;
        if (me() == NR_TASKLETS - 1) place += NR_TASKLETS;
    }
}
"""


@pytest.mark.parametrize("random", [False, True])
@pytest.mark.parametrize(
    ("source", "how"),
    [
        (LATENT, {"define": {"ARRIVES": 0}}),
        (LATENT, {"define": {"ARRIVES": 1}}),
        (LATENT, {"define": {"ARRIVES": 1}, "fast": True}),
        (ORDER, {"traced": True}),
    ],
    ids=["free", "barriers", "fast", "traced"],
)
def test_checks_do_not_change_the_order(source: str, how: dict, random: bool):
    program = pim_emu.build(source, tasklets=12, **how)
    given = {"input": np.arange(1536, dtype=np.uint64), "output": np.arange(1792, dtype=np.uint64)}
    shapes = {"trace": (np.uint64, 12), "sum": (np.uint32, 1), "output": (np.uint64, 1024)}
    if source is ORDER:
        given, shapes = {}, {"order": (np.uint32, 12)}
    for seed in range(5):
        found = []
        for checks in (True, False):
            pim_emu.configure(seed=seed, random=random, checks=checks)
            result = pim_emu.run(program, dpus=3, broadcast=given, gather=shapes)
            found.append(([result[x].tolist() for x in shapes], result.counters, result.logs))
        assert found[0] == found[1]


POLLS = """
#include <defs.h>
#include <mram.h>
#include <mutex.h>
#include <stdint.h>
MUTEX_INIT(guard);
__mram_noinit uint64_t flags[2];
__host uint32_t once, found;
int main(void) {
    __dma_aligned uint64_t word = 0;
    if (me() == 1) {
        for (int i = 0; i < 20; ++i) {
            mutex_lock(guard);
            mutex_unlock(guard);
        }
        word = 7;
        mram_write(&word, &flags[0], 8);
        return 0;
    }
    if (once) mram_read(&flags[1], &word, 8); /* then no round goes through here */
    do mram_read(&flags[0], &word, 8);
    while (word != 7);
    found = 1;
}
"""


@pytest.mark.parametrize("once", [0, 1])
@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize("random", [True, False])
def test_a_tasklet_that_polls_lets_others_run(once: int, checks: bool, random: bool):
    pim_emu.configure(checks=checks, random=random)
    program = pim_emu.build(POLLS, tasklets=2)
    values = {"once": np.uint32(once), "flags": np.zeros(2, np.uint64)}
    assert pim_emu.run(program, broadcast=values, gather={"found": (np.uint32, ())})["found"] == 1


# --- Interleavings ---

# Two planted races: a read and a write around a transfer, and a table that is used before it is
# known to be complete. In the order of modelled time the second one goes well.
RACES = """
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <mutex.h>
#include <stdint.h>
__mram_noinit uint64_t rows[24];
__host uint32_t counter, sum;
uint32_t table[4];
BARRIER_INIT(all, NR_TASKLETS);
MUTEX_INIT(guard);
static void lock(void) { if (LOCKED) mutex_lock(guard); }
static void unlock(void) { if (LOCKED) mutex_unlock(guard); }
int main(void) {
    __dma_aligned uint64_t row;
    if (COUNTS) {
        for (int i = 0; i < 3; ++i) {
            lock();
            const uint32_t before = counter;
            mram_read(&rows[me()], &row, 8);
            counter = before + 1;
            unlock();
        }
        return 0;
    }
    if (me() == 0) {
        for (uint32_t i = 0; i < 4; ++i) {
            mram_read(&rows[i], &row, 8);
            table[i] = i + 1;
        }
    }
    if (LOCKED) barrier_wait(&all);
    if (me() == 1) {
        uint32_t late = 1;
        for (uint32_t i = 0; i < 1000; ++i) __asm__ volatile("" : "+r"(late));
        mram_read(&rows[9], &row, 8); /* what has run before it is late now */
        for (uint32_t i = 0; i < 4; ++i) sum += table[i];
    }
}
"""


def build_races(counts: bool, locked: bool, traced: bool = False) -> pim_emu.DpuProgram:
    macros = {"COUNTS": int(counts), "LOCKED": int(locked)}
    return pim_emu.build(RACES, tasklets=4, define=macros, traced=traced)


def results_of_seeds(program: pim_emu.DpuProgram, symbol: str) -> list[int]:
    found = []
    for seed in range(1, 101):
        pim_emu.configure(seed=seed, random=True)
        found.append(int(pim_emu.run(program, gather={symbol: (np.uint32, ())})[symbol][0]))
    return found


@pytest.mark.parametrize(("counts", "symbol", "right"), [(True, "counter", 12), (False, "sum", 10)])
def test_random_interleavings_show_a_planted_race(counts: bool, symbol: str, right: int):
    wrong = results_of_seeds(build_races(counts, locked=False), symbol)
    assert any(value != right for value in wrong)
    assert results_of_seeds(build_races(counts, locked=True), symbol) == [right] * 100


def test_in_time_the_second_race_goes_well():
    """So that it is the random order that shows it."""
    program = build_races(counts=False, locked=False)
    assert pim_emu.run(program, gather={"sum": (np.uint32, ())})["sum"] == 10


@pytest.mark.parametrize("counts", [True, False])
def test_a_traced_build_finds_the_race_in_the_first_order(counts: bool):
    with pytest.raises(pim_emu.EmulatorFault, match="race: "):
        pim_emu.run(build_races(counts, locked=False, traced=True))
    right = build_races(counts, locked=True, traced=True)
    for seed in range(20):
        pim_emu.configure(seed=seed, random=True)
        pim_emu.run(right)


# Between its two accesses to the counter, nothing of this program is a call.
TIGHT = """
#include <defs.h>
#include <stdint.h>
__host volatile uint32_t counter;
int main(void) {
    for (int i = 0; i < 3; ++i) ++counter;
}
"""


def test_random_interleavings_of_a_traced_build_split_a_single_increment():
    program = pim_emu.build(TIGHT, tasklets=4, traced=True)
    assert min(results_of_seeds(program, "counter")) < 12
    plain = pim_emu.build(TIGHT, tasklets=4)
    assert results_of_seeds(plain, "counter") == [12] * 100  # nothing else runs meanwhile


# --- What memory holds ---

MEMORY = """
#include <alloc.h>
#include <defs.h>
#include <mram.h>
#include <stdint.h>
__mram_noinit uint64_t kept[8];
__mram uint64_t given[2] = {11, 12};
__host uint64_t found[8], launches = 100, word;
__host uint32_t address, initialised = 5;
uint64_t zeros[4];
int main(void) {
    uint64_t *fresh = mem_alloc(64);
    for (int i = 0; i < 8; ++i) found[i] = fresh[i];
    ++launches;
    ++initialised;
    fresh[0] = zeros[0]++;
    address = (uint32_t)(uintptr_t)&kept[3];
    kept[3] = launches;
    given[0] += 1;
    word = *(__mram_ptr uint64_t *)(uintptr_t)address;
    mem_reset();
}
"""


@pytest.fixture(scope="module")
def memory() -> pim_emu.DpuProgram:
    return pim_emu.build(MEMORY)


def test_what_nobody_has_written_holds_the_pattern(memory: pim_emu.DpuProgram):
    with pim_emu.DpuSet(3, memory) as dpus:
        kept = dpus.gather("kept", np.uint8, 64)
        assert kept.tobytes() == PATTERN * 24
        dpus.launch()
        assert dpus.gather("found", np.uint8, 64).tobytes() == PATTERN * 24
        far = dpus.gather("__sys_used_mram_end", np.uint8, 4096, offset=60 << 20)
        assert far.tobytes() == PATTERN * (3 * 512)


def test_variables_and_the_heap_persist_between_launches_and_mram_across_loads(
    memory: pim_emu.DpuProgram,
):
    with pim_emu.DpuSet(3, memory) as dpus:
        for launch in range(1, 4):
            dpus.launch()
            assert dpus.gather("launches", np.uint64).tolist() == [100 + launch] * 3
            assert dpus.gather("initialised", np.uint32).tolist() == [5 + launch] * 3
            assert dpus.gather("given", np.uint64, 2).tolist() == [[11 + launch, 12]] * 3
        # Of the heap, the last launch found what the one before it had left.
        heap = dpus.gather("found", np.uint64, 8)
        assert heap[:, 0].tolist() == [1] * 3
        assert heap[:, 1:].tobytes() == PATTERN * (7 * 3)
        dpus.load(memory)
        assert dpus.gather("launches", np.uint64).tolist() == [100] * 3
        assert dpus.gather("initialised", np.uint32).tolist() == [5] * 3
        assert dpus.gather("given", np.uint64, 2).tolist() == [[11, 12]] * 3
        assert dpus.gather("kept", np.uint64, 8)[:, 3].tolist() == [103] * 3
        dpus.launch()
        assert dpus.gather("found", np.uint8, 64).tobytes() == PATTERN * 24


def test_an_mram_address_survives_32_bits(memory: pim_emu.DpuProgram):
    with pim_emu.DpuSet(2, memory) as dpus:
        dpus.launch()
        assert dpus.gather("word", np.uint64).tolist() == [101] * 2
        addresses = dpus.gather("address", np.uint32)
        assert addresses[0] == addresses[1]
        assert 0x08000000 <= addresses[0] < 0x08000000 + MACHINE.mram_bytes


ISLANDS = """
#include <alloc.h>
#include <mram.h>
#include <stdint.h>
__mram_noinit uint64_t sea[512];
__host uint64_t mine, table[64], found[4];
uint64_t zeros[64];
int main(void) {
    __dma_aligned uint64_t block[64];
    uint64_t *heap = mem_alloc(512);
    found[0] = heap[63];
    found[1] = zeros[63];
    found[2] = table[63];
    mram_read(&sea[448], block, 512);
    found[3] = block[63];
    for (int i = 0; i < 64; ++i) heap[i] = zeros[i] = table[i] = block[i] = mine;
    mram_write(block, &sea[448], 512);
}
"""


def test_dpus_do_not_see_each_other():
    program = pim_emu.build(ISLANDS)
    pattern = int.from_bytes(PATTERN, "little")
    with pim_emu.DpuSet(7, program) as dpus:
        for launch in range(3):  # an island finds what it has left itself
            mine = np.arange(7, dtype=np.uint64) + 10 * launch
            dpus.scatter("mine", mine)
            dpus.launch()
            found = dpus.gather("found", np.uint64, 4)
            if launch == 0:
                assert found.tolist() == [[pattern, 0, 0, pattern]] * 7
            else:
                # mem_alloc goes on: the heap is fresh.
                before = mine.astype(int) - 10
                assert found.tolist() == [[pattern, one, one, one] for one in before]
            assert dpus.gather("table", np.uint64, 64).tolist() == [[one] * 64 for one in mine]


# --- Modelled time ---

WORK = """
#include <defs.h>
#include <mram.h>
#include <perfcounter.h>
#include <stdint.h>
__host uint32_t rounds[24], reads, writes, bytes, sums[24];
__host uint64_t elapsed;
__mram_noinit uint8_t rows[24][2048];
__dma_aligned uint8_t cache[NR_TASKLETS][2048];
int main(void) {
    if (me() == 0) perfcounter_config(COUNT_CYCLES, true);
    uint32_t sum = me();
    for (uint32_t i = rounds[me()]; i > 0; --i) {
        sum += sum >> 3;
        __asm__ volatile("" : "+r"(sum)); /* as many instructions, whatever gcc knows */
    }
    sums[me()] = sum;
    for (uint32_t i = 0; i < reads; ++i) mram_read(rows[me()], cache[me()], bytes);
    for (uint32_t i = 0; i < writes; ++i) mram_write(cache[me()], rows[me()], bytes);
    if (me() == 0) elapsed = perfcounter_get();
}
"""


@functools.cache
def _work_program(tasklets: int) -> pim_emu.DpuProgram:
    return pim_emu.build(WORK, tasklets=tasklets, stack_bytes=512)


def work(
    tasklets: int, rounds: int | list[int] = 0, reads: int = 0, writes: int = 0, size: int = 8
) -> tuple[pim_emu.Counters, int]:
    """Counters of one DPU, and tasklet 0's perfcounter at its end."""
    each = np.zeros(24, np.uint32)
    each[:tasklets] = rounds
    values = {"rounds": each, "reads": reads, "writes": writes, "bytes": size}
    found = pim_emu.run(
        _work_program(tasklets),
        broadcast={name: np.asarray(value, np.uint32) for name, value in values.items()},
        gather={"elapsed": (np.uint64, ())},
    )
    return found.counters[0], int(found["elapsed"][0])


def test_a_single_tasklet_takes_the_reissue_interval_for_each_instruction():
    instructions = [work(1, rounds)[0].instructions for rounds in (1000, 2000, 4000)]
    per_round = (instructions[1] - instructions[0]) / 1000
    assert per_round == (instructions[2] - instructions[1]) / 2000
    assert per_round in (3, 4, 5)  # shift, add, count down and jump
    for rounds in (0, 1000, 4000):
        counters, elapsed = work(1, rounds)
        assert counters.cycles == MACHINE.pipeline_reissue * counters.instructions
        assert elapsed % 16 == 0
        assert 0 < elapsed < counters.cycles
    growth = work(1, 4000)[1] - work(1, 1000)[1]
    assert abs(growth - MACHINE.pipeline_reissue * per_round * 3000) < 16  # its grain


@pytest.mark.parametrize("size", [8, 64, 1024, 2048])
def test_a_single_tasklet_waits_out_each_transfer(size: int):
    read = MACHINE.dma_read_alpha + MACHINE.dma_cycles_per_byte * size
    write = MACHINE.dma_write_alpha + MACHINE.dma_cycles_per_byte * size
    counters, _ = work(1, reads=20, writes=30, size=size)
    issue = MACHINE.pipeline_reissue * counters.instructions
    assert counters.cycles == pytest.approx(issue + 20 * read + 30 * write, abs=1)
    assert (counters.dma_reads, counters.dma_read_bytes) == (20, 20 * size)
    assert (counters.dma_writes, counters.dma_write_bytes) == (30, 30 * size)


@pytest.mark.parametrize("tasklets", [2, 8, 11, 16, 24])
def test_tasklets_share_the_pipeline(tasklets: int):
    rounds = 264_000 // tasklets
    counters, _ = work(tasklets, rounds)
    expected = round_robin_cycles(np.full(tasklets, counters.instructions / tasklets), 11)
    assert counters.cycles == pytest.approx(expected, rel=0.01)


def test_eleven_tasklets_fill_the_pipeline():
    cycles = {tasklets: work(tasklets, 264_000 // tasklets)[0].cycles for tasklets in (1, 11, 16)}
    assert cycles[1] / cycles[11] == pytest.approx(11, rel=0.01)
    assert cycles[11] / cycles[16] == pytest.approx(1, rel=0.01)


@pytest.mark.parametrize("tasklets", [1, 12, 24])
def test_a_tasklet_that_is_stopped_is_charged_like_the_others(tasklets: int):
    program = pim_emu.build(
        """
#include <defs.h>
#include <stdint.h>
#include <stdlib.h>
__host uint32_t stops;
int main(void) {
    for (volatile uint32_t i = 0; i < 10000; ++i) continue;
    if (stops) abort();
}
""",
        tasklets=tasklets,
    )
    cycles = []
    for stops in (0, 1):
        with pim_emu.DpuSet(1, program) as dpus:
            dpus.broadcast("stops", np.uint32(stops))
            if stops:
                with pytest.raises(pim_emu.EmulatorFault, match="stopped by the program"):
                    dpus.launch()
            else:
                dpus.launch()
            cycles.append(dpus.counters()[0].cycles)
    assert cycles[1] == pytest.approx(cycles[0], rel=0.01)


def test_unequal_tasklets_never_exceed_the_pipeline():
    """One instruction a cycle, and one of a tasklet in eleven."""
    loads = [1000 * (tasklet + 1) for tasklet in range(24)]
    counters, _ = work(24, loads)
    each = np.array(loads) * counters.instructions / sum(loads)
    assert counters.cycles >= counters.instructions
    assert counters.cycles == pytest.approx(round_robin_cycles(each, 11), rel=0.01)


@pytest.mark.parametrize("size", [8, 256, 2048])
def test_streaming_saturates_the_dma_engine(size: int):
    smallest = MACHINE.clock_hz * MACHINE.dma_min_bytes / MACHINE.random_read_bandwidth
    occupied = smallest + MACHINE.dma_cycles_per_byte * (size - MACHINE.dma_min_bytes)
    counters, _ = work(16, reads=60, size=size)
    assert counters.cycles >= 960 * occupied
    assert counters.cycles == pytest.approx(960 * occupied, rel=0.05)
    assert counters.dma_cycles == pytest.approx(960 * occupied, rel=0.05)
    # A tasklet alone leaves the engine idle while it waits for the rest of the latency.
    alone, _ = work(1, reads=60, size=size)
    assert alone.dma_cycles == pytest.approx(60 * occupied, rel=0.05)
    assert alone.cycles > alone.dma_cycles


def test_compute_hides_behind_transfers_and_transfers_behind_compute():
    streams = work(16, reads=60, size=2048)[0].cycles
    assert work(16, rounds=400, reads=60, size=2048)[0].cycles < 1.1 * streams
    computes = work(16, rounds=100_000)[0].cycles
    assert work(16, rounds=100_000, reads=3, size=2048)[0].cycles < 1.1 * computes


@pytest.mark.parametrize("tasklets", [1, 16])
def test_a_counter_that_is_reset_begins_at_zero(tasklets: int):
    program = pim_emu.build(
        """
#include <defs.h>
#include <perfcounter.h>
__host uint64_t values[3];
int main(void) {
    if (me() != 0) {
        for (int i = 0; i < 100; ++i) perfcounter_get();
        return 0;
    }
    values[0] = perfcounter_config(COUNT_CYCLES, true);
    values[1] = perfcounter_get();
    values[2] = perfcounter_get();
}
""",
        tasklets=tasklets,
    )
    reset, first, second = pim_emu.run(program, gather={"values": (np.uint64, 3)})["values"][0]
    assert reset == 0
    assert first <= second <= 100 * 16
    assert first % 16 == second % 16 == 0


def test_the_seed_does_not_change_the_work():
    base, _ = work(16, rounds=500, reads=20, size=256)
    for seed in range(1, 5):
        pim_emu.configure(seed=seed)
        counters, _ = work(16, rounds=500, reads=20, size=256)
        assert (counters.instructions, counters.dma_reads) == (base.instructions, base.dma_reads)
        assert counters.cycles == pytest.approx(base.cycles, rel=0.02)
