"""The model of AM hardware: closed forms worked here, monotonicity, sources, refusals."""

import dataclasses
import itertools
import math
import pathlib
import re
import tomllib
from importlib import resources

import pytest

from accel_rl.am import hardware
from accel_rl.am.hardware import Design, modelled_sample, modelled_update

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = resources.files("accel_rl.am.hardware") / "components.toml"
PAGE = (ROOT / "docs" / "am-hardware.md").read_text(encoding="utf-8")

# Round numbers, so that a result can be worked by hand.
ROUND = {
    "search_delay": 2.0,
    "search_energy": 1.0,
    "write_delay": 30.0,
    "write_energy": 5.0,
    "adder_delay": 0.5,
    "adder_energy": 0.01,
    "register_delay": 1.0,
    "register_energy": 0.1,
    "encoder_delay": 0.25,
    "encoder_energy": 0.2,
    "decoder_delay": 0.75,
    "decoder_energy": 0.3,
    "interconnect_delay": 0.125,
    "interconnect_energy": 0.4,
    "random_rate": 8.0,
    "random_energy": 0.5,
    "buffer_cycle": 3.0,
    "buffer_write_energy": 20.0,
    "buffer_read_energy": 10.0,
}


@pytest.fixture
def round_components():
    return hardware.load_components().given(**ROUND)


def small(**changes):
    """Four arrays of 16 keys; 6 candidates."""
    fields = {
        "capacity": 60,
        "key_bits": 8,
        "rows_per_array": 16,
        "groups": 3,
        "variant": "fr_prefix",
        "csp_size": 6,
        "batch_size": 5,
        "overlap": "serial",
    }
    return Design(**(fields | changes))


def latency(design, components, energy=True):
    return modelled_sample(design, components, energy=energy).modelled_latency_ns


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


def test_figures_that_are_missing_are_asked_for():
    unknown_delay = hardware.load_components(tcam="cmos_tcam_65nm")
    with pytest.raises(ValueError, match=r"search_delay \(ns\) of 'cmos_tcam_65nm' has no"):
        modelled_sample(Design(100), unknown_delay)
    assert modelled_sample(Design(100), unknown_delay.given(search_delay=1.0)).modelled_energy_pj

    unknown_energy = hardware.load_components(tcam="pcm_2t2r_90nm")
    with pytest.raises(ValueError, match=r"given\(search_energy=\.\.\.\)"):
        modelled_sample(Design(100), unknown_energy)
    without = modelled_sample(Design(100), unknown_energy, energy=False)
    assert without.modelled_energy_pj is None
    assert without.modelled_energy_by_stage_pj is None
    assert without.modelled_latency_ns > 0

    with pytest.raises(ValueError, match="write_delay"):
        modelled_update(Design(100), hardware.load_components(), energy=False)
    tool = hardware.load_components(tcam="camasim_tcam_64")
    assert modelled_update(Design(100), tool, energy=False).modelled_latency_ns > 64 * 20
    with pytest.raises(ValueError, match="no figure 'nothing'"):
        tool["nothing"]


def clocked(period=2.0):
    return hardware.load_components(tcam="rtl_tcam").given(clock_period=period)


def test_clocked_sample_by_hand():
    """Each phase: the cycles of its first item, and one for each further item."""
    design = small(groups=3, csp_size=6, batch_size=5, variant="fr_prefix")
    found = modelled_sample(design, clocked(), energy=False)
    assert found.overlap == "clocked"
    assert found.modelled_latency_by_stage_ns == pytest.approx(
        {"search": 2 * (3 + 2), "readout": 2 * (4 + 5), "draw": 2 * (2 + 4)}
    )
    assert found.modelled_busy_by_stage_ns == pytest.approx(
        {"search": 2 * 3, "readout": 2 * 6, "draw": 2 * 5}
    )
    assert found.modelled_energy_pj is None
    # The schedule is that of the RTL, whatever else the design says.
    other = dataclasses.replace(design, overlap="pipelined", rows_per_array=7, key_bits=32)
    assert modelled_sample(other, clocked(), energy=False) == found
    exact = dataclasses.replace(design, variant="fr_exact", range_queries=10.0)
    more = modelled_sample(exact, clocked(), energy=False).modelled_latency_by_stage_ns
    assert more["search"] == pytest.approx(2 * (3 + 29))
    update = modelled_update(design, clocked(), energy=False)
    assert update.modelled_latency_by_stage_ns == pytest.approx({"write": 2 * (4 + 4)})


