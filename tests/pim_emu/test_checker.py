"""The checker: every wrong program is reported by name, tasklet and line, and no right one is.

Each mistake of `mistakes.py` is made by one DPU of three while the others run the program's right
twin, which must end; afterwards the set is loaded again and all DPUs run the twin.
"""

import ctypes
import re

import numpy as np
import pytest
from mistakes import (
    PLAIN,
    RIGHT,
    TASKLETS,
    TRACED,
    Mistake,
    marked_line,
    program,
    right_program,
)
from sdk_present import needs_sdk

import pim_emu
from pim_emu import host_library as lib
from pim_emu.toolchain.elf import ElfFile

pytestmark = [needs_sdk, pytest.mark.usefixtures("strict")]

MESSAGE = re.compile(r"(.+?): DPU (\d+), tasklet (\d+), ([\w.-]+):(\d+) \((\w+)\): (.+)")
WAITS = re.compile(r"; tasklet (\d+), ([\w.-]+):(\d+) \((\w+)\), waits ([^;]+)")
OTHER_PLACE = re.compile(r"which tasklet (\d+) (?:wrote|read) at ([\w.-]+):(\d+)")
DPU_FAULT, TOO_MANY_TASKLETS, INVALID_WRAM_ACCESS = 23, 38, 8  # of dpu_error_t


@pytest.fixture
def strict(settings: None) -> None:
    """Make transfers that the documentation forbids faults."""
    pim_emu.configure(dma="strict")


class Bench:
    """A program with mistakes, and the lines where they are made."""

    def __init__(self, mistakes: list[Mistake], traced: bool) -> None:
        self.mistakes = mistakes
        self.source = program(mistakes)
        self.program = pim_emu.build(self.source, tasklets=TASKLETS, traced=traced)

    def number(self, mistake: Mistake) -> int:
        return 2 * self.mistakes.index(mistake)

    def place(self, mistake: Mistake, mark: str) -> tuple[str, int | None]:
        return f"{self.program.path.name}-0.c", marked_line(self.source, mistake, mark)


@pytest.fixture(scope="module")
def plain() -> Bench:
    return Bench(PLAIN, traced=False)


@pytest.fixture(scope="module")
def traced() -> Bench:
    return Bench(TRACED, traced=True)


def check_message(bench: Bench, mistake: Mistake, message: str) -> None:
    place, by = bench.place(mistake, "!"), mistake.by or range(TASKLETS)
    if mistake.fault == "deadlock":
        assert message.startswith("deadlock: DPU 1; ")
        waiting = WAITS.findall(message)
        assert waiting, message
        for tasklet, file, line, _, _ in waiting:
            assert (int(tasklet) in by, (file, int(line))) == (True, place), message
        assert any(re.search(mistake.says, reason) for *_, reason in waiting), message
        return
    match = MESSAGE.fullmatch(message)
    assert match, message
    name, dpu, tasklet, file, line, _, rest = match.groups()
    assert (name, dpu) == (mistake.fault, "1"), message
    assert int(tasklet) in by, message
    assert re.search(mistake.says, rest), message
    found, other = (file, int(line)), OTHER_PLACE.search(rest)
    if mistake.fault != "race":
        assert found == place, message
        return
    assert other, message
    assert int(other[1]) in range(TASKLETS), message
    assert other[1] != tasklet, message
    places, partner = {found, (other[2], int(other[3]))}, bench.place(mistake, "?")
    assert places == ({place, partner} if partner[1] else {place}), message


def make(bench: Bench, mistake: Mistake) -> None:
    number = bench.number(mistake)
    with pim_emu.DpuSet(3, bench.program) as dpus:
        dpus.scatter("which", np.array([number + 1, number, number + 1], np.uint32))
        with pytest.raises(pim_emu.EmulatorFault) as caught:
            dpus.launch()
        assert (caught.value.fault, caught.value.dpu) == (mistake.fault, 1)
        check_message(bench, mistake, str(caught.value))
        finished = dpus.gather("finished", np.uint32, TASKLETS)
        assert finished[[0, 2]].all()
        assert not finished[1].all()
        # Loaded again, the same DPUs run what is right.
        dpus.load(bench.program)
        dpus.broadcast("which", np.uint32(number + 1))
        dpus.launch()
        assert dpus.gather("finished", np.uint32, TASKLETS).all()


