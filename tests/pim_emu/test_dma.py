"""Transfers whose size or address the documentation forbids: the hardware's way, and strictly.

The truth here is a model in Python of what docs/pim-emu.md says of the instruction.
"""

import re

import numpy as np
import pytest
from sdk_present import needs_sdk

import pim_emu

pytestmark = [needs_sdk, pytest.mark.usefixtures("settings")]

BYTES = 8192
TRANSFER = """
#include <defs.h>
#include <mram.h>
#include <stdint.h>
__mram_noinit uint8_t mram[8192];
__host __dma_aligned uint8_t wram[8192];
__host uint32_t size, mram_at, wram_at, writes;
int main(void) {
    if (writes)
        mram_write(wram + wram_at, mram + mram_at, size); /* write */
    else
        mram_read(mram + mram_at, wram + wram_at, size); /* read */
}
"""
ODD = [
    # size, MRAM address, WRAM address, bytes that move
    (0, 0, 0, 2048),
    (1, 0, 0, 2048),
    (7, 8, 16, 2048),
    (12, 0, 0, 8),
    (60, 0, 0, 56),
    (2047, 0, 0, 2040),
    (2049, 0, 0, 2048),
    (2056, 0, 0, 8),
    (2064, 0, 8, 16),
    (4096, 0, 0, 2048),
    (4104, 0, 0, 8),
    (8, 4, 0, 8),
    (8, 0, 4, 8),
    (24, 13, 22, 24),
    (12, 15, 9, 8),
]
REGULAR = [(8, 0, 0, 8), (2048, 8, 16, 2048), (64, 4096, 2048, 64)]


@pytest.fixture(scope="module")
def transfer() -> pim_emu.DpuProgram:
    return pim_emu.build(TRANSFER)


