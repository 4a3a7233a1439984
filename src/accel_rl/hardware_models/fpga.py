"""FPGA models: PEARL's analytic model, and the cycles of this library's own RTL.

PEARL's formulas are those of its artifact (`SysConfig/FPGA_perfmodel.py`), with constants in
`fpga.toml`; docs/rtl.md lists where our reading differs from what the artifact computes. Our RTL is
`kernels/rtl`. Its cycles follow from its pipeline, and tests count the same with Verilator. Callers
give the clock, because none is known for it. Nothing here was run on an FPGA.
"""

import dataclasses
import math
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources

from accel_rl.arguments import one_of, whole, within

WORD_BITS = 32  # of a priority, weight or activation in PEARL
_LARGEST_INDEX = 24  # bits, at most, of a leaf's index in the RTL


@dataclasses.dataclass(frozen=True)
class Fpga:
    """Resources of an FPGA.

    Attributes:
      name: of the part.
      m20k_blocks: memory blocks of `m20k_bits` each.
      mlab_blocks: memory blocks in logic, of `mlab_bits` each.
      dsps: multiply-add blocks.
      clock: Hz.
      ddr_bandwidth: of external memory, B/s.
    """

    name: str
    m20k_blocks: int
    m20k_bits: int
    mlab_blocks: int
    mlab_bits: int
    dsps: int
    clock: float
    ddr_bandwidth: float

    def __post_init__(self) -> None:
        for name, value in dataclasses.asdict(self).items():
            if name != "name":
                within(name, value, "(0, inf)")


@dataclasses.dataclass(frozen=True)
class PearlReplay:
    """Modelled costs of PEARL's Replay Manager on an FPGA, for one batch.

    Attributes:
      modelled_sample_cycles: 2 K (B + D), on the chip.
      modelled_update_cycles: 2 D for any batch size; also for an insertion.
      modelled_transfer_seconds: 6 words per item of the batch, to and from DDR memory.
      modelled_sample_seconds: cycles and transfer.
      modelled_update_seconds: cycles and transfer.
      modelled_insert_seconds: cycles and transfer.
      modelled_dsps: 2 per level.
      modelled_mlab_blocks: for the levels whose values take less than one M20K.
      modelled_m20k_blocks: for the other levels.
    """

    modelled_sample_cycles: int
    modelled_update_cycles: int
    modelled_transfer_seconds: float
    modelled_sample_seconds: float
    modelled_update_seconds: float
    modelled_insert_seconds: float
    modelled_dsps: int
    modelled_mlab_blocks: int
    modelled_m20k_blocks: int


@dataclasses.dataclass(frozen=True)
class PearlLearner:
    """Modelled costs of PEARL's Learner on an FPGA, for a training step on one batch.

    Attributes:
      modelled_cycles: sum of FW + sum of max(BW, WA) + WA of the first layer.
      modelled_seconds: at the FPGA's clock.
      modelled_dsps: by pass, "FW0", "BW1", "WA1" and so on.
      modelled_memory_bits: for activations and weights.
      modelled_available_bits: memory that the Replay Manager leaves.
    """

    modelled_cycles: float
    modelled_seconds: float
    modelled_dsps: Mapping[str, int]
    modelled_memory_bits: int
    modelled_available_bits: int


@dataclasses.dataclass(frozen=True)
class RtlSumTree:
    """Clock cycles of `kernels/rtl/sum_tree.sv`, from the first request to the last response.

    Attributes:
      modelled_sample_cycles: B + 2 D + 2: one per clock, through a pipeline of 2 clocks a level.
      modelled_update_cycles: the same; also for insertions and any mix of operations.
      modelled_clear_cycles: K ** (D - 1), after a reset, before the first request is accepted.
      modelled_memory_bits: for the levels and a second copy of the leaves.
    """

    modelled_sample_cycles: int
    modelled_update_cycles: int
    modelled_clear_cycles: int
    modelled_memory_bits: int


def load_fpga(name: str = "agilex_agf014") -> Fpga:
    """Load an FPGA of `fpga.toml`; construct others with `Fpga`."""
    file = resources.files("accel_rl.hardware_models") / "fpga.toml"
    known = tomllib.loads(file.read_text(encoding="utf-8"))["fpga"]
    one_of("name", name, known)
    return Fpga(name, **{field: figure["value"] for field, figure in known[name].items()})