@pytest.mark.parametrize("mistake", PLAIN, ids=lambda mistake: mistake.name)
def test_a_mistake_is_reported(plain: Bench, mistake: Mistake):
    make(plain, mistake)


@pytest.mark.parametrize("mistake", TRACED, ids=lambda mistake: mistake.name)
def test_a_mistake_is_reported_by_a_traced_program(traced: Bench, mistake: Mistake):
    make(traced, mistake)


IN_LIBRARY = {
    "format": 'printf("%s", bad);',
    "late_format": 'printf("%d %s %s", 1, "x", bad);',
    "length": "sink = (uint32_t)strlen(bad);",
    "copy": "memcpy(bad, (void *)&sink, eight + 100);",
    "move": "memmove(bad, (void *)&sink, eight + 100);",
    "fill": "memset(bad, 1, eight + 100);",
    "compare": "sink = (uint32_t)memcmp(bad, (void *)&sink, eight);",
    "search": "sink = (uint32_t)(uintptr_t)memchr(bad, 1, 100);",
    "string": "strcpy((char *)&sink, bad);",
    "join": "strcat((char *)&sink, bad);",
    "number": "sink = (uint32_t)atoi(bad);",
    "long_number": "sink = (uint32_t)strtol(bad, 0, 10);",
}
LIBRARY = """
#include <defs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
__host uint32_t kind, eight = 8, sink;
static __attribute__((noinline)) uint32_t deep(uint32_t n) {
    volatile uint32_t keep[4];
    keep[n & 3] = n; /* return addresses of this are left on the stack */
    return n == 0 ? 1 : (deep(n - 1) + keep[n & 3]) ^ n;
}
int main(void) {
    char *const bad = (char *)(uintptr_t)eight;
    sink = deep(12);
    switch (kind) {
@
    }
    return 0;
}
""".replace(
    "@", "\n".join(f"    case {i}: {call} break;" for i, call in enumerate(IN_LIBRARY.values()))
)


@pytest.mark.parametrize("optimise", ["-O0", "-O2", "-O3"])
def test_a_fault_in_the_library_names_the_line_that_called_it(optimise: str):
    program = pim_emu.build(LIBRARY, optimise=optimise, stack_bytes=4096)
    first = LIBRARY[: LIBRARY.index("    case 0")].count("\n") + 1
    with pim_emu.DpuSet(1, program) as dpus:
        for index in range(len(IN_LIBRARY)):
            dpus.load(program)
            dpus.broadcast("kind", np.uint32(index))
            with pytest.raises(pim_emu.EmulatorFault, match=rf"-0.c:{first + index} \(main\)"):
                dpus.launch()


@pytest.mark.parametrize(
    "loop",
    [
        "for (;;) sink += strlen(text);",
        pytest.param("for (;;) memset(text, 0, 30000);", marks=pytest.mark.slow),
    ],
)
def test_a_loop_in_the_library_is_stopped(loop: str):
    program = pim_emu.build(
        f"""
#include <defs.h>
#include <stdint.h>
#include <string.h>
__host uint32_t sink;
char text[30000];
int main(void) {{
    memset(text, 'a', sizeof text - 1);
    {loop}
}}
"""
    )
    pim_emu.configure(timeout_seconds=1)
    with pytest.raises(
        pim_emu.EmulatorFault, match=r"no progress: .*-0.c:9 \(main\): 1 s without a call"
    ):
        pim_emu.run(program)


