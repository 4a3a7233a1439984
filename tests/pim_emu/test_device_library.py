"""The library that DPU programs are linked with, built and run through the SDK like any program.

Each program in `device/` gets its input from here and is judged by a truth of its own: Python, the
host's C library, or invariants that hold for any implementation.
"""

import ctypes
import random
import string
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
import quick
from sdk_present import needs_sdk

from pim_emu.machine import load_machine

DEVICE = Path(__file__).parent / "device"

pytestmark = needs_sdk


class Bench:
    """Builds DPU programs and runs each on one DPU."""

    def __init__(self, sdk: Path, folder: Path) -> None:
        self._sdk = sdk
        self._folder = folder
        flags = subprocess.run(
            [sdk / "bin" / "dpu-pkg-config", "--cflags", "--libs", "dpu"],
            check=True, capture_output=True, text=True,
        ).stdout.split()  # fmt: skip
        self._host = folder / "run_dpu"
        subprocess.run(
            ["gcc", "-std=gnu11", "-O1", DEVICE / "run_dpu.c", *flags, "-o", self._host], check=True
        )

    def build(
        self, source: str, *flags: str, tasklets: int = 1, traced: bool = False
    ) -> tuple[int, str, Path]:
        """Compile one program: the compiler's status, what it printed, and the program."""
        output = self._folder / f"program{len(list(self._folder.iterdir()))}"
        compiler = self._sdk / "bin" / "dpu-upmem-dpurte-clang"
        done = subprocess.run(
            [compiler, "-O2", "-g", "-Wall", "-Wextra", f"-DNR_TASKLETS={tasklets}", *flags,
             *(["-fsanitize=thread"] if traced else []), DEVICE / source, "-o", output],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr, output

    def program(self, source: str, *flags: str, tasklets: int = 1, traced: bool = False) -> Path:
        """Compile one program that must compile without a warning."""
        status, printed, output = self.build(source, *flags, tasklets=tasklets, traced=traced)
        assert (status, printed) == (0, "")
        return output

    def run(
        self,
        program: Path,
        inputs: Mapping[str, bytes],
        outputs: Mapping[str, int],
        launches: int = 1,
        environment: Mapping[str, str] | None = None,
    ) -> tuple[dict[str, bytes], str]:
        """Outputs (sizes in bytes) and the log of a program that must not fault."""
        steps: list[str | Path] = []
        for symbol, data in inputs.items():
            (self._folder / f"{symbol}.in").write_bytes(data)
            steps += ["to", symbol, self._folder / f"{symbol}.in"]
        steps += ["launch"] * launches
        for symbol, size in outputs.items():
            steps += ["from", symbol, self._folder / f"{symbol}.out", str(size)]
        status, printed, complaints = self.attempt(program, steps, environment)
        assert status == 0, complaints
        read = {symbol: (self._folder / f"{symbol}.out").read_bytes() for symbol in outputs}
        return read, printed

    def attempt(
        self,
        program: Path,
        steps: Sequence[str | Path] = ("launch",),
        environment: Mapping[str, str] | None = None,
    ) -> tuple[int, str, str]:
        """Status, log and complaints."""
        done = subprocess.run(
            [self._host, program, *steps],
            capture_output=True, text=True, check=False, timeout=60, env=dict(environment or {}),
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    found = subprocess.run(
        [sys.executable, "-m", "pim_emu", "--sdk-path"], check=True, capture_output=True, text=True
    )
    return Bench(Path(found.stdout.strip()), tmp_path_factory.mktemp("device"))


def words(*values: int) -> bytes:
    """Little-endian 32-bit words."""
    return struct.pack(f"<{len(values)}I", *(value & 0xFFFFFFFF for value in values))


def unpack(kind: str, data: bytes) -> list[int]:
    return [value for (value,) in struct.iter_unpack("<" + kind, data)]


# --- Allocators ---

BUDDY_ALLOC, BUDDY_FREE, BUDDY_REALLOC, FSB_GET, FSB_FREE, BUDDY_RESET, MEM_ALLOC = range(7)
EINVAL, ENOMEM = 22, 12


class AllocatorModel:
    """What any buddy allocator (blocks of at least 16 B) must say, given the blocks held."""

    def __init__(self, heap: int) -> None:
        self.heap = heap
        self.held: dict[int, tuple[int, int]] = {}  # slot -> place, bytes of the block

    @staticmethod
    def block(size: int) -> int:
        return max(16, 1 << (size - 1).bit_length())

    def free(self, place: int, size: int, ignoring: int | None = None) -> bool:
        return place + size <= self.heap and all(
            place + size <= other or other + bytes_ <= place
            for slot, (other, bytes_) in self.held.items()
            if slot != ignoring
        )

    def fits(self, size: int) -> bool:
        """Some aligned place is free: a buddy allocator that merges at once then has a block."""
        block = self.block(size)
        return any(self.free(place, block) for place in range(0, self.heap, block))


def allocator_script(rng: random.Random, heap: int, steps: int) -> Iterator[tuple[int, int, int]]:
    """Random steps that are right, with no knowledge of where blocks lie."""
    used: set[int] = set()
    taken: set[int] = set()
    for _ in range(steps):
        slot, size = rng.randrange(32), rng.choice([1, 8, 15, 16, 17, 33, 64, 100, 256, heap // 2])
        what = rng.random()
        if what < 0.35 and slot not in used:
            used.add(slot)
            yield BUDDY_ALLOC, slot, size
        elif what < 0.6 and slot in used:
            used.discard(slot)
            yield BUDDY_FREE, slot, 0
        elif what < 0.7 and slot in used:
            yield BUDDY_REALLOC, slot, size
        elif what < 0.85:
            if slot + 32 in taken:
                taken.discard(slot + 32)
                yield FSB_FREE, slot + 32, 0
            else:
                taken.add(slot + 32)
                yield FSB_GET, slot + 32, 0
        elif what < 0.87:
            used.clear()
            yield BUDDY_RESET, 0, 0
        elif what < 0.89:
            yield BUDDY_ALLOC, 64, rng.choice([0, heap + 1])  # must be refused
        elif what < 0.95:
            yield MEM_ALLOC, 0, rng.choice([1, 8, 13, 24])


@pytest.mark.parametrize(("heap", "block", "seed"), [(2048, 24, 0), (4096, 5, 1), (3072, 40, 2)])
def test_allocators(bench: Bench, heap: int, block: int, seed: int) -> None:
    blocks = 12
    script = list(allocator_script(random.Random(seed), heap, 599))
    got, _ = bench.run(
        bench.program("allocators.c"),
        {
            "script": b"".join(words(*step, 0) for step in script),
            "steps": words(len(script)),
            "heap_bytes": words(heap),
            "block_bytes": words(block),
            "blocks": words(blocks),
        },
        {"places": 4 * len(script), "errors": 4 * len(script), "damaged": 4},
    )
    places, errors = unpack("i", got["places"]), unpack("i", got["errors"])
    model = AllocatorModel(heap)
    fsb: dict[int, int] = {}
    stride = max(8, (block + 7) // 8 * 8)
    end_of_heap = 0
    refused = 0
    for (what, slot, size), place, error in zip(script, places, errors, strict=True):
        if what == BUDDY_ALLOC and (size == 0 or size > heap):
            assert (place, error) == (-1, EINVAL)
        elif what == BUDDY_ALLOC:
            if place < 0:
                assert not model.fits(size)
                assert error == ENOMEM
                refused += 1
            else:
                assert place % model.block(size) == 0
                assert model.free(place, model.block(size))
                assert error == 0
                model.held[slot] = (place, model.block(size))
        elif what == BUDDY_REALLOC:
            if slot not in model.held:  # a NULL: as an allocation
                if place >= 0:
                    assert model.free(place, model.block(size))
                    model.held[slot] = (place, model.block(size))
                else:
                    assert not model.fits(size)
            elif place < 0:
                assert not model.fits(size)
                assert error == ENOMEM
            else:
                assert place % model.block(size) == 0
                assert model.free(place, model.block(size), ignoring=slot)
                model.held[slot] = (place, model.block(size))
        elif what == BUDDY_FREE:
            assert error == 0
            model.held.pop(slot, None)
        elif what == BUDDY_RESET:
            model.held.clear()
        elif what == FSB_GET:
            if place < 0:
                assert len(fsb) == blocks
            else:
                assert place % stride == 0
                assert 0 <= place < blocks * stride
                assert place not in fsb.values()
                fsb[slot] = place
        elif what == FSB_FREE:
            fsb.pop(slot, None)
        elif what == MEM_ALLOC:
            assert place == end_of_heap
            end_of_heap = (end_of_heap + size + 7) // 8 * 8
    assert got["damaged"] == words(0)
    assert refused > 0  # the script is tight enough to say something


def test_buddy_frees_by_any_address_of_a_block_and_refuses_others(bench: Bench) -> None:
    script = [
        (BUDDY_ALLOC, 1, 64), (BUDDY_FREE, 1, 40), (BUDDY_ALLOC, 2, 64), (BUDDY_FREE, 2, 4),
        (BUDDY_FREE, 2, 1 << 20), (BUDDY_FREE, 2, 0), (BUDDY_FREE, 2, 0), (BUDDY_ALLOC, 3, 2048),
    ]  # fmt: skip
    got, _ = bench.run(
        bench.program("allocators.c"),
        {
            "script": b"".join(words(*step, 0) for step in script), "steps": words(len(script)),
            "heap_bytes": words(2048), "block_bytes": words(8), "blocks": words(1),
        },
        {"places": 4 * len(script), "errors": 4 * len(script)},
    )  # fmt: skip
    assert unpack("i", got["errors"]) == [0, 0, 0, EINVAL, EINVAL, 0, EINVAL, 0]
    assert unpack("i", got["places"])[7] == 0  # all has been merged again


@pytest.mark.parametrize("traced", [False, True])
def test_blocks_are_one_tasklets_at_a_time(bench: Bench, traced: bool) -> None:
    flags = ["-DDPU_PROFILING"]
    program = bench.program("exchange.c", *flags, tasklets=5, traced=traced)
    got, _ = bench.run(program, {}, {"damaged": 4, "done": 20, "holding": 8 * 24})
    assert got["damaged"] == words(0)
    assert got["done"] == words(*[20] * 5)
    profile = unpack("I", got["holding"])
    assert profile[:24] == [0xFFFFFFFF] * 24  # nobody is in the section
    assert all(cycles > 0 for cycles in profile[24:29])
    assert profile[29:] == [0] * 19


@pytest.mark.parametrize("reset", [0, 1])
def test_memory_lasts_from_launch_to_launch(bench: Bench, reset: int) -> None:
    got, _ = bench.run(
        bench.program("launches.c"),
        {"reset": words(reset)},
        {"launches": 4, "kept": 4, "distance": 4, "initial": 8, "sums": 8},
        launches=3,
    )
    assert got["launches"] == words(3)
    assert got["kept"] == words(4711)
    assert got["distance"] == words(0 if reset else 16)
    assert got["initial"] == words(7, 11)
    assert got["sums"] == words(17, 18)


@pytest.mark.parametrize("each", [0, 1])
@pytest.mark.parametrize("tasklets", [1, 7])
def test_queues(bench: Bench, each: int, tasklets: int) -> None:
    numbers = [(i * i, 10**12 + i) for i in range(13)]
    got, _ = bench.run(
        bench.program("queues.c", tasklets=tasklets),
        {
            "__in_data": b"".join(struct.pack("<QQ", *pair) for pair in numbers),
            "elements": words(len(numbers)),
            "each": words(each),
        },
        {"__out_data": 8 * 16, "written": 8, "calls": 8},
    )
    assert unpack("Q", got["written"]) == [len(numbers)]
    made = unpack("Q", got["__out_data"])[: len(numbers)]
    if each:  # in the order in which tasklets were done
        assert sorted(made) == sorted(sum(pair) for pair in numbers)
    else:
        assert made == [sum(pair) + 3000 for pair in numbers]
        assert unpack("Q", got["calls"]) == [3 * tasklets * len(numbers)]


@pytest.mark.parametrize(
    "source", sorted({path.name for path in DEVICE.glob("*.c")} - {"run_dpu.c"})
)
def test_checks_change_no_program(bench: Bench, source: str) -> None:
    """Cycles, log and fault are the same without checks; input is what memory begins with."""
    program = bench.program(source, "-DWRONG=3", tasklets=4)
    report = {"PIM_EMU_REPORT": "1"}
    checked = bench.attempt(program, environment=report)
    assert bench.attempt(program, environment={**report, "PIM_EMU_CHECKS": "0"}) == checked


# --- MRAM ---


def fnv(so_far: int, data: bytes) -> int:
    for byte in data:
        so_far = (so_far ^ byte) * 1099511628211 % 2**64
    return so_far


@pytest.mark.parametrize("cache", [32, 64, 128, 256, 512, 1024])
def test_sequential_readers(bench: Bench, cache: int) -> None:
    rng = random.Random(cache)
    data = rng.randbytes(1 << 16)
    start = rng.randrange(1, 64)
    item = min(cache, 100)
    steps = 60_000 // cache if cache > 120 else 500
    by = [rng.choice([1, 3, 7, cache // 2 + 1, cache - 1]) for _ in range(steps)]
    places = [rng.randrange(len(data) - item) for _ in by]
    got, _ = bench.run(
        bench.program("sequence.c", f"-DSEQREAD_CACHE_SIZE={cache}"),
        {
            "data": data, "start": words(start), "item_bytes": words(item),
            "steps": words(steps), "by": words(*by), "places": words(*places),
        },
        {"forwards": 8, "seeks": 8, "last": 8, "strayed": 4},
    )  # fmt: skip
    at, forwards, seeks = start, 0, 0
    for step in by:
        forwards = fnv(forwards, data[at : at + item])
        at += step
    for place in places:
        seeks = fnv(seeks, data[place : place + item])
    assert at + item <= len(data)
    assert got["forwards"] == struct.pack("<Q", forwards)
    assert got["seeks"] == struct.pack("<Q", seeks)
    assert got["last"] == struct.pack("<Q", fnv(0, bytes(i * 7 % 256 + 1 for i in range(8, 48))))
    assert got["strayed"] == words(0)


@pytest.mark.parametrize("tasklets", [1, 11])
def test_unaligned_pieces_of_mram(bench: Bench, tasklets: int) -> None:
    rng = random.Random(tasklets)
    source = rng.randbytes(1 << 12)
    sizes = [size for size in range(25) for _ in range(8)]
    cases = [(size, offset) for size in range(1, 25) for offset in range(8)]
    rng.shuffle(cases)
    sizes = [size for size, _ in cases for _ in range(8)] + [2041, 2047, 2048, 2048, 2048]
    pieces, to = [], 5
    for number, size in enumerate(sizes):
        # All alignments of the source with each size; targets side by side, so words are shared.
        offset = cases[number // 8][1] if number < 8 * len(cases) else number % 8
        pieces.append((8 * rng.randrange(200) + offset, to, size))
        to += size
    assert to < 1 << 15
    assert len(pieces) < 2048
    target = bytearray(rng.randbytes(1 << 15))
    got, _ = bench.run(
        bench.program("unaligned.c", tasklets=tasklets),
        {
            "source": source, "target": bytes(target), "count": words(len(pieces)),
            "pieces": b"".join(words(*piece, 0) for piece in pieces),
            "numbers": words(100, 200, 300, 400), "small": bytes(range(8)),
        },
        {"target": len(target), "numbers": 16, "small": 8},
    )  # fmt: skip
    for start, to, size in pieces:
        target[to : to + size] = source[start : start + size]
    assert got["target"] == target
    all_tasklets = tasklets * (tasklets + 1) // 2
    times = [sum(i % 3 == k for i in range(40)) for k in range(3)]
    assert unpack("I", got["numbers"]) == [
        *(100 * (k + 1) + times[k] * all_tasklets for k in range(3)), 1234567
    ]  # fmt: skip
    times = [sum(i % 7 == k for i in range(40)) for k in range(7)]
    assert list(got["small"]) == [*((k + times[k] * all_tasklets) % 256 for k in range(7)), 77]


# --- Tasklets ---


@pytest.mark.parametrize("tasklets", quick.only([11], [1, 2, 11, 16]))
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_locks_count_exactly(bench: Bench, tasklets: int, seed: int | None) -> None:
    environment = {} if seed is None else {"PIM_EMU_SCHEDULE": "random", "PIM_EMU_SEED": str(seed)}
    names = ["plain", "tried", "nobody", "most_inside", "order", "out_of_step"]
    got, _ = bench.run(
        bench.program("locks.c", tasklets=tasklets),
        {},
        {**dict.fromkeys(names, 4), "pooled": 160, "virtually": 160},
        environment=environment,
    )
    value = {name: unpack("I", got[name])[0] for name in names}
    each = 20 * tasklets
    assert (value["plain"], value["tried"], value["nobody"]) == (each, each, each)
    expected = [each if i % 7 == 0 else 0 for i in range(40)]
    assert unpack("I", got["pooled"]) == expected
    assert unpack("I", got["virtually"]) == expected
    assert value["most_inside"] == min(3, tasklets)
    assert value["out_of_step"] == 0
    order = 0
    for tasklet in range(tasklets):
        order = order * 3 + tasklet
    assert value["order"] == order % 2**32


def test_locks_order_what_tasklets_do(bench: Bench) -> None:
    """A traced program finds no race where everything is under a lock."""
    got, _ = bench.run(bench.program("locks.c", tasklets=5, traced=True), {}, {"plain": 4})
    assert got["plain"] == words(100)


@pytest.mark.parametrize("traced", [False, True])
def test_atomic_operations(bench: Bench, traced: bool) -> None:
    program = bench.program("atomics.c", tasklets=6, traced=traced)
    got, _ = bench.run(
        program, {}, {f"results{bits}": 96 for bits in (8, 16, 32, 64)} | {"everybody": 4}
    )
    assert got["everybody"] == words(50 * 21)
    for bits in (8, 16, 32, 64):
        ones = 2**bits - 1
        x, y = 0xA5B6C7D8E9FA0B1C >> (64 - bits), 0xC3D4E5F607182930 >> (64 - bits)
        cells = [x, x + y, x + y - 3]
        cells.append(cells[-1] | y)
        cells.append(cells[-1] & x)
        cells.append(cells[-1] ^ y)
        cells.append(~(cells[-1] & x))
        # The cell then holds y, as expected: it becomes x; next time it is not what is expected.
        expected = [x, *cells, 1, 0, x, x]
        assert unpack("Q", got[f"results{bits}"]) == [cell & ones for cell in expected]


# --- The C library ---


def signed(value: int) -> int:
    return (value > 0) - (value < 0)


def text_of(data: bytes) -> bytes:
    return data.split(b"\0")[0]


def kinds_of(code: int) -> int:
    c = chr(code)
    kinds = [
        c in string.ascii_letters + string.digits,
        c in string.ascii_letters,
        c in " \t",
        code < 32 or code == 127,
        c in string.digits,
        c in string.ascii_letters + string.digits + string.punctuation,
        c in string.ascii_lowercase,
        c in string.ascii_letters + string.digits + string.punctuation + " ",
        c in string.punctuation,
        c in string.whitespace,
        c in string.ascii_uppercase,
        c in string.hexdigits,
    ]
    bits = sum(is_one << bit for bit, is_one in enumerate(kinds))
    return bits | ord(c.lower()) << 12 | ord(c.upper()) << 20


def prefix(text: bytes, letters: bytes, inside: bool) -> int:
    return next((i for i, c in enumerate(text) if (c in letters) != inside), len(text))


STRINGS = [
    (b"a,b,,c d", b", ", 5, b"b"), (b"", b"", 0, b"x"), (b"Hello World", b"World", 3, b"o"),
    (b"abcabcabd", b"abcabd", 8, b"c"), (b",,,", b",", 2, b","), (b"  -0x7fFg", b"x", 17, b"\0"),
    (b"99999999999999999999", b"9", 11, b"9"), (b"-9223372036854775808z", b"-", 10, b"8"),
    (b"-9223372036854775809", b"0", 10, b"-"), (b"0777", b"78", 1, b"7"), (b"+zZ", b"Z", 36, b"Z"),
    (b"0x", b"x0", 1, b"x"), (b"\xff\x80abc", b"\xffabc", 2, b"\x80"), (b"12ab", b"13", 16, b"a"),
    (b"0xg", b"0x", 16, b"g"), (b"\t\n 42", b" 42", 10, b"2"),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b", "n", "letter"), STRINGS)
def test_strings(bench: Bench, strings: Path, a: bytes, b: bytes, n: int, letter: bytes) -> None:
    area, other = a.ljust(64, b"\0"), b.ljust(64, b"\0")
    got, _ = bench.run(
        strings,
        {"a": area, "b": other, "n": words(n), "letter": words(letter[0])},
        {"results": 256, "copies": 12 * 192, "kinds": 512},
    )
    libc = ctypes.CDLL(None, use_errno=True)
    libc.strtol.restype = ctypes.c_long
    buffer = ctypes.create_string_buffer(a)
    end = ctypes.c_char_p()
    ctypes.set_errno(0)
    base = 0 if n % 37 == 1 else n % 37
    number = libc.strtol(buffer, ctypes.byref(end), base)
    error = ctypes.get_errno()
    libc.atol.restype = ctypes.c_long
    with_nul = a + b"\0"
    expected = [
        len(a),
        min(len(a), n),
        signed((a > b) - (a < b)),
        signed((a[:n] > b[:n]) - (a[:n] < b[:n])),
        signed((area[:n] > other[:n]) - (area[:n] < other[:n])),
        area[:n].find(letter),
        with_nul.find(letter),
        with_nul.rfind(letter),
        prefix(a, b, inside=True),
        prefix(a, b, inside=False),
        next((i for i, c in enumerate(a) if c in b), -1),
        a.find(b),
        len(a),
        min(len(a), n),
        number,
        len(a) - len(end.value or b""),
        error,
        libc.atoi(buffer),
        libc.atol(buffer),
    ]
    assert unpack("q", got["results"])[: len(expected)] == expected
    copies = [got["copies"][i * 192 : (i + 1) * 192] for i in range(12)]
    assert text_of(copies[0]) == a
    assert copies[1][:100] == a[:n].ljust(n, b"\0").ljust(100, b"#")
    assert text_of(copies[2]) == a + b
    assert text_of(copies[3]) == a + b[:n]
    assert copies[4][:100] == copies[1][:100]
    assert text_of(copies[5]) == a.upper()
    assert text_of(copies[6]) == a.lower()
    assert text_of(copies[7]) == a[::-1]
    assert copies[8][:n] == area[:n]
    assert not any(copies[8][n:])
    assert copies[9][:67] == (area[:3] + area[:n] + area[3 + n :]).ljust(67, b"\0")
    separated, token = [], b""
    for byte in a:
        if byte in b:
            separated.append(token)
            token = b""
        else:
            token += bytes([byte])
    separated.append(token)
    assert text_of(copies[10]) == b"".join(piece + b"|" for piece in separated)
    assert text_of(copies[11]) == b"".join(piece + b"|" for piece in separated if piece)
    assert unpack("I", got["kinds"]) == [kinds_of(code) for code in range(128)]


@pytest.fixture(scope="module")
def strings(bench: Bench) -> Path:
    return bench.program("strings.c", "-fno-builtin")


def test_printf_is_that_of_c(bench: Bench) -> None:
    formats = ["%ld", "%lu", "%lx", "%20ld|", "%-20ld|", "%020ld", "%+ld", "%lo", "%#lx", "% ld"]
    whole = [0, 1, 255, -1, 42, 7, 123456789012345, 8, 48879, -(2**63)]
    unsigned = {"%lu", "%lx", "%lo", "%#lx"}
    real = [0.0, 1.5, -2.25, 3.14159265358979, 1e-10, 1e22, 123456.789, -0.001, 2.0**60, 5e-324]
    _, log = bench.run(
        bench.program("printing.c", "-Wno-format-security"),
        {
            "formats": b"".join(form.encode().ljust(16, b"\0") for form in formats),
            "whole": struct.pack("<10q", *whole), "real": struct.pack("<10d", *real),
            "count": words(10),
        },
        {},
    )  # fmt: skip
    lines = []
    for form, number in zip(formats, whole, strict=True):
        value = number % 2**64 if form in unsigned else number
        # Python has no sizes of integers, and another prefix of octal numbers.
        lines.append(form.replace("l", "", 1) % value)
    lines += [f"{x:e} {x:.3f} {x:10.4g}" for x in real]
    lines += ["-7 7 ff    42|42   |00042 %", "text|    text|text    |te"]
    lines += [f"{2**64 - 1} {-(2**31)}", "line", "x"]
    assert log.splitlines()[-len(lines) :] == lines


def test_performance_counter(bench: Bench) -> None:
    x, y = 0x80F31234, 0x80051234
    got, _ = bench.run(
        bench.program("counters.c", tasklets=3),
        {"words": words(x, y)},
        {"cycles": 24, "instructions": 24, "nothing": 8, "kept": 8, "clocks": 8, "built_ins": 140},
    )
    machine = load_machine()
    for name, least, most in (("cycles", 11 * 2, 11 * 8), ("instructions", 2, 8)):
        start, first, second = unpack("Q", got[name])
        assert start % 16 == first % 16 == second % 16 == 0
        assert start < 200
        # A loop that stores its counter takes a few instructions, one of which the pipeline
        # issues every 11 cycles.
        assert least * 1000 <= first - start <= most * 1000
        assert second - first == pytest.approx(4 * (first - start), rel=0.02)
    assert unpack("Q", got["nothing"])[0] <= 32  # until it was told to count nothing
    assert unpack("Q", got["kept"]) == [0]
    assert unpack("Q", got["clocks"]) == [int(machine.clock_hz)]

    def byte(word: int, high: bool, is_signed: bool) -> int:
        value = word >> (8 if high else 0) & 255
        return value - 256 if is_signed and value > 127 else value

    rotate = y % 32
    signed = x - 2**32  # its upper bit is set
    assert unpack("I", got["built_ins"]) == [
        value % 2**32
        for value in (
            byte(x, False, True) * byte(y, False, True),
            byte(x, True, True) * byte(y, False, True),
            byte(x, False, False) * byte(y, True, False),
            byte(x, True, True) * byte(y, True, False),
            0x01000101,
            0, 1, 1, x.bit_count(),
            x << rotate | x >> (32 - rotate),
            x >> rotate | x << (32 - rotate),
            x + (y << 3), x + (y << 3),
            (y >> 4 & 255) - (y >> 4 & 128) * 2, x >> 16 & 255,
            (x >> 16) - 2**16, x >> 16,
            x + y, y - x, x & y, x | y, x ^ y, x << rotate, x >> rotate, signed >> rotate,
            x + 0x12, x + 7, x & 0xFF00FF00, x | 0xFFFFFFF0, x ^ 5,
            x << 1, x >> 1, signed >> 12,
            x << 8 | x >> 24, x >> 12 | x << 20,
        )
    ]  # fmt: skip


def test_performance_counters_of_version_v1b(bench: Bench) -> None:
    got, _ = bench.run(
        bench.program("counters.c", "-D__dpu_v1B__"),
        {},
        {"cycles": 24, "instructions": 24, "both": 16, "both_again": 16},
    )
    both, again = unpack("Q", got["both"]), unpack("Q", got["both_again"])
    for pair, name in zip(both, ("cycles", "instructions"), strict=True):
        _, first, second = unpack("Q", got[name])
        assert pair == pytest.approx(second - first, rel=0.02)
    assert all(value < 200 for value in again)


def test_an_immediate_is_a_constant(bench: Bench, tmp_path: Path) -> None:
    """The text of an operand costs no instruction, and what is not emulated says so."""
    head = "#include <attributes.h>\n#include <built_ins.h>\n__host unsigned x;\nint main(void) {\n"
    made = []
    for name, line in (("text", 'lsl_rri(x, x, "5")'), ("number", "lsl_rri(x, x, 5)")):
        source = tmp_path / f"{name}.c"
        source.write_text(f"{head}__builtin_{line}; return 0; }}\n")
        report = {"PIM_EMU_REPORT": "1"}
        made.append(bench.attempt(bench.program(str(source)), environment=report))
    assert made[0] == made[1]
    source.write_text(f"{head}__builtin_hash_rrr(x, x, 3); return 0; }}\n")
    status, printed, _ = bench.build(str(source))
    assert status == 1
    assert "built-in of built_ins.h is not emulated" in printed


# --- What must not be ---


@pytest.mark.parametrize(
    "code",
    [
        "#include <stdlib.h>\nint main(void) { return malloc(8) != 0; }",
        "#include <stdio.h>\nint main(void) { FILE *f = 0; return f != 0; }",
        "#include <stdio.h>\nint main(void) { char s[9]; return sprintf(s, \"%d\", 1); }",
        "#include <math.h>\nint main(void) { return 0; }",
        "#include <unistd.h>\nint main(void) { return 0; }",
        "#include <mram.h>\n__mram int x;\nint main(void) { int *p = &x; return *p; }",
    ],
)  # fmt: skip
def test_what_a_dpu_lacks_does_not_build(bench: Bench, tmp_path: Path, code: str) -> None:
    (tmp_path / "lacking.c").write_text(code)
    status, printed, _ = bench.build(str(tmp_path / "lacking.c"))
    assert status != 0
    assert printed


@pytest.mark.parametrize(
    ("number", "text", "message"),
    [
        (1, "assert(me() == 99)", "assertion failed: me() == 99"),
        (2, "mem_alloc(1000)", "mem_alloc of 1000 B"),
        (3, "mram_write_unaligned(here + 1", "differ modulo 8"),
        (4, "vmutex_unlock(", "virtual mutex 3"),
        (5, "buddy_alloc(16)", "before buddy_init"),
        (6, "halt()", "halt()"),
        (7, "static int deep(", "a frame of"),
        (8, "abort()", "abort()"),
        (9, "2049)", "2049 B: at most 2048"),
        (10, "COUNT_ENABLE_BOTH", "only DPUs of version v1B"),
    ],
)
def test_faults_name_the_line(bench: Bench, number: int, text: str, message: str) -> None:
    status, log, complaints = bench.attempt(bench.program("wrong.c", f"-DWRONG={number}"))
    source = (DEVICE / "wrong.c").read_text().splitlines()
    line = next(i for i, content in enumerate(source, 1) if text in content)
    assert status == 3
    assert message in complaints + log
    assert any(f"wrong.c:{near}" in complaints + log for near in (line, line + 1))
