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
    with pytest.raises(ValueError, match="no figure 'nothing'"):
        tool["nothing"]


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
