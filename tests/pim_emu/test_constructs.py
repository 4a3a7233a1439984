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


MIXED = {
    "assigned": "uint32_t *p = values; *p = which;",
    "passed": "mram_read(&found, &which, 4);",
    "written": "mram_write(values, values, 8);",
    "compared": "if (values == &which) ++found;",
    "redeclared": "extern __mram_ptr uint64_t values[64];",
}


@pytest.mark.parametrize("name", MIXED)
def test_pointers_to_mram_and_wram_do_not_mix_and_messages_say_mram(name: str):
    with pytest.raises(pim_emu.BuildError) as caught:
        pim_emu.build(PRELUDE + f"int main(void) {{ {MIXED[name]} }}")
    said = str(caught.value)
    assert "seg_gs" not in said
    assert "address space" in said or "__mram_ptr" in said, said


# --- Symbols that hosts read by name ---


def test_the_host_reads_the_clock_of_a_program_that_does_not():
    program = pim_emu.build("int main(void) {\n    return 0;\n}\n")
    with pim_emu.DpuSet(2, program) as dpus:
        clocks = dpus.gather("CLOCKS_PER_SEC", np.uint32)
    assert clocks.tolist() == [pim_emu.load_machine().clock_hz] * 2


# --- Words under two types ---


def test_a_local_array_may_be_read_through_a_wider_type():
    program = pim_emu.build(
        """
#include <attributes.h>
#include <stdint.h>
__host uint32_t low, high;
__host uint64_t both;
int main(void) {
    uint32_t parts[2];
    if (low < high) {
        parts[0] = low;
        parts[1] = high;
    } else {
        parts[0] = high;
        parts[1] = low;
    }
    both = *(uint64_t *)parts;
}
"""
    )
    assert program.warnings == ""
    sent = {"low": np.uint32(7), "high": np.uint32(5)}
    result = pim_emu.run(program, broadcast=sent, gather={"both": (np.uint64, ())})
    assert result["both"] == 5 + (7 << 32)


# --- memcpy and its kin on MRAM ---