def test_many_volatile_variables_hide_no_barrier():
    program = pim_emu.build(
        """
#include <barrier.h>
#include <defs.h>
#include <stdint.h>
BARRIER_INIT(all, NR_TASKLETS);
volatile uint8_t many[3000];
uint32_t shared;
int main(void) {
    if (me() == 0) for (uint32_t i = 0; i < sizeof many; ++i) many[i] = 1;
    if (me() == 0) shared = 5;
    barrier_wait(&all);
    if (me() == 1) ++shared;
}
""",
        tasklets=2,
        traced=True,
    )
    pim_emu.run(program)


TAIL_CALLS = """
#include <defs.h>
#include <mram.h>
#include <stdint.h>
__host uint32_t deep, offset, result;
__mram_noinit uint8_t buffer[64];
static __attribute__((noipa)) uint32_t sum(uint32_t n, uint32_t up_to_now) {
    return n == 0 ? up_to_now : sum(n - 1, up_to_now + n);
}
static __attribute__((noipa)) void fetch(uint8_t *to) {
    mram_read(buffer + offset, to, 8); /* here */
}
int main(void) {
    __dma_aligned uint8_t cache[8];
    result = sum(deep, 0);
    fetch(cache);
    return cache[0] == 0;
}
"""


@pytest.mark.parametrize("optimise", ["-O2", "-O3"])
@pytest.mark.parametrize("fast", [False, True])
def test_tail_calls_cost_no_stack_and_keep_their_line(optimise: str, fast: bool):
    program = pim_emu.build(TAIL_CALLS, optimise=optimise, fast=fast)
    values = {"deep": np.uint32(60_000), "offset": np.uint32(0)}
    found = pim_emu.run(program, broadcast=values, gather={"result": (np.uint32, ())})
    assert found["result"] == 60_000 * 60_001 // 2
    line = TAIL_CALLS[: TAIL_CALLS.index("/* here")].count("\n") + 1
    with pytest.raises(pim_emu.EmulatorFault, match=rf"-0.c:{line} \(fetch\): MRAM address"):
        pim_emu.run(program, broadcast={"offset": np.uint32(4)})


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "traced"])
def right(request: pytest.FixtureRequest) -> pim_emu.DpuProgram:
    return pim_emu.build(right_program(), tasklets=TASKLETS, traced=request.param)


@pytest.mark.parametrize("index", range(len(RIGHT)), ids=list(RIGHT))
def test_nothing_right_is_reported(right: pim_emu.DpuProgram, index: int):
    expected = list(RIGHT.values())[index][0]
    for seed in range(8):
        pim_emu.configure(seed=seed, random=seed > 0)
        # Each DPU has an interleaving of its own.
        found = pim_emu.run(
            right, dpus=3, broadcast={"which": np.uint32(index)}, gather={"result": (np.uint32, ())}
        )
        assert found["result"].tolist() == [expected] * 3, f"seed {seed}"


def test_the_twins_are_right_in_any_order(traced: Bench):
    for seed in range(1, 4):
        pim_emu.configure(seed=seed, random=True)
        with pim_emu.DpuSet(len(TRACED), traced.program) as dpus:
            dpus.scatter("which", np.arange(1, 2 * len(TRACED), 2, np.uint32))
            dpus.launch()
            assert dpus.gather("finished", np.uint32, TASKLETS).all(), f"seed {seed}"


def test_every_mistake_is_found_in_any_order(traced: Bench):
    for seed in range(1, 4):
        pim_emu.configure(seed=seed, random=True)
        for mistake in TRACED:
            with pytest.raises(pim_emu.EmulatorFault) as caught:
                pim_emu.run(traced.program, broadcast={"which": np.uint32(traced.number(mistake))})
            assert caught.value.fault == mistake.fault, f"seed {seed}"


SPIN = """
#include <defs.h>
#include <stdint.h>
__host uint32_t result;
volatile uint32_t flag;
uint32_t data;
int main(void) {
    if (me() == 0)
        while (flag == 0) continue; //!
    if (me() == 0) result = data;
    if (me() == 1) data = 5;
    if (me() == 1) flag = 1;
}
"""