def test_clocked_designs_refused():
    with pytest.raises(ValueError, match=r"clock_period \(ns\) of 'rtl_tcam' has no .* value"):
        modelled_sample(small(), hardware.load_components(tcam="rtl_tcam"), energy=False)
    for model in (modelled_sample, modelled_update):
        with pytest.raises(ValueError, match="energy must be False for 'rtl_tcam'"):
            model(small(), clocked())
        with pytest.raises(ValueError, match=r"variant must be one of fr_\w+, .*, got 'k_counted'"):
            model(small(variant="k_counted"), clocked(), energy=False)
        for ports in ("csp_ports", "write_ports"):
            with pytest.raises(ValueError, match=f"{ports} must be 1 for 'rtl_tcam', got 2"):
                model(small(**{ports: 2}), clocked(), energy=False)


def test_given_figures_say_so():
    components = hardware.load_components()
    known = components.given(search_delay=1.0)
    assert known.figures["search_delay"].status == "given"
    assert components["search_delay"] != known["search_delay"]
    assert components.given(assumed=True, search_delay=1.0).figures["search_delay"].status == (
        "assumed"
    )
    with pytest.raises(ValueError, match="no such figure"):
        components.given(speed=1.0)
    for value in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="search_delay must be positive"):
            components.given(search_delay=value)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("capacity", 0, "capacity must be at least 1, got 0"),
        ("capacity", 10.0, "capacity must be a whole number"),
        ("key_bits", 65, "key_bits must be at most 64, got 65"),
        ("rows_per_array", 0, "rows_per_array must be at least 1"),
        ("groups", True, "groups must be a whole number"),
        ("variant", "tree", "variant must be one of"),
        ("overlap", "none", "overlap must be one of"),
        ("csp_ratio", 1.5, "csp_ratio must be above 0 and at most 1, got 1.5"),
        ("csp_ratio", 0.0, "csp_ratio must be above 0"),
        ("csp_size", 61, r"csp_size must be at most 60 \(capacity\), got 61"),
        ("csp_size", 0, "csp_size must be at least 1"),
        ("batch_size", -1, "batch_size must be at least 1"),
        ("csp_ports", 5, r"csp_ports must be at most 4 \(the number of arrays\), got 5"),
        ("write_ports", 5, "write_ports must be at most 4"),
        ("range_queries", 0.5, "range_queries must be at least 1"),
        ("best_match_searches", 0, "best_match_searches must be at least 1"),
    ],
)
def test_designs_refused(field, value, message):
    with pytest.raises(ValueError, match=message):
        small(**{field: value})


def test_candidates_from_the_ratio():
    assert Design(10_000).candidates == 1_500
    assert Design(3, csp_ratio=0.01).candidates == 1
    assert Design(10_000, csp_size=7).candidates == 7


def test_every_figure_has_unit_source_condition_and_status():
    tables = tomllib.loads(DATA.read_text(encoding="utf-8"))
    groups = [tables["peripheral"], *tables["tcam"].values()]
    figures = [figure for group in groups for figure in group.values()]
    assert len(figures) > 20
    for figure in figures:
        assert set(figure) == {"value", "unit", "source", "status", "condition"}
        assert all(figure.values())
        assert figure["status"] in hardware.FILE_STATUSES
    assert {figure["source"] for figure in figures} == set(tables["sources"])  # none is idle
    for name, source in tables["sources"].items():
        assert source["where_read"]
        if name == "rtl":  # ours
            assert (ROOT / source["cite"].partition(", ")[2]).exists()
            assert (ROOT / source["where_read"].split()[-1]).exists()
            continue
        assert re.search(r"DOI|arXiv", source["cite"])
        assert re.search(r"\b20\d\d\b", source["cite"])
    for tcam in hardware.available_tcams():
        for name, figure in hardware.load_components(tcam=tcam).figures.items():
            assert figure.name == name
            assert figure.unit == hardware.UNITS[name]
            assert figure.source
            assert figure.where_read


def test_derived_figures_follow_from_their_conditions():
    figures = hardware.load_components().figures
    assert figures["search_energy"].value == pytest.approx(1.5e3 / (64 * 64))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('unit = "ns"', 'unit = "s"', "unit must be 'ns', got 's'"),
        ("value = 0.244", "value = -1", "value must be positive"),
        ("value = 0.244", 'value = "fast"', "value must be positive"),
        ('status = "tool"', 'status = "remembered"', "status must be one of"),
        ('source = "camasim"', 'source = "nobody"', "source 'nobody' is not among"),
        ("[peripheral.adder_delay]", "[peripheral.speed]", "speed: no such figure"),
        ('condition = "as adder_delay"', "", "keys must be"),
        ("[tcam.", "[cells.", "must have sources, peripheral and tcam"),
        ('where_read = "abstract', 'read = "abstract', "wants cite and where_read"),
        ("value = 0.244", "value =", "is not a TOML file"),
    ],
)
def test_files_refused(tmp_path, old, new, message):
    text = DATA.read_text(encoding="utf-8")
    assert old in text
    file = tmp_path / "mine.toml"
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        hardware.load_components(file)


