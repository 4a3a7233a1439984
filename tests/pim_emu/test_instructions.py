"""The counting of instructions: where counts are put, and what an instruction costs.

Where: assembly is run on the host, and the sum of the blocks' counts must be that of an assembly in
which every single instruction counts itself. What: prices by hand, and the speeds that PrIM
published for loops around one operation.
"""

import re
import subprocess

import pytest
from sdk_present import needs_sdk

from pim_emu.machine import STATUSES, load_machine
from pim_emu.toolchain import driver
from pim_emu.toolchain.assembly import parse_instruction
from pim_emu.toolchain.constants import constants_at_labels
from pim_emu.toolchain.instructions import count_instructions
from pim_emu.toolchain.layout import SdkLayout
from pim_emu.toolchain.pricing import Price, Pricer, load_weights

pytestmark = needs_sdk

FLAGS = (
    *("-std=gnu11", "-fno-pic", "-fno-pie", "-fno-asynchronous-unwind-tables", "-ffixed-r15"),
    *("-fcf-protection=none", "-fno-stack-protector", "-fno-jump-tables", "-fsplit-stack"),
    *("-ffunction-sections", "-fno-tree-vectorize", "-fno-tree-slp-vectorize", "-g1"),
)
COUNT = re.compile(r"\tleaq\t\d+\(%r15\), %r15\n|\tleaq\t\(%r15,%rcx,\d\), %r15\n")