def test_a_tasklet_that_spins_is_stopped():
    """Nothing else runs between two calls; a traced build calls at each load and store."""
    pim_emu.configure(timeout_seconds=1)
    program = pim_emu.build(SPIN, tasklets=2)
    with pytest.raises(pim_emu.EmulatorFault, match="no progress: ") as caught:
        pim_emu.run(program)
    line = next(number for number, text in enumerate(SPIN.splitlines(), 1) if "//!" in text)
    match = MESSAGE.fullmatch(str(caught.value))
    assert match, str(caught.value)
    assert match.groups()[1:6] == ("0", "0", f"{program.path.name}-0.c", str(line), "main")
    assert "traced build" in match[7]


def test_a_traced_tasklet_may_spin_on_a_volatile_variable():
    pim_emu.configure(timeout_seconds=5)
    program = pim_emu.build(SPIN, tasklets=2, traced=True)
    for seed in range(5):
        pim_emu.configure(seed=seed, random=seed > 0)
        found = pim_emu.run(program, dpus=2, gather={"result": (np.uint32, ())})
        assert found["result"].tolist() == [5, 5]


def test_an_endless_loop_without_memory_is_stopped():
    pim_emu.configure(timeout_seconds=1)
    program = pim_emu.build("\n#include <defs.h>\nint main(void) { while (me() == 1) continue; }\n",
                            tasklets=2, traced=True)  # fmt: skip
    with pytest.raises(pim_emu.EmulatorFault, match="no progress: DPU 0, tasklet 1, "):
        pim_emu.run(program)


FITTING = """
#include <stdint.h>
#include <defs.h>
__host uint8_t bytes[%d];
int main(void) { bytes[me()] = 1; }
"""


def test_wram_is_held_to_its_size_when_the_program_is_linked():
    # 24 stacks of 1,024 B leave 40,960 B of 65,536 B; the runtime takes a little of it.
    pim_emu.run(pim_emu.build(FITTING % 40_700, tasklets=24), gather={"bytes": (np.uint8, 24)})
    with pytest.raises(pim_emu.BuildError, match="WRAM overflow") as caught:
        pim_emu.build(FITTING % 40_961, tasklets=24)
    sizes = re.search(
        r"globals ([\d,]+) B \+ stacks ([\d,]+) B exceed ([\d,]+) B", str(caught.value)
    )
    assert sizes, str(caught.value)
    statics, stacks, wram = (int(size.replace(",", "")) for size in sizes.groups())
    assert (stacks, wram) == (24 * 1024, 65_536)
    assert 40_961 <= statics <= 41_200
    with pytest.raises(pim_emu.BuildError, match=r"stacks 65,536 B exceed"):
        pim_emu.build(FITTING % 8, tasklets=16, stack_bytes=4096)


def test_wram_and_tasklets_are_held_to_the_machine_when_the_program_is_loaded(
    capfd: pytest.CaptureFixture[str],
):
    pim_emu.configure(quiet=False)
    large = pim_emu.build(FITTING % 62_600, tasklets=1)  # 65,536 B have room, 63,488 B do not
    many = pim_emu.build(FITTING % 64, tasklets=17)
    assert load_status(large, "upmem-2560") == load_status(many, "upmem-2560") == 0
    assert load_status(large, "upmem-v1b") == INVALID_WRAM_ACCESS
    assert re.search(r"WRAM overflow: .*6\d{4} B of variables.*63488 B", capfd.readouterr().err)
    assert load_status(many, "upmem-v1b") == TOO_MANY_TASKLETS
    assert re.search(r"too many tasklets: .* 17, machine upmem-v1b .*16", capfd.readouterr().err)
    with pytest.raises(pim_emu.DpuError, match="too many tasklets"):
        pim_emu.DpuSet(1, many, "upmem-v1b")


def load_status(program: pim_emu.DpuProgram, machine: str) -> int:
    """What dpu_load returns."""
    handle = lib.SetHandle()
    lib.call("dpu_alloc", ctypes.c_uint32(2), f"machine={machine}".encode(), ctypes.byref(handle))
    status = lib.library().dpu_load(handle, bytes(program.path), None)
    lib.call("dpu_free", handle)
    return status


