"""The model of AM hardware: closed forms worked here, worst cases enumerated, monotonicity."""

import dataclasses
import itertools

import pytest
from designs import ROUND, latency, small

from accel_rl.hardware_models import associative_memory as hardware
from accel_rl.hardware_models.associative_memory import Design, modelled_sample, modelled_update


@pytest.fixture
def round_components():
    return hardware.load_components().given(**ROUND)


def test_serial_sample_by_hand(round_components):
    found = modelled_sample(small(), round_components)
    assert found.modelled_latency_by_stage_ns == pytest.approx(
        {
            "group_draw": 3 * 8 / 8,
            "query": 3 * (0.5 + 0.25 + 1),
            "search": 3 * (2 + 3 * 0.125),  # 4 arrays: its own wires and two levels
            "count": 0,
            "readout": 6 * 3 * (0.25 + 1),
            "buffer_write": 6 * 3,
            "batch_draw": 5 * 3 / 8,  # 6 candidates: 3 bits
            "buffer_read": 5 * 3,
        }
    )
    assert found.modelled_energy_by_stage_pj == pytest.approx(
        {
            "group_draw": 3 * 8 * 0.5,
            "query": 3 * (0.01 + 0.2 + 0.1),
            "search": 3 * (4 * 16 * 8 * 1e-3 + 4 * 0.4),
            "count": 0,
            "readout": 6 * 3 * (0.2 + 0.1),
            "buffer_write": 6 * 20,
            "batch_draw": 5 * 3 * 0.5,
            "buffer_read": 5 * 10,
        }
    )
    assert found.modelled_latency_ns == pytest.approx(3 + 5.25 + 7.125 + 22.5 + 18 + 1.875 + 15)
    assert found.modelled_latency_ns == pytest.approx(72.75)


def test_pipelined_sample_by_hand(round_components):
    """Of each phase: one item of every stage, and the other items of the slowest stage."""
    found = modelled_sample(small(overlap="pipelined"), round_components)
    select = 1 + 1.75 + 2.375 + 3.75 + 3 + 5 * 3  # the buffer decides
    pick = 0.375 + 3 + 4 * 3
    assert found.modelled_latency_ns == pytest.approx(select + pick)
    assert found.modelled_latency_by_stage_ns["buffer_write"] == pytest.approx(6 * 3)
    assert found.modelled_latency_by_stage_ns["readout"] == pytest.approx(3.75)
    assert found.modelled_busy_by_stage_ns["readout"] == pytest.approx(6 * 1.25)
    serial = modelled_sample(small(), round_components)
    assert found.modelled_energy_by_stage_pj == serial.modelled_energy_by_stage_pj


def test_update_by_hand(round_components):
    found = modelled_update(small(), round_components)
    assert found.modelled_latency_by_stage_ns == pytest.approx(
        {"address": 5 * (0.75 + 3 * 0.125), "write": 5 * 30}
    )
    assert found.modelled_energy_by_stage_pj == pytest.approx(
        {"address": 5 * (0.3 + 3 * 0.4), "write": 5 * 8 * 5 * 1e-3}
    )
    in_pairs = modelled_update(small(write_ports=2), round_components)
    assert in_pairs.modelled_latency_by_stage_ns["write"] == pytest.approx(3 * 30)
    assert in_pairs.modelled_energy_pj == pytest.approx(found.modelled_energy_pj)


@pytest.mark.parametrize(
    ("variant", "searches", "counts", "draws"),
    [
        ("fr_prefix", 3, 0, 3),
        ("fr_dithered", 3, 0, 6),
        ("fr_exact", 3 * 14, 0, 3),
        ("k_counted", 3 * 10 * 14, 3 * 9, 3),
        ("k_best_match", 3 * 14 + 6 * 22, 3, 3),
    ],
)
def test_work_of_the_variants(round_components, variant, searches, counts, draws):
    design = small(variant=variant)
    assert (design.searches, design.counts) == (searches, counts)
    found = modelled_sample(design, round_components).modelled_latency_by_stage_ns
    assert found["search"] == pytest.approx(searches * 2.375)
    assert found["count"] == pytest.approx(counts * 6 * 0.5)  # 64 rows: 6 levels of adders
    assert found["group_draw"] == pytest.approx(draws)


def test_searches_given_by_the_caller():
    assert small(variant="fr_exact", range_queries=2.5).searches == 8
    assert small(variant="k_best_match", range_queries=1, best_match_searches=1).searches == 3 + 6