def test_a_file_of_ones_own(tmp_path):
    file = tmp_path / "mine.toml"
    text = DATA.read_text(encoding="utf-8").replace("value = 0.35\n", "value = 0.7\n")
    file.write_text(text, encoding="utf-8")
    assert hardware.load_components(file)["search_delay"] == 0.7
    assert hardware.available_tcams(file) == hardware.available_tcams()
    with pytest.raises(FileNotFoundError):
        hardware.load_components(tmp_path / "none.toml")
    with pytest.raises(ValueError, match=r"tcam must be one of .*, got 'gpu'"):
        hardware.load_components(tcam="gpu")


def test_sweep_marks_what_it_assumes():
    points = hardware.sweep(
        Design(5_000),
        hardware.load_components(tcam="cmos_tcam_65nm"),
        fields={"groups": (10, 20), "overlap": hardware.OVERLAPS},
        assumed_ranges={"search_delay": (0.5, 5.0)},
    )
    assert len(points) == 8
    first, second = points[:2]
    assert first.fields == {"groups": 10, "overlap": "serial"}
    assert (first.assumed_range, second.assumed_range) == (
        {"search_delay": 0.5},
        {"search_delay": 5.0},
    )
    assert first.modelled.modelled_latency_ns < second.modelled.modelled_latency_ns
    only = hardware.sweep(Design(5_000), hardware.load_components())
    assert [point.modelled for point in only] == [
        modelled_sample(Design(5_000), hardware.load_components())
    ]
    with pytest.raises(TypeError, match="speed"):
        hardware.sweep(Design(5_000), hardware.load_components(), fields={"speed": (1,)})


def test_comparison_names_both_sides():
    run = modelled_sample(Design(10_000), hardware.load_components())
    found = hardware.compare_with_measured(run, 25e-6, "2 EPYC cores, cpprb")
    assert found.label == (
        "modelled AMPER on fefet_2fefet_45nm versus PER measured on 2 EPYC cores, cpprb"
    )
    assert found.measured_per_latency_ns == pytest.approx(25_000)
    assert found.measured_over_modelled == pytest.approx(25_000 / run.modelled_latency_ns)
    for seconds in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="measured_per_seconds must be positive"):
            hardware.compare_with_measured(run, seconds, "here")
    with pytest.raises(ValueError, match="platform must name"):
        hardware.compare_with_measured(run, 1e-6, " ")
    components = hardware.load_components(tcam="camasim_tcam_64")
    update = modelled_update(Design(100), components, energy=False)
    with pytest.raises(ValueError, match="modelled must be of a sampling, got 'update'"):
        hardware.compare_with_measured(update, 1e-6, "here")


def test_the_page_prints_what_the_model_says():
    assert hardware.figures_table() in PAGE
    components = hardware.load_components()
    for capacity in (5_000, 10_000, 20_000, 1_000_000):
        design = Design(capacity)
        in_parallel = dataclasses.replace(design, csp_ports=16)
        serial = dataclasses.replace(design, overlap="serial")
        energy = modelled_sample(design, components).modelled_energy_pj
        times = [latency(each, components) for each in (serial, design, in_parallel)]
        line = " | ".join(f"{time:,.0f}" for time in times)
        assert f"| {capacity:,} | {design.arrays:,} | {line} | {energy / 1e3:,.1f} |" in PAGE
    for variant in hardware.VARIANTS:
        design = Design(10_000, variant=variant)
        run = modelled_sample(design, components)
        assert (
            f"| `{variant}` | {design.searches:,} | {run.modelled_latency_ns:,.0f} "
            f"| {run.modelled_energy_pj / 1e3:,.1f} |"
        ) in PAGE


def test_the_page_prints_the_clocked_latency():
    components = clocked(4.0)
    for capacity in (5_000, 10_000, 20_000):
        found = modelled_sample(Design(capacity), components, energy=False)
        cycles = found.modelled_latency_ns / 4
        assert f"| {capacity:,} | {cycles:,.0f} | {found.modelled_latency_ns:,.0f} |" in PAGE


def test_the_page_says_that_nothing_was_run():
    words = " ".join(PAGE.split())
    assert "Nothing here was run on AM hardware" in words
    assert "the abstract claims 55x to 270x lower latency than PER on a GPU" in words
