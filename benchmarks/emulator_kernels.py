"""Streaming kernels for the emulator's benchmark: as a DPU program, and as one loop of plain C."""

import ctypes
import dataclasses
from pathlib import Path

import numpy as np
from common import compile_c

import pim_emu

TASKLETS = 11  # as many as fill a DPU's pipeline
BINS = 256

_PRELUDE = """
#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <stdint.h>

#define BLOCK 2048 /* bytes of a transfer: the most a DPU allows */
#define EACH (BLOCK / sizeof(uint32_t))

BARRIER_INIT(all, NR_TASKLETS);
__host uint32_t elements;
"""
_VECTOR_ADD = """
int main(void) {
    if (me() == 0) mem_reset();
    barrier_wait(&all);
    uint32_t *a = mem_alloc(BLOCK), *b = mem_alloc(BLOCK);
    const uint32_t bytes = elements * sizeof(uint32_t);
    const uint32_t first = (uint32_t)DPU_MRAM_HEAP_POINTER, second = first + bytes;
    for (uint32_t at = me() * BLOCK; at < bytes; at += NR_TASKLETS * BLOCK) {
        mram_read((const __mram_ptr void *)(first + at), a, BLOCK);
        mram_read((const __mram_ptr void *)(second + at), b, BLOCK);
        for (uint32_t i = 0; i < EACH; ++i) b[i] += a[i];
        mram_write(b, (__mram_ptr void *)(second + at), BLOCK);
    }
    return 0;
}
"""
_HISTOGRAM = """
#define BINS 256
__host uint32_t result[BINS];
static uint32_t counts[NR_TASKLETS][BINS];

int main(void) {
    if (me() == 0) mem_reset();
    barrier_wait(&all);
    uint32_t *a = mem_alloc(BLOCK), *mine = counts[me()];
    const uint32_t bytes = elements * sizeof(uint32_t), heap = (uint32_t)DPU_MRAM_HEAP_POINTER;
    for (uint32_t at = me() * BLOCK; at < bytes; at += NR_TASKLETS * BLOCK) {
        mram_read((const __mram_ptr void *)(heap + at), a, BLOCK);
        for (uint32_t i = 0; i < EACH; ++i) ++mine[a[i] % BINS];
    }
    barrier_wait(&all);
    for (uint32_t bin = me(); bin < BINS; bin += NR_TASKLETS)
        for (uint32_t t = 0; t < NR_TASKLETS; ++t) {
            result[bin] += counts[t][bin];
            counts[t][bin] = 0;
        }
    return 0;
}
"""


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A kernel in both forms. Each call adds to what it returned before.

    Attributes:
      name: for the report.
      dpu: C for a DPU; its vectors of uint32 lie one after the other at the start of the heap.
      plain: C, `void run(long elements, const uint32_t *a, uint32_t *out)`.
      vectors: of `elements` each, in MRAM.
      into_second: whether the second vector is the result, and not the variable `result`.
    """

    name: str
    dpu: str
    plain: str
    vectors: int
    into_second: bool


VECTOR_ADD = Kernel(
    "vector add", _PRELUDE + _VECTOR_ADD, "for (long i = 0; i < n; ++i) out[i] += a[i];", 2, True
)
HISTOGRAM = Kernel(
    "histogram", _PRELUDE + _HISTOGRAM, "for (long i = 0; i < n; ++i) ++out[a[i] % 256];", 1, False
)

# What the transfers of the kernel cost by themselves: the same blocks, through as many buffers.
VECTOR_COPIES = dataclasses.replace(
    VECTOR_ADD,
    name="vector copies",
    plain=f"""
    static uint32_t buffers[{TASKLETS}][2][512] __attribute__((aligned(64)));
    for (long at = 0, k = 0; at < n; at += 512, k = (k + 1) % {TASKLETS}) {{
        uint32_t *restrict x = buffers[k][0], *restrict y = buffers[k][1];
        for (int i = 0; i < 512; ++i) x[i] = a[at + i];
        for (int i = 0; i < 512; ++i) y[i] = out[at + i];
        __asm__ volatile("" : : "r"(x), "r"(y) : "memory"); /* as if they were used */
        for (int i = 0; i < 512; ++i) out[at + i] = y[i];
    }}
""",
)


class Emulated:
    """A kernel on DPUs of the emulator; calling it is one launch.

    Args:
      kernel: the kernel.
      values: (dpus, elements) uint32, the first vector; the second begins as zeros.
      fast: whether nothing is counted, so that the compiler may vectorise.
      checks: whether barriers are checked.
    """

    def __init__(self, kernel: Kernel, values: np.ndarray, fast: bool, checks: bool) -> None:
        self._kernel, self._checks = kernel, checks
        self._shape = values.shape
        self.program = pim_emu.build(kernel.dpu, tasklets=TASKLETS, fast=fast)
        self._dpus = pim_emu.DpuSet(values.shape[0], self.program)
        self._dpus.broadcast("elements", np.uint32(values.shape[1]))
        zeros = np.zeros((values.shape[0], (kernel.vectors - 1) * values.shape[1]), np.uint32)
        self._dpus.scatter("heap", np.concatenate([values, zeros], axis=1))

    def __call__(self) -> None:
        """Launch once."""
        pim_emu.configure(checks=self._checks)
        self._dpus.launch()

    def result(self) -> np.ndarray:
        """(dpus, elements) of the second vector, or (BINS,) of all DPUs."""
        if not self._kernel.into_second:
            return self._dpus.gather("result", np.uint32, BINS).sum(axis=0, dtype=np.uint32)
        elements = self._shape[1]
        return self._dpus.gather("heap", np.uint32, elements, offset=4 * elements)

    def close(self) -> None:
        """Free the DPUs."""
        self._dpus.close()


class Plain:
    """The same work as one loop over arrays.

    Args:
      kernel: the kernel.
      values: as of `Emulated`.
      directory: for the compiled library.
      flags: of gcc; the last -O counts.
    """

    def __init__(
        self, kernel: Kernel, values: np.ndarray, directory: Path, flags: tuple[str, ...]
    ) -> None:
        source = directory / f"{kernel.name.replace(' ', '_')}.c"
        text = "#include <stdint.h>\nvoid run(long n, const uint32_t *restrict a, "
        source.write_text(f"{text}uint32_t *restrict out) {{ {kernel.plain} }}\n", encoding="utf-8")
        self._run = compile_c(source, directory, flags=flags).run
        self._values = np.ascontiguousarray(values)
        self._out = np.zeros(values.shape if kernel.into_second else BINS, np.uint32)
        pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (self._values, self._out)]
        self._arguments = (ctypes.c_long(values.size), *pointers)

    def __call__(self) -> None:
        """Go once through the arrays."""
        self._run(*self._arguments)

    def result(self) -> np.ndarray:
        """As of `Emulated`."""
        return self._out