def pearl_replay(fpga: Fpga, *, fanout: int, depth: int, batch_size: int) -> PearlReplay:
    """Model PEARL's Replay Manager.

    Args:
      fpga: from `load_fpga`.
      fanout: K, children of a node, at least 2.
      depth: D, levels; level i holds K ** i nodes of 2 words.
      batch_size: B.

    Raises:
      ValueError: if the levels exceed the FPGA's memory or DSPs.
    """
    whole("fanout", fanout, 2)
    whole("depth", depth, 1)
    whole("batch_size", batch_size, 1)
    mlab = m20k = 0
    for level in range(depth):
        nodes = fanout**level
        bits = 2 * nodes * WORD_BITS
        if nodes * WORD_BITS < fpga.m20k_bits:
            mlab += -(-bits // fpga.mlab_bits)
        else:
            m20k += -(-bits // fpga.m20k_bits)
    what = f"depth {depth} with fanout {fanout}"
    _check_fits(what, "MLAB blocks", mlab, fpga.name, fpga.mlab_blocks)
    _check_fits(what, "M20K blocks", m20k, fpga.name, fpga.m20k_blocks)
    _check_fits(what, "DSPs", 2 * depth, fpga.name, fpga.dsps)
    sample, update = 2 * fanout * (batch_size + depth), 2 * depth
    transfer = 6 * (WORD_BITS // 8) * batch_size / fpga.ddr_bandwidth
    return PearlReplay(
        modelled_sample_cycles=sample,
        modelled_update_cycles=update,
        modelled_transfer_seconds=transfer,
        modelled_sample_seconds=sample / fpga.clock + transfer,
        modelled_update_seconds=update / fpga.clock + transfer,
        modelled_insert_seconds=update / fpga.clock + transfer,
        modelled_dsps=2 * depth,
        modelled_mlab_blocks=mlab,
        modelled_m20k_blocks=m20k,
    )


def pearl_learner(
    fpga: Fpga, layers: Sequence[int], *, batch_size: int, replay: PearlReplay | None = None
) -> PearlLearner:
    """Model PEARL's Learner of a multilayer perceptron.

    Passes share the DSPs in proportion to their operations, rounded down to a power of two. Each
    gets at least 1, and at most as many as it can use at once for one sample.

    Args:
      fpga: from `load_fpga`.
      layers: widths, from the input to the output, at least 2.
      batch_size: B.
      replay: a Replay Manager on the same FPGA, whose resources are not available; None for none.

    Raises:
      ValueError: if there are fewer DSPs than passes, or activations and weights exceed the memory
        on the chip.
    """
    whole("batch_size", batch_size, 1)
    whole("number of layers", len(layers), 2)
    for i, width in enumerate(layers):
        whole(f"layers[{i}]", width, 1)
    pairs = [(layers[i], layers[i + 1]) for i in range(len(layers) - 1)]
    operations: dict[str, int] = {}
    widest: dict[str, int] = {}
    for i, (inputs, outputs) in enumerate(pairs):
        passes = {"FW": outputs, "WA": inputs * outputs} | ({"BW": inputs} if i else {})
        operations |= {f"{kind}{i}": batch_size * inputs * outputs for kind in passes}
        widest |= {f"{kind}{i}": at_once for kind, at_once in passes.items()}
    free = fpga.dsps - (replay.modelled_dsps if replay else 0)
    what = f"learning of layers {tuple(layers)} with batch_size {batch_size}"
    _check_fits(what, "DSPs", len(operations), fpga.name, free)
    total = sum(operations.values())
    dsps = {
        name: min(widest[name], _power_of_two(free * count // total))
        for name, count in operations.items()
    }
    cycles = {name: count / dsps[name] for name, count in operations.items()}
    latency = math.fsum(cycles[f"FW{i}"] for i in range(len(pairs))) + cycles["WA0"]
    latency += math.fsum(max(cycles[f"BW{i}"], cycles[f"WA{i}"]) for i in range(1, len(pairs)))

    bits = WORD_BITS * sum(batch_size * inputs + inputs * outputs for inputs, outputs in pairs)
    mlab = fpga.mlab_blocks - (replay.modelled_mlab_blocks if replay else 0)
    m20k = fpga.m20k_blocks - (replay.modelled_m20k_blocks if replay else 0)
    available = mlab * fpga.mlab_bits + m20k * fpga.m20k_bits
    _check_fits(what, "bits of memory for activations and weights", bits, fpga.name, available)
    return PearlLearner(latency, latency / fpga.clock, dsps, bits, available)


def rtl_sum_tree(*, fanout: int, depth: int, batch_size: int, value_bits: int = 16) -> RtlSumTree:
    """Model the sum tree of our RTL.

    Args:
      fanout: K, a power of two, at least 2.
      depth: D, levels below the root; there are K ** D leaves, at most 2 ** 24.
      batch_size: B, back-to-back operations.
      value_bits: of a leaf, 1 to 32.
    """
    whole("fanout", fanout, 2)
    whole("batch_size", batch_size, 1)
    digit = fanout.bit_length() - 1
    if fanout != 2**digit:
        raise ValueError(f"fanout must be a power of two, got {fanout}")
    whole("depth", depth, 1, _LARGEST_INDEX // digit)
    whole("value_bits", value_bits, 1, 32)
    cycles = batch_size + 2 * depth + 2
    levels = sum(fanout**i * (value_bits + (depth - i) * digit) for i in range(1, depth + 1))
    return RtlSumTree(
        modelled_sample_cycles=cycles,
        modelled_update_cycles=cycles,
        modelled_clear_cycles=fanout ** (depth - 1),
        modelled_memory_bits=levels + fanout**depth * value_bits,
    )


def _check_fits(what: str, unit: str, needed: int, name: str, there: int) -> None:
    if needed > there:
        raise ValueError(f"{what} needs {needed} {unit}, {name} has {there}")


def _power_of_two(number: int) -> int:
    return 1 << (max(number, 1).bit_length() - 1)