# The address of each operand is in MRAM or in WRAM, as MRAM_TO and MRAM_FROM say.
AREAS = """
#include <mram.h>
#include <stdint.h>
#include <string.h>
struct item { uint8_t bytes[256]; };
__mram_noinit struct item in_mram;
__host __dma_aligned struct item in_wram;
__mram_noinit uint8_t from_mram[256];
__host __dma_aligned uint8_t from_wram[256];
__host uint32_t to_at, from_at, size;
__host int32_t order;
#define AT(what, at) ((what) + (at))
#if MRAM_TO
#define TO AT(in_mram.bytes, to_at)
#else
#define TO AT(in_wram.bytes, to_at)
#endif
#if MRAM_FROM
#define FROM AT(from_mram, from_at)
#else
#define FROM AT(from_wram, from_at)
#endif
int main(void) {
    struct item whole; /* pointers to structs, too */
    memcpy(&whole, &in_mram, sizeof whole);
    memcpy(&in_mram, &whole, sizeof(struct item));
    switch (FUNCTION) {
    case 0: memcpy(TO, FROM, size); break;
    case 1: memmove(TO, FROM, size); break;
    case 2: memset(TO, 0x1a5, size); break;
    case 3: order = memcmp(TO, FROM, size); break;
    case 4: memmove(TO, AT(TO, from_at) - to_at, size); break; /* overlaps */
    }
}
"""
FUNCTIONS = ("memcpy", "memmove", "memset", "memcmp", "overlap")


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("mram", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("function", range(5), ids=FUNCTIONS)
def test_areas_may_lie_in_mram(function: int, mram: tuple[int, int], traced: bool):
    macros = {"FUNCTION": function, "MRAM_TO": mram[0], "MRAM_FROM": mram[1]}
    program = pim_emu.build(AREAS, define=macros, traced=traced)
    names = (("in_wram", "in_mram")[mram[0]], ("from_wram", "from_mram")[mram[1]])
    rng = np.random.default_rng(function)
    for to_at, from_at, size in ((0, 0, 8), (3, 10, 77), (10, 3, 77), (5, 2, 0), (7, 1, 1)):
        to, source = rng.integers(256, size=(2, 256), dtype=np.uint8)
        if function == 3:
            to[to_at : to_at + size] = source[from_at : from_at + size]
            to[to_at + size // 2] ^= 0x80
        given = {names[0]: to, names[1]: source}
        given |= {"to_at": np.uint32(to_at), "from_at": np.uint32(from_at), "size": np.uint32(size)}
        result = pim_emu.run(
            program, broadcast=given, gather={names[0]: (np.uint8, 256), "order": (np.int32, ())}
        )
        expected, block = to.copy(), slice(to_at, to_at + size)
        if function in (0, 1):
            expected[block] = source[from_at : from_at + size]
        elif function == 2:
            expected[block] = 0xA5
        elif function == 4:
            expected[block] = to[from_at : from_at + size].copy()
        np.testing.assert_array_equal(result[names[0]][0], expected)
        if function == 3:
            a, b = to[block].tobytes(), source[from_at : from_at + size].tobytes()
            assert np.sign(result["order"][0]) == (a > b) - (a < b)


def test_areas_in_mram_are_charged_and_checked():
    source = """
#include <mram.h>
#include <stdint.h>
#include <string.h>
__mram_noinit uint8_t area[4096];
__host uint32_t size, beyond;
int main(void) {
    memset(area + beyond, 1, size); /* here */
}
"""
    program = pim_emu.build(source)
    small, large = (
        pim_emu.run(program, broadcast={"size": np.uint32(size)}).counters[0].instructions
        for size in (800, 1600)
    )
    assert large - small == 100 * 24 + 200  # words that are changed, and the fill itself
    line = source[: source.index("/* here */")].count("\n") + 1
    with pytest.raises(pim_emu.EmulatorFault, match=rf"MRAM out of bounds: .*:{line} \(main\)"):
        pim_emu.run(program, broadcast={"size": np.uint32(64), "beyond": np.uint32(0x3FFFFF0)})


def test_functions_on_wram_are_the_compilers_own(tmp_path):
    """A source without MRAM pointers there is compiled as ever."""
    text = "#include <string.h>\nchar a[64], b[64];\nint main(void) {\n    memcpy(a, b, 64);\n}\n"
    plain = pim_emu.build(text, output=tmp_path / "program")
    assert b"_any" not in plain.path.read_bytes()


# --- Headers and built-ins ---


@pytest.mark.parametrize(
    ("nop", "number"),
    [
        ("__builtin_nop_();", 1),
        ('__asm__ volatile("nop");', 1),
        ('__asm__ volatile("nop\\n\\tnop\\nnop");', 3),
    ],
)
def test_an_instruction_that_does_nothing_is_counted(nop: str, number: int):
    def instructions(times: int) -> int:
        program = pim_emu.build(
            "#include <attributes.h>\n#include <built_ins.h>\n__host unsigned int n = 1000;\n"
            f"int main(void) {{\n    for (unsigned int i = 0; i < n; ++i) {{ {nop * times} }}\n}}\n"
        )
        return pim_emu.run(program).counters[0].instructions

    assert instructions(3) - instructions(1) == 2000 * number


def test_an_instruction_beside_the_compilers_own_lines_is_refused():
    text = 'int main(void) { __asm__ volatile(".loc 1 1 0; ud2"); }\n'
    with pytest.raises(pim_emu.BuildError, match="inline assembly"):
        pim_emu.build(text)


def test_sizes_are_rounded_to_those_of_dma():
    program = pim_emu.build(
        """
#include <attributes.h>
#include <memmram_utils.h>
#include <stdint.h>
__host uint32_t found[6];
int main(void) {
    found[0] = DMA_ALIGNED(13);
    found[1] = DMA_ALIGNED(16 + 0u);
    found[2] = ALIGN(33, 32);
    found[3] = 29 & DMA_OFF_MASK;
    found[4] = MIN(7 + 1, 3 + 2);
    found[5] = DMA_ALIGNMENT + MRAM_CACHE_SIZE;
}
"""
    )
    found = pim_emu.run(program, gather={"found": (np.uint32, 6)})["found"][0]
    assert found.tolist() == [16, 16, 64, 5, 5, 16]