def values(size: int, mram_at: int, wram_at: int, writes: int) -> dict[str, np.ndarray]:
    return {
        "size": np.uint32(size),
        "mram_at": np.uint32(mram_at),
        "wram_at": np.uint32(wram_at),
        "writes": np.uint32(writes),
        "mram": np.arange(BYTES).astype(np.uint8),
        "wram": (np.arange(BYTES) // 7 + 100).astype(np.uint8),
    }


def expected(given: dict[str, np.ndarray], moved: int) -> dict[str, np.ndarray]:
    """Both memories after a transfer from the addresses rounded down to 8."""
    mram, wram = given["mram"].copy(), given["wram"].copy()
    at, here = int(given["mram_at"]) & ~7, int(given["wram_at"]) & ~7
    if given["writes"]:
        mram[at : at + moved] = wram[here : here + moved]
    else:
        wram[here : here + moved] = mram[at : at + moved]
    return {"mram": mram, "wram": wram}


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize("writes", [0, 1])
@pytest.mark.parametrize(("size", "mram_at", "wram_at", "moved"), ODD + REGULAR)
def test_a_transfer_is_the_hardwares(transfer, size, mram_at, wram_at, moved, writes, checks):
    pim_emu.configure(checks=checks)
    given = values(size, mram_at, wram_at, writes)
    shapes = {"mram": (np.uint8, BYTES), "wram": (np.uint8, BYTES)}
    result = pim_emu.run(transfer, broadcast=given, gather=shapes)
    for name, memory in expected(given, moved).items():
        np.testing.assert_array_equal(result[name][0], memory)
    counters = result.counters[0]
    assert (counters.dma_write_bytes if writes else counters.dma_read_bytes) == moved


def test_sizes_follow_the_field_of_eight_bits(transfer):
    sizes = np.arange(0, 4200, 4, dtype=np.uint32)
    result = pim_emu.run(transfer, dpus=sizes.size, scatter={"size": sizes})
    moved = [counters.dma_read_bytes for counters in result.counters]
    assert moved == (((((sizes >> 3) - 1) & 255) + 1) << 3).tolist()


FAULTS = [
    (0, 0, 0, "bad DMA size", "0 B, must be a multiple of 8 from 8 to 2048; a DPU moves 2048 B"),
    (12, 4, 4, "bad DMA size", "12 B, must be a multiple of 8 from 8 to 2048; a DPU moves 8 B"),
    (
        *(8, 12, 0, "misaligned DMA"),
        r"MRAM address 0x0800\w{3}c is no multiple of 8; a DPU takes 0x0800\w{3}8",
    ),
    (
        *(8, 0, 12, "misaligned DMA"),
        r"WRAM address 0x\w+[4c] is no multiple of 8; a DPU takes 0x\w+[08]",
    ),
]


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize(("size", "mram_at", "wram_at", "fault", "says"), FAULTS)
def test_strictly_it_is_a_fault_that_names_the_setting(
    transfer, size, mram_at, wram_at, fault, says, checks
):
    pim_emu.configure(checks=checks, dma="strict")
    with pytest.raises(pim_emu.EmulatorFault) as caught:
        pim_emu.run(transfer, broadcast=values(size, mram_at, wram_at, 0))
    assert caught.value.fault == fault
    assert re.search(rf": {says} \(PIM_EMU_DMA=hardware does the same\)$", str(caught.value))
    for case in REGULAR:
        pim_emu.run(transfer, broadcast=values(*case[:3], 0))


def test_each_oddity_is_warned_of_once_for_each_line(capfd: pytest.CaptureFixture[str]):
    source = """
#include <defs.h>
#include <mram.h>
#include <stdint.h>
__mram_noinit uint8_t mram[4096];
__dma_aligned uint8_t wram[4096];
__host uint32_t four = 4;
static __attribute__((always_inline)) inline void twice(uint32_t size) {
    for (int i = 0; i < 5; ++i) mram_read(mram, wram, size); /* size */
}
int main(void) {
    twice(12);
    twice(20);
    mram_read(mram + four, wram, 8); /* mram */
    mram_write(wram + four, mram + four, four); /* all */
}
"""
    program = pim_emu.build(source, tasklets=3)
    pim_emu.configure(quiet=False)
    with pim_emu.DpuSet(70, program) as dpus:
        dpus.launch()
        dpus.launch()
    lines = capfd.readouterr().err.splitlines()
    where = {
        mark: next(i for i, line in enumerate(source.splitlines(), 1) if f"/* {mark} */" in line)
        for mark in ("size", "mram", "all")
    }
    found = [
        re.fullmatch(
            r"pim_emu: warning: (\w+ DMA\w*(?: size)?): DPU \d+, tasklet \d, \S+:(\d+) \(\w+\): "
            r"(.*), and so does this run \(PIM_EMU_DMA=strict makes it a fault\)",
            line,
        )
        for line in lines
    ]
    assert all(found), lines
    told = sorted((int(match[2]), match[1], match[3].split()[0]) for match in found)
    assert told == [
        (where["size"], "bad DMA size", told[0][2]),
        (where["mram"], "misaligned DMA", "MRAM"),
        (where["all"], "bad DMA size", "4"),
        (where["all"], "misaligned DMA", "MRAM"),
        (where["all"], "misaligned DMA", "WRAM"),
    ]


def test_what_a_transfer_reaches_is_checked_as_it_is_taken(transfer):
    """A size of 0 near the end of WRAM: 2,048 bytes do not fit there."""
    given = values(0, 0, 0, 0)
    given["wram_at"] = np.uint32(65536 - 1024)
    with pytest.raises(pim_emu.EmulatorFault, match=r"DMA outside WRAM: .*2048 B at"):
        pim_emu.run(transfer, broadcast=given)
    given = values(0, 0x4000000 - 1024, 0, 0)
    with pytest.raises(pim_emu.EmulatorFault, match=r"MRAM out of bounds: .*2048 B at"):
        pim_emu.run(transfer, broadcast=given)