KERNELS = """
#include <stdint.h>
static uint32_t table[64];
struct big { uint32_t words[50]; };
static struct big one, two;

uint64_t loops(uint64_t n) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n % 97; ++i)
        for (uint64_t j = i; j < 13; ++j)
            sum += (i & j) ? table[(i * 7 + j) % 64]++ : j;
    return sum;
}
uint64_t recursion(uint64_t n) { return n < 2 ? n : recursion(n - 1) + recursion(n - 2); }
uint64_t fibonacci(uint64_t n) { return recursion(n % 15); }
__attribute__((noinline)) static int compare(int a, int b) { return a < b ? -1 : a > b; }
uint64_t sort(uint64_t n) {
    int values[20];
    int (*volatile order)(int, int) = compare;
    for (int i = 0; i < 20; ++i) values[i] = (int)((n = n * 6364136223846793005u + 1) >> 40);
    for (int i = 1; i < 20; ++i)
        for (int j = i; j > 0 && order(values[j - 1], values[j]) > 0; --j) {
            const int kept = values[j];
            values[j] = values[j - 1];
            values[j - 1] = kept;
        }
    return (uint64_t)values[0] + (uint64_t)values[19] * 3;
}
uint64_t choices(uint64_t n) {
    uint64_t sum = 0;
    for (int i = 0; i < 30; ++i) {
        switch ((n + (uint64_t)i) % 9) {
        case 0: sum += 5; break;
        case 1: sum ^= n; /* fall through */
        case 2: sum *= 3; break;
        case 3: if (sum & 1 && n & 2) continue; sum -= 7; break;
        case 6: sum += n % 1000 + (uint64_t)((int64_t)sum / 77); break;
        default: sum = sum << 3 | sum >> 61;
        }
    }
    return sum;
}
uint64_t labels(uint64_t n) {
    static void *const next[] = {&&add, &&halve, &&done};
    uint64_t steps = 0;
    n = n % 1000 + 1;
again:
    goto *next[n == 1 ? 2 : n % 2 ? 0 : 1];
add: n = 3 * n + 1; ++steps; goto again;
halve: n /= 2; ++steps; goto again;
done: return steps;
}
uint64_t structures(uint64_t n) {
    for (int i = 0; i < 50; ++i) one.words[i] = (uint32_t)(n + (uint64_t)i);
    two = one;
    __builtin_memset(&one, 0, sizeof one);
    return two.words[n % 50] + one.words[3];
}
double floats(double x) { return x > 2 ? x * 0.5 + 1 : x < -1 ? -x / 3 : (double)(float)(int)x; }
uint64_t floating(uint64_t n) {
    double sum = 0;
    for (int i = 0; i < 10; ++i) sum = floats(sum + (double)(n % 100) - 20);
    return (uint64_t)(int64_t)(sum * 1000);
}
"""
FUNCTIONS = ("loops", "fibonacci", "sort", "choices", "labels", "structures", "floating")
HARNESS = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
register uint64_t executed __asm__("r15");
void __morestack(void) { abort(); }
#define EACH %s
#define X(name) uint64_t name(uint64_t n);
EACH
#undef X
int main(void) {
    uint64_t n = 12345;
    for (int i = 0; i < 12; ++i) {
        uint64_t result, count;
#define X(name) executed = 0; result = name(n); count = executed; \\
        printf("%%llu %%llu\\n", (unsigned long long)result, (unsigned long long)count);
        EACH
        n = n * 2862933555777941757u + 3037000493u;
    }
}
""" % " ".join(f"X({name})" for name in FUNCTIONS)  # noqa: UP031 C is full of braces


class OneEach(Pricer):
    """Every instruction costs one."""

    def price(self, instruction):
        super().price(instruction)
        return Price(1, 1)

    def per_element(self, instruction):
        return 0


def counting_itself(text):
    """Assembly in which each instruction adds one to r15."""
    lines = []
    for line in text.splitlines():
        if re.match(r"\t[a-z]", line):
            lines.append("\tleaq\t1(%r15), %r15")
        lines.append(line)
    return "\n".join(lines) + "\n"


def compiled(folder, source, *flags):
    (folder / "kernels.c").write_text(source)
    words = ["gcc", *FLAGS, *flags, "-S", str(folder / "kernels.c"), "-o", str(folder / "k.s")]
    subprocess.run(words, check=True)
    return (folder / "k.s").read_text()


def run(folder, name, text):
    """Results and counts of the harness around an assembly: two arrays of numbers."""
    (folder / f"{name}.s").write_text(text)
    (folder / "harness.c").write_text(HARNESS)
    program = folder / name
    sources = [str(folder / f"{name}.s"), str(folder / "harness.c")]
    subprocess.run(["gcc", "-no-pie", "-O0", *sources, "-o", str(program)], check=True)
    done = subprocess.run([program], check=True, capture_output=True, text=True)
    numbers = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    return [result for result, _ in numbers], [count for _, count in numbers]


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3", "-Os"])
def test_blocks_count_what_instructions_count_and_change_no_result(tmp_path, level):
    text = compiled(tmp_path, KERNELS, level)
    plain, _ = run(tmp_path, "plain", text)
    results, truth = run(tmp_path, "itself", counting_itself(text))
    assert results == plain
    results, counts = run(tmp_path, "blocks", count_instructions(text, OneEach()))
    assert results == plain
    # The path that would enlarge a stack is not taken; its check is two instructions.
    assert counts == truth
    priced, prices = run(tmp_path, "priced", count_instructions(text))
    assert priced == plain
    assert all(price > 0 for price in prices)


def test_nothing_but_counts_is_added(tmp_path):
    text = compiled(tmp_path, KERNELS, "-Os")
    counted = count_instructions(text)
    cut = counted.index('\t.section\t.emu.iram,"o"')
    assert COUNT.sub("", counted[:cut]) == text
    assert len(COUNT.findall(counted)) > 50


def test_repeated_copies_and_fills_count_their_elements():
    counted = count_instructions("f:\n\trep stosq\n\trep movsl\n\trep movsb\n\tret\n")
    assert counted.startswith(
        "f:\n\tleaq\t1(%r15), %r15\n"
        "\tleaq\t(%r15,%rcx,2), %r15\n\trep stosq\n"
        "\tleaq\t(%r15,%rcx,4), %r15\n\trep movsl\n"
        "\tleaq\t(%r15,%rcx,1), %r15\n\trep movsb\n\tret\n"
    )


def test_labels_of_debug_information_begin_no_block():
    text = (
        "f:\n.LFB0:\n\t.loc 1 2 3 view .LVU1\n\taddl\t$1, %eax\n.LVL1:\n\taddl\t$2, %eax\n"
        ".L2:\n\taddl\t$3, %eax\n\tret\n.LFE0:\n\t.size\tf, .-f\n"
        "\t.section\t.debug_loc\n\t.quad\t.LVL1\n"
    )
    assert re.findall(r"leaq\t(.*)", count_instructions(text)) == ["4(%r15), %r15"]
    # A table of jumps names labels too.
    table = "\t.section\t.rodata\n\t.quad\t.L2\n"
    counts = re.findall(r"leaq\t(.*)", count_instructions(text + table))
    assert counts == ["2(%r15), %r15", "2(%r15), %r15"]


def test_arguments_of_tracing_cost_nothing():
    text = "f:\n\tleaq\t8(%rax,%rbx,4), %rdi\n\tcall\t__tsan_read4\n\tret\n"
    assert re.findall(r"leaq\t(.*r15)$", count_instructions(text), re.M) == ["1(%r15), %r15"]


def test_stack_checks_and_tracing_cost_nothing(tmp_path):
    source = "int f(int *a, int n) { int s = 0; while (n--) s += a[n]; return s; }"

    def price(*flags):
        counted = count_instructions(compiled(tmp_path, source, "-O1", *flags))
        return sum(map(int, re.findall(r"leaq\t(\d+)\(%r15\)", counted)))

    bare = price("-fno-split-stack")
    assert price() == bare
    traced = price("-fsanitize=thread", "--param=tsan-instrument-func-entry-exit=0")
    # Calls take registers: those are saved and moved, and r12 to r14 are restored.
    assert bare <= traced <= bare + 16


PRICES = {
    "addl\t%eax, %ebx": 1,
    "addl\t$4, %ebx": 1,
    "addq\t$4, %rdi": 1,  # a pointer
    "addq\t%rax, %rbx": 2,
    "addl\t(%rdi), %eax": 2,
    "addl\t%eax, (%rdi)": 3,
    "addl\t%eax, (%rdi,%rsi,4)": 4,
    "addq\t%rax, total": 4,
    "movl\t%eax, %ebx": 0,
    "movl\t$7, %eax": 1,
    "movl\t$table, %eax": 1,
    "movl\t8(%rdi), %eax": 1,
    "movq\t%rax, 8(%rsp)": 1,
    "movl\ttable(,%rsi,4), %eax": 2,
    "movslq\t%esi, %rsi": 0,
    "movslq\t(%rdi,%rax,4), %rsi": 2,
    "movzbl\t(%rdi), %eax": 1,
    "movzbl\t%al, %eax": 1,
    "cltq": 0,
    "leaq\t4(%rdi), %rax": 1,
    "leaq\t(%rdi,%rsi,4), %rax": 1,
    "leaq\t12(%rdi,%rsi,4), %rax": 2,
    "cmpl\t%eax, %ebx": 0,
    "cmpl\t$3, (%rdi)": 1,
    "testl\t%eax, %eax": 0,
    "jne\t.L3": 1,
    "jmp\t.L3": 1,
    "call\tf": 1,
    "ret": 1,
    "pushq\t%rbx": 1,
    "popq\t%rbx": 1,
    "leave": 2,
    "sete\t%al": 1,
    "cmovle\t%eax, %ebx": 2,
    "sall\t$5, %eax": 1,
    "salq\t$2, %rax": 1,
    "shrq\t$20, %rax": 4,
    "sarl\t%cl, %eax": 1,
    "imull\t%eax, %ebx": 29.1,
    "imull\t$100, %eax, %ebx": 6 + 7,
    "imull\t$-5, %eax, %ebx": 6 + 3,
    "imulq\t%rax, %rbx": 131.7,
    "imulq\t$24, %rax, %rax": 6 + 5,
    "imulq\t$1717986919, %rax, %rax": 26.1,
    "idivl\t%ecx": 26.1,
    "idivl\t(%rdi)": 27.1,
    "divq\t%rcx": 245,
    "mulq\t%rcx": 245,
    "addss\t%xmm0, %xmm1": 66.3,
    "subss\t(%rdi), %xmm1": 72.3,
    "mulsd\t%xmm0, %xmm1": 655,
    "divss\t%xmm0, %xmm1": 1024,
    "ucomiss\t%xmm0, %xmm1": 20,
    "cvtsi2ssl\t%eax, %xmm0": 40,
    "cvttss2sil\t4(%rsp), %eax": 41,
    "movss\t(%rdi,%rax,4), %xmm0": 2,
    "movsd\t%xmm0, (%rdi)": 1,
    "movaps\t%xmm0, %xmm1": 0,
    "movdqu\t(%rdi), %xmm0": 2,
    "pxor\t%xmm0, %xmm0": 0,
    "xorps\t.LC0, %xmm0": 1,
    "movl\t%gs:(%rdi), %eax": 12,
    "movl\t%eax, %gs:table+4": 24,
    "repnz scasb": 16,
    "movsl": 2,
    "cmpq\t%fs:112, %rsp": 0,
    "leaq\t-4096(%rsp), %r11": 0,
    "call\t__tsan_read4": 0,
}


@pytest.mark.parametrize("text", PRICES)
def test_price(text):
    assert Pricer().price(parse_instruction(text)).executed == pytest.approx(PRICES[text])


def test_prices_depend_on_what_came_before():
    pricer = Pricer()

    def price(text):
        return pricer.price(parse_instruction(text)).executed

    assert [price("subl\t$1, %ecx"), price("jne\t.L1")] == [1, 0]  # fused
    assert [price("cmpl\t$1, %ecx"), price("movl\t%eax, %ebx"), price("jne\t.L1")] == [0, 0, 1]
    assert [price("cmpq\t%fs:112, %rsp"), price("jb\t.L8")] == [0, 0]
    price("movl\t$2454267027, %edx")
    assert price("imulq\t%rdx, %rax") == pytest.approx(26.1)  # a reciprocal
    price("movl\t(%rdi), %edx")
    assert price("imulq\t%rdx, %rax") == pytest.approx(131.7)
    price("movl\t$2454267027, %edx")
    price("call\tf")
    assert price("imulq\t%rdx, %rax") == pytest.approx(131.7)
    price("movabsq\t$4835703278458516699, %r9")
    pricer.begin_function()
    assert price("imulq\t%r9, %rax") == pytest.approx(131.7)


RECIPROCAL = 3518437209  # 2 ** 45 / 10,000
LOADED = f"movl ${RECIPROCAL}, %r8d"


def assembly(text):
    """Lines of code and labels, separated by semicolons, as gcc writes them."""
    lines = (line.strip() for line in text.split(";"))
    return "".join(f"{line}\n" if line.endswith(":") else f"\t{line}\n" for line in lines)


def known_at(label, text):
    return constants_at_labels(assembly(text)).get(label, {})


def test_a_constant_is_known_in_a_loop_wherever_its_blocks_are_placed():
    text = (
        f"f:; pushq %rbx; {LOADED}; movl $2139127681, %ebx; jmp .L3;"
        ".L2:; imulq %r8, %rax; subl $1, %ecx; jne .L3;"
        # What is restored here does not matter to the block below.
        ".L4:; popq %rbx; ret;"
        ".L3:; movl (%rdi), %eax; testb $1, %al; jne .L2;"
        ".L5:; imulq %rbx, %rax; jmp .L2; g:; .L6:; ret"
    )
    constants = {"r8": RECIPROCAL, "b": 2139127681}
    assert constants_at_labels(assembly(text)) == dict.fromkeys(
        (".L2", ".L3", ".L4", ".L5"), constants
    )
    counts = re.findall(r"^(\S+):\n\tleaq\t(\d+)", count_instructions(assembly(text)), re.M)
    # The products are divisions; beside them are loads, stores, an addition and jumps.
    assert dict(counts) == {"f": "4", ".L2": "27", ".L3": "2", ".L4": "2", ".L5": "27", ".L6": "1"}


def test_a_constant_is_known_only_where_all_paths_bring_it():
    text = (
        f"f:; {LOADED}; movl ${RECIPROCAL}, %r9d; je .L2;"
        "movl (%rdi), %r9d; jmp .L3; .L2:; nop; .L3:; ret"
    )
    assert known_at(".L2", text) == {"r8": RECIPROCAL, "r9": RECIPROCAL}
    assert known_at(".L3", text) == {"r8": RECIPROCAL}
    # Around a loop, too: what its end overwrites is not known at its start.
    loop = f"f:; {LOADED}; .L2:; imulq %r8, %rax; .L3:; incl %r8d; jne .L2; .L4:; ret"
    assert constants_at_labels(assembly(loop)) == {}
    other = f"f:; {LOADED}; je .L2; movl $2139127681, %r8d; .L2:; ret"
    assert known_at(".L2", other) == {}


def test_a_call_forgets_what_callees_may_change_and_nothing_else():
    names = ("eax", "ebx", "ecx", "edx", "esi", "edi", "ebp", *(f"r{k}d" for k in range(8, 15)))
    loads = "; ".join(f"movl ${RECIPROCAL}, %{name}" for name in names)
    kept = dict.fromkeys(("b", "bp", "r12", "r13", "r14"), RECIPROCAL)
    assert known_at(".L1", f"f:; {loads}; call g; .L1:; ret") == kept
    assert known_at(".L1", f"f:; {loads}; call *%rax; .L1:; ret") == kept


@pytest.mark.parametrize(
    ("code", "known"),
    [
        ("cmpl %eax, %r8d", {"r8"}),
        ("pushq %r8", {"r8"}),
        ("btl %eax, %r8d", {"r8"}),
        ("movl %r8d, (%rdi)", {"r8"}),
        ("movl %r8d, %eax", {"r8", "a"}),
        ("movq %r8, %r9", {"r8", "r9"}),
        ("movzbl %r8b, %eax", {"r8"}),
        ("movl %eax, %r8d", set()),
        ("popq %r8", set()),
        ("xchgl %r8d, (%rdi)", set()),
        ("xchgl %r8d, %eax", set()),
        ("lock xaddl %r8d, (%rdi)", set()),
        ("movl %r8d, %eax; lock cmpxchgl %ecx, (%rdi)", {"r8"}),
        ("movl %r8d, %eax; movl %r8d, %edx; mull %ecx", {"r8"}),
        ("movl %r8d, %eax; movl %r8d, %edx; cltd", {"r8", "a"}),
        ("movl %r8d, %eax; movl %r8d, %edx; cltq", {"r8", "d"}),
        ("movl %r8d, %ecx; movl %r8d, %edi; movl %r8d, %eax; rep stosq", {"r8", "a"}),
        ("movl %r8d, %ecx; movl %r8d, %esi; movl %r8d, %edi; rep movsl", {"r8"}),
        ("movl %r8d, %ebp; leave", {"r8"}),
        ("movq %r8, %xmm0; movq %xmm0, %r8", set()),
    ],
)
def test_what_an_instruction_overwrites_is_forgotten(code, known):
    assert known_at(".L1", f"f:; {LOADED}; {code}; .L1:; ret") == dict.fromkeys(known, RECIPROCAL)


def test_a_constant_of_32_bits_is_known_without_its_sign():
    # 2 ** 40 / 257, which is small as a negative number.
    assert known_at(".L1", "f:; movl $-16711935, %eax; .L1:; ret") == {"a": 4278255361}
    assert known_at(".L1", "f:; movq $-16711935, %rax; .L1:; ret") == {}
    wide = "f:; movabsq $4835703278458516699, %rax; movl %eax, %edx; .L1:; ret"
    assert known_at(".L1", wide)["d"] == 4835703278458516699 % 2**32


def test_computed_jumps_may_lead_anywhere():
    text = f"f:; {LOADED}; je .L2; xorl %r8d, %r8d; jmp *%rax; .L2:; ret"
    assert known_at(".L2", text) == {}


def test_paths_through_the_cold_part_of_a_function_count():
    text = (
        f"f:; {LOADED}; je .L5; .L2:; imulq %r8, %rax; ret;"
        "f.cold:; .L5:; call g; jmp .L2; h:; jmp .L5"
    )
    assert known_at(".L5", text) == {"r8": RECIPROCAL}
    assert known_at(".L2", text) == {}


def test_the_high_half_of_a_product_is_a_division_where_a_factor_is_a_reciprocal():
    pricer = Pricer()

    def price(text):
        return pricer.price(parse_instruction(text)).executed

    for mnemonic in ("mull", "imull"):
        price(f"movl ${RECIPROCAL}, %edx")
        assert price(f"{mnemonic} %edx") == pytest.approx(26.1)
        assert price(f"{mnemonic} %edx") == pytest.approx(131.7)  # where the high half is now
        price(f"movl ${RECIPROCAL}, %eax")
        assert price(f"{mnemonic} %ecx") == pytest.approx(26.1)
        assert price(f"{mnemonic} %ecx") == pytest.approx(131.7)
    assert price("mull (%rdi)") == pytest.approx(132.7)
    pricer.begin_block({"c": RECIPROCAL})
    assert price("mull %ecx") == pytest.approx(26.1)
    pricer.begin_block({})
    assert price("mull %ecx") == pytest.approx(131.7)


@pytest.mark.parametrize("level", ["-O1", "-O2", "-O3"])
def test_divisions_by_constants_in_loops_are_counted_as_such(
    tmp_path, monkeypatch, sdk_folder, level
):
    for name in ("PIM_EMU_TRACE", "PIM_EMU_FAST", "PIM_EMU_CC"):
        monkeypatch.delenv(name, raising=False)
    source, target = tmp_path / "divide.c", tmp_path / "divide.s"
    source.write_text(
        "#include <stdint.h>\n"
        "uint32_t f(const uint32_t *a, uint32_t n) {\n"
        "    uint32_t sum = 0;\n"
        "    for (uint32_t k = 0; k < n; ++k)\n"
        "        if (a[k] & 1) sum += a[k] / 10000u; else sum ^= a[k] / 7000u;\n"
        "    return sum;\n"
        "}\n"
    )
    words = [level, "-S", str(source), "-o", str(target)]
    assert driver.main(SdkLayout(sdk_folder), words) == 0
    text = target.read_text()
    # gcc divides by multiplying, and makes the multipliers before the loop.
    assert re.search(r"\tmovl\t\$3518437209, %", text)
    counts = sorted(int(count) for count in re.findall(r"leaq\t(\d+)\(%r15\)", text))
    assert counts[-3] < 15
    assert all(26 <= count <= 26 + 8 for count in counts[-2:])


def test_routines_take_little_room():
    price = Pricer().price(parse_instruction("divsd\t(%rdi), %xmm0"))
    assert (price.executed, price.stored) == (2183, 4)


# Millions of operations a second on one DPU at 350 MHz: PrIM, arXiv 2105.03814, as cited in
# weights.toml. The loop is theirs: an array in WRAM, and one operation with a scalar.
PRIM = {
    ("int32_t", "+"): 58.56, ("int64_t", "+"): 50.16,
    ("int32_t", "*"): 10.27, ("int64_t", "*"): 2.56,
    ("int32_t", "/"): 11.27, ("int64_t", "/"): 1.40,
    ("float", "+"): 4.91, ("float", "-"): 4.59, ("float", "*"): 1.91, ("float", "/"): 0.34,
    ("double", "+"): 3.32, ("double", "-"): 3.11, ("double", "*"): 0.53, ("double", "/"): 0.16,
}  # fmt: skip


@pytest.mark.parametrize(("kind", "operator"), PRIM)
def test_loops_are_as_fast_as_published(tmp_path, kind, operator):
    source = (
        f"#include <stdint.h>\nvoid f({kind} *a, {kind} k) "
        f"{{ for (int i = 0; i < 256; ++i) a[i] = a[i] {operator} k; }}"
    )
    counted = count_instructions(compiled(tmp_path, source, "-O2"))
    # The dearest block is the loop's body; a DPU issues an instruction in each cycle.
    per_operation = max(int(n) for n in re.findall(r"leaq\t(\d+)\(%r15\)", counted))
    speed = load_machine().clock_hz / per_operation / 1e6
    assert speed == pytest.approx(PRIM[kind, operator], rel=0.25)


def test_weights_say_where_they_come_from():
    weights = load_weights()
    assert len(weights) > 30
    for constant in weights.values():
        assert constant.status in STATUSES
        assert constant.unit == "instructions"
        assert constant.value >= 0
        # Nothing but conventions may be without a source outside.
        assert (constant.source == "pim_emu") == (constant.status == "assumed")