def cover(low, high):
    """Aligned blocks of a range, by the usual greedy walk."""
    blocks = 0
    while low <= high:
        size = low & -low or 1 << high.bit_length()
        while low + size - 1 > high:
            size //= 2
        low, blocks = low + size, blocks + 1
    return blocks


@pytest.mark.parametrize("bits", range(1, 7))
def test_worst_range_is_the_worst(bits):
    worst = max(cover(low, high) for high in range(1 << bits) for low in range(high + 1))
    assert small(variant="fr_exact", groups=1, key_bits=bits).searches == worst


def best_match_searches(keys, value, bits):
    """Searches to find the nearest key above and below by ternary exact matching."""
    asked, branches = 1, {}
    if value in keys:
        return asked
    for bit in range(bits):
        asked += 1
        wanted = (value >> bit) ^ 1
        if any(key >> bit == wanted for key in keys):
            branches.setdefault((value >> bit) & 1, bit)
        if len(branches) == 2:
            break
    return asked + sum(branches.values())  # a bit of the nearest key for each search


@pytest.mark.parametrize("bits", [1, 2, 3, 4])
def test_worst_best_match_is_the_worst(bits):
    values = range(1 << bits)
    sets = [set(pair) for size in (1, 2) for pair in itertools.combinations(values, size)]
    worst = max(best_match_searches(keys, value, bits) for keys in sets for value in values)
    design = small(variant="k_best_match", groups=1, key_bits=bits, csp_size=1, range_queries=1)
    assert design.searches - 1 == worst


@pytest.mark.parametrize("overlap", hardware.OVERLAPS)
@pytest.mark.parametrize("variant", hardware.VARIANTS)
def test_grows_with_groups_capacity_and_batch(variant, overlap):
    components = hardware.load_components()
    base = Design(5_000, variant=variant, overlap=overlap, csp_size=700)
    for name, values in {
        "groups": (1, 4, 20, 80, 4_000),
        "batch_size": (1, 32, 64, 512),
        "capacity": (5_000, 20_000, 1_000_000),
        "csp_size": (1, 100, 5_000),
        "key_bits": (8, 16, 32),
    }.items():
        runs = [
            modelled_sample(dataclasses.replace(base, **{name: value}), components)
            for value in values
        ]
        for less, more in itertools.pairwise(runs):
            assert less.modelled_latency_ns <= more.modelled_latency_ns, name
            assert less.modelled_energy_pj <= more.modelled_energy_pj, name
        assert runs[0].modelled_latency_ns < runs[-1].modelled_latency_ns, name
        assert runs[0].modelled_energy_pj < runs[-1].modelled_energy_pj, name


def test_capacity_within_one_array_costs_the_same():
    components = hardware.load_components()
    within = [latency(Design(n, csp_size=5), components) for n in (10, 40, 64)]
    assert len(set(within)) == 1
    assert latency(Design(65, csp_size=5), components) > within[0]


@pytest.mark.parametrize("variant", hardware.VARIANTS)
def test_stages_add_up_and_overlap_only_helps(variant):
    components = hardware.load_components()
    runs = {}
    for overlap in hardware.OVERLAPS:
        run = modelled_sample(Design(10_000, variant=variant, overlap=overlap), components)
        assert run.modelled_latency_ns == pytest.approx(
            sum(run.modelled_latency_by_stage_ns.values())
        )
        assert run.modelled_energy_pj == pytest.approx(
            sum(run.modelled_energy_by_stage_pj.values())
        )
        assert run.overlap == overlap
        runs[overlap] = run
    pipelined, serial = runs["pipelined"], runs["serial"]
    assert pipelined.modelled_latency_ns < serial.modelled_latency_ns
    assert pipelined.modelled_latency_ns >= max(pipelined.modelled_busy_by_stage_ns.values())
    assert pipelined.modelled_energy_pj == serial.modelled_energy_pj


def test_ports_divide_the_readout():
    components = hardware.load_components()
    one, many = (
        modelled_sample(Design(10_000, overlap="serial", csp_ports=ports), components)
        for ports in (1, 15)
    )
    for stage in ("readout", "buffer_write"):
        ratio = one.modelled_latency_by_stage_ns[stage] / many.modelled_latency_by_stage_ns[stage]
        assert ratio == pytest.approx(15)
    assert one.modelled_energy_pj == pytest.approx(many.modelled_energy_pj)


def test_a_slow_cycle_limits_searches():
    components = hardware.load_components(tcam="cmos_bcam_90nm")
    run = modelled_sample(Design(64, csp_size=1, overlap="serial"), components)
    assert run.modelled_busy_by_stage_ns["search"] == pytest.approx(20 * 1.0)
