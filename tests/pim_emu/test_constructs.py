"""Constructs of published DPU programs that the vendor's compiler and hardware accept."""

import numpy as np
import pytest
from sdk_present import needs_sdk

import pim_emu

pytestmark = [needs_sdk, pytest.mark.usefixtures("settings")]


# --- Declarations of MRAM pointers ---

PRELUDE = """
#include <mram.h>
#include <stdint.h>
__mram_noinit uint32_t values[64];
__host uint32_t which, found;
"""
BEFORE_A_DECLARATION = {
    "if": "if (which) ++found;",
    "else": "if (which) ++found; else found += 2;",
    "if with a block": "if (which) { ++found; }",
    "for": "for (int i = 0; i < 3; ++i) ++found;",
    "while": "while (found < 3) ++found;",
    "do": "do ++found; while (found < 3);",
    "switch": "switch (which) { case 0: ++found; break; default: found += 2; }",
    "label": "if (which) goto end; ++found; end:",
    "empty statement": "if (which) goto end; ++found; end:;",
    "call": "mram_read(values, cache, 8);",
    "nothing": "",
}
DECLARATIONS = (
    "__mram_ptr uint32_t *p = values + 1;",
    "const __mram_ptr uint32_t *p = values + 1;",
    "__mram_ptr uint32_t const *p = values + 1;",
    "uint32_t __mram_ptr *p = values + 1;",
    "__mram_ptr void *all = values; __mram_ptr uint32_t *p = (__mram_ptr uint32_t *)all + 1;",
)


@pytest.mark.parametrize("before", BEFORE_A_DECLARATION)
def test_an_mram_pointer_may_be_declared_after_any_statement(before: str):
    functions = [
        f"static void f{i}(void) {{ __dma_aligned uint32_t cache[2]; (void)cache; "
        f"{BEFORE_A_DECLARATION[before]} {declaration} found = *p; }}"
        for i, declaration in enumerate(DECLARATIONS)
    ]
    calls = " ".join(f"f{i}();" for i in range(len(DECLARATIONS)))
    program = pim_emu.build("\n".join([PRELUDE, *functions, f"int main(void) {{ {calls} }}"]))
    values = np.arange(100, 164, dtype=np.uint32)
    result = pim_emu.run(program, broadcast={"values": values}, gather={"found": (np.uint32, ())})
    assert result["found"] == 101


def test_an_mram_pointer_may_be_declared_in_a_loop_and_a_case():
    program = pim_emu.build(
        PRELUDE
        + """
int main(void) {
    for (__mram_ptr uint32_t *p = values; p < values + 4; ++p) found += *p;
    switch (which) {
    case 0:
        __mram_ptr uint32_t *q = values + 4;
        found += *q;
    }
    found += sizeof(__mram_ptr uint32_t *) == sizeof(void *);
}
"""
    )
    values = np.arange(64, dtype=np.uint32)
    result = pim_emu.run(program, broadcast={"values": values}, gather={"found": (np.uint32, ())})
    assert result["found"] == 11


def test_pointers_to_mram_and_wram_still_do_not_mix():
    with pytest.raises(pim_emu.BuildError, match="address space"):
        pim_emu.build(PRELUDE + "int main(void) { uint32_t *p = values; *p = which; }")


# --- Symbols that hosts read by name ---


def test_the_host_reads_the_clock_of_a_program_that_does_not():
    program = pim_emu.build("int main(void) {\n    return 0;\n}\n")
    with pim_emu.DpuSet(2, program) as dpus:
        clocks = dpus.gather("CLOCKS_PER_SEC", np.uint32)
    assert clocks.tolist() == [pim_emu.load_machine().clock_hz] * 2
