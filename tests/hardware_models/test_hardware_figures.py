"""Figures of AM hardware: each has a source, missing ones are asked for, bad files are refused."""

import math
import pathlib
import re
import tomllib
from importlib import resources

import pytest

from accel_rl.hardware_models import associative_memory as hardware
from accel_rl.hardware_models.associative_memory import Design, modelled_sample, modelled_update

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = resources.files("accel_rl.hardware_models.associative_memory") / "components.toml"


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
    with pytest.raises(KeyError, match="nothing"):
        tool["nothing"]


def test_given_figures_say_so():
    components = hardware.load_components()
    known = components.given(search_delay=1.0)
    assert known.figures["search_delay"].status == "given"
    assert components["search_delay"] != known["search_delay"]
    assert components.given(assumed=True, search_delay=1.0).figures["search_delay"].status == (
        "assumed"
    )
    with pytest.raises(ValueError, match=r"figure must be one of .*, got 'speed'"):
        components.given(speed=1.0)
    for value in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="search_delay must be finite and above 0"):
            components.given(search_delay=value)


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
        ('unit = "ns"', 'unit = "s"', "unit of adder_delay must be one of ns, got 's'"),
        ("value = 0.244", "value = -1", r"peripheral.adder_delay.value\s+Input should be greater"),
        ("value = 0.244", 'value = "fast"', "Input should be a valid number"),
        ('status = "tool"', 'status = "remembered"', "Input should be 'silicon', 'simulated'"),
        (
            'source = "camasim"',
            'source = "nobody"',
            "source of adder_delay must be one of",
        ),
        ("[peripheral.adder_delay]", "[peripheral.speed]", "figure must be one of .*, got 'speed'"),
        ('condition = "as adder_delay"', "", r"condition\s+Field required"),
        ("[tcam.", "[cells.", "Extra inputs are not permitted"),
        ('where_read = "abstract', 'read = "abstract', r"where_read\s+Field required"),
        ("value = 0.244", "value =", "mine.toml is not a file of figures: Invalid value"),
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