def test_too_many_tasklets_are_refused_when_the_program_is_linked():
    pim_emu.build(FITTING % 64, tasklets=24)
    with pytest.raises(pim_emu.BuildError, match=r"too many tasklets: NR_TASKLETS is 25.* has 24"):
        pim_emu.build(FITTING % 64, tasklets=25)


def test_the_end_of_wram_is_that_of_the_machine():
    """Beyond it, the last page of a smaller WRAM is still mapped."""
    program = pim_emu.build(
        """
#include <attributes.h>
#include <stdint.h>
__host uint32_t at;
extern uint8_t __emu_wram_start[];
int main(void) { __emu_wram_start[at] = 1; }
""",
        traced=True,
    )
    for machine, size in (("upmem-2560", 65_536), ("upmem-v1b", 63_488)):
        pim_emu.run(program, broadcast={"at": np.uint32(size - 1)}, machine=machine)
        with pytest.raises(pim_emu.EmulatorFault, match=r"WRAM out of bounds: .*write of 1 B"):
            pim_emu.run(program, broadcast={"at": np.uint32(size)}, machine=machine)


@pytest.mark.parametrize("variable", [8, 16, 40])  # bytes; the heap begins on a line of the cache
def test_the_heap_has_all_that_variables_and_stacks_leave(variable: int):
    program = pim_emu.build(
        f"""
#include <alloc.h>
#include <stdint.h>
__host uint64_t variable[{variable // 8}];
__host uint32_t bytes;
int main(void) {{ mem_reset(); return mem_alloc(bytes) == 0; }}
""",
        stack_bytes=512,
    )
    symbols = ElfFile(program.path).symbols()
    statics = symbols["__emu_wram_end"] - symbols["__emu_wram_start"]
    free = 65_536 - 512 - statics
    pim_emu.run(program, broadcast={"bytes": np.uint32(free)})
    with pytest.raises(pim_emu.EmulatorFault, match=f"but {free} B of the heap are free"):
        pim_emu.run(program, broadcast={"bytes": np.uint32(free + 8)})


def test_a_launch_with_a_fault_returns_the_code_and_complains(
    plain: Bench, capfd: pytest.CaptureFixture[str]
):
    pim_emu.configure(quiet=False)
    number = plain.number(PLAIN[0])
    handle = lib.SetHandle()
    lib.call("dpu_alloc", ctypes.c_uint32(5), None, ctypes.byref(handle))
    lib.call("dpu_load", handle, bytes(plain.program.path), None)
    values = np.array([number], np.uint32)
    lib.call(
        "dpu_broadcast_to",
        *(handle, b"which", ctypes.c_uint32(0), values.ctypes.data_as(ctypes.c_void_p)),
        *(ctypes.c_size_t(4), 0),
    )
    assert lib.library().dpu_launch(handle, lib.SYNCHRONOUS) == DPU_FAULT
    done, fault = ctypes.c_bool(), ctypes.c_bool()
    lib.call("dpu_status", handle, ctypes.byref(done), ctypes.byref(fault))
    assert (done.value, fault.value) == (True, True)
    lib.call("dpu_free", handle)
    line = plain.place(PLAIN[0], "!")[1]
    complaint = capfd.readouterr().err
    assert re.fullmatch(
        rf"pim_emu: misaligned DMA: DPU 0, tasklet 2, \S+:{line} .*\(and 4 more .*\)\n", complaint
    )


def test_without_checks_only_what_the_hardware_refuses_is_a_fault(plain: Bench):
    pim_emu.configure(checks=False, dma="hardware")
    names = [mistake.name for mistake in PLAIN]
    unchecked = {"mram_side": None, "one_too_many": "deadlock", "division": "division error"}
    for name, fault in unchecked.items():
        values = {"which": np.uint32(2 * names.index(name))}
        if fault is None:
            pim_emu.run(plain.program, broadcast=values)
        else:
            with pytest.raises(pim_emu.EmulatorFault, match=fault):
                pim_emu.run(plain.program, broadcast=values)
