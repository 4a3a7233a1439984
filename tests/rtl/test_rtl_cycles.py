"""Cycles that Verilator counts beside those that the models give, and what docs/rtl.md prints."""

import itertools

import numpy as np
import pytest
from rtl import verilated
from rtl.test_rtl_sum_tree import INSERT, SAMPLE, UPDATE
from rtl.test_rtl_tcam import DRAW, GATHER, MERGE, SEARCH, WRITE, filled
from rtl.verilated import needs_verilator, requests, simulate

from accel_rl.hardware_models import associative_memory as hardware
from accel_rl.hardware_models import fpga

pytestmark = needs_verilator

PAGE = (verilated.ROOT / "docs" / "rtl.md").read_text(encoding="utf-8")
TREES = ((16, 1), (16, 3), (4, 4), (2, 6))  # K, D
QUICK = (4, 4)  # which the other tests of `make test` build
WIDTHS = {(16, 1): 32, (16, 3): 16, (4, 4): 32, (2, 6): 16}  # as the other tests build them
TCAM = {"ENTRIES": 256, "WIDTH": 16, "BLOCK": 32}


def counted_tree(fanout, depth, operation, batch):
    program = verilated.simulator("sum_tree", K=fanout, DEPTH=depth, WIDTH=WIDTHS[fanout, depth])
    slots = np.arange(batch) % fanout**depth
    return simulate(program, requests([operation] * batch, slots, 1)).cycles


def counted_sampling(searches, candidates, batch):
    """Cycles of searches, a readout and draws, after keys of which `candidates` are 1."""
    keys = np.arange(TCAM["ENTRIES"]) < candidates
    kinds = [SEARCH, *[MERGE] * (searches - 1), GATHER, *[DRAW] * batch]
    stream = requests(kinds, 1, 0)
    # The keys are in before the first search is taken.
    stream[0, 4] = 20
    found = simulate(
        verilated.simulator("tcam", **TCAM), np.concatenate([filled(TCAM, keys), stream])
    )
    assert found.x[-1] == candidates
    return int(found.given[-1] - found.taken[TCAM["ENTRIES"]] + 1)


@pytest.mark.parametrize(
    ("fanout", "depth"),
    [pytest.param(*tree, marks=() if tree == QUICK else pytest.mark.slow) for tree in TREES],
)
@pytest.mark.parametrize("batch", [1, 64, 512])
def test_sum_tree(fanout, depth, batch):
    modelled = fpga.rtl_sum_tree(fanout=fanout, depth=depth, batch_size=batch)
    for operation in (SAMPLE, UPDATE, INSERT):
        counted = counted_tree(fanout, depth, operation, batch)
        assert modelled.modelled_sample_cycles == pytest.approx(counted, rel=0.1)
        assert modelled.modelled_update_cycles == counted


@pytest.mark.parametrize(
    ("searches", "candidates", "batch"),
    [(1, 1, 1), (20, 1, 64), (1, 200, 1), (20, 38, 64), (40, 256, 128)],
)
def test_tcam(searches, candidates, batch):
    counted = counted_sampling(searches, candidates, batch)
    # A clock of 1 ns, so that ns are cycles.
    components = hardware.load_components(tcam="rtl_tcam").given(clock_period=1.0)
    design = hardware.Design(256, groups=searches, csp_size=candidates, batch_size=batch)
    found = hardware.modelled_sample(design, components, energy=False)
    assert found.modelled_latency_ns == pytest.approx(counted)


@pytest.mark.parametrize("batch", [1, 64])
def test_tcam_update(batch):
    stream = requests([WRITE] * batch, 1, 0, np.arange(batch))
    counted = simulate(verilated.simulator("tcam", **TCAM), stream).cycles
    components = hardware.load_components(tcam="rtl_tcam").given(clock_period=1.0)
    update = hardware.modelled_update(
        hardware.Design(256, batch_size=batch), components, energy=False
    )
    assert update.modelled_latency_ns == pytest.approx(counted)


@pytest.mark.long  # builds every tree
def test_the_page_prints_what_was_counted():
    device = fpga.load_fpga()
    for (fanout, depth), batch in itertools.product(TREES, (64, 512)):
        counted = counted_tree(fanout, depth, SAMPLE, batch)
        ours = fpga.rtl_sum_tree(fanout=fanout, depth=depth, batch_size=batch)
        theirs = fpga.pearl_replay(device, fanout=fanout, depth=depth, batch_size=batch)
        assert (
            f"| {fanout} | {depth} | {batch} | {counted} | {ours.modelled_sample_cycles} "
            f"| {theirs.modelled_sample_cycles:,} | {theirs.modelled_update_cycles} |"
        ) in PAGE
    for searches, candidates, batch in ((1, 1, 1), (20, 38, 64), (40, 256, 128)):
        counted = counted_sampling(searches, candidates, batch)
        phases = searches + 2, candidates + 3, batch + 1
        assert sum(phases) == counted
        assert (
            f"| {searches} | {candidates} | {batch} | {counted} "
            f"| {' + '.join(map(str, phases))} = {counted} |"
        ) in PAGE
