"""The machine description: values, sources, and what is refused."""

import dataclasses
import re
from importlib import resources

import pytest

from pim_emu.machine import (
    STATUSES,
    available_machines,
    constants_table,
    load_machine,
    parse_constants,
    parse_machine,
)


def text_of(name: str = "upmem-2560") -> str:
    return (resources.files("pim_emu") / "machines" / f"{name}.toml").read_text(encoding="utf-8")


def with_constant(name: str, old: str, new: str) -> str:
    """The machine's text with one change within one constant."""
    head, tail = text_of().split(f"[constants.{name}]\n")
    assert old in tail
    return f"{head}[constants.{name}]\n{tail.replace(old, new, 1)}"


def test_the_machine_of_the_papers():
    machine = load_machine()
    assert machine == load_machine("upmem-2560")
    assert (machine.ranks, machine.dpus_per_rank, machine.total_dpus) == (40, 64, 2560)
    assert (machine.max_tasklets, machine.pipeline_reissue, machine.pipeline_stages) == (24, 11, 14)
    assert machine.clock_hz == 350e6
    assert (machine.mram_bytes, machine.wram_bytes) == (64 * 2**20, 64 * 2**10)
    assert machine.iram_instructions == 4096
    assert (machine.dma_max_bytes, machine.dma_min_bytes, machine.dma_alignment_bytes) == (
        2048,
        8,
        8,
    )
    assert (machine.dma_read_alpha, machine.dma_write_alpha) == (77, 61)
    assert machine.dpu_watts == pytest.approx(383 / 2556, rel=0.01)
    assert isinstance(machine.ranks, int)
    assert isinstance(machine.dma_read_alpha, float)


def test_the_newer_core_is_smaller_and_faster():
    machine, newer = load_machine(), load_machine("upmem-v1b")
    assert (newer.wram_bytes, newer.iram_instructions, newer.max_tasklets) == (63_488, 3_968, 16)
    assert newer.clock_hz == 400e6
    # Nothing else is known to differ, and rates carried over from v1A are not called published.
    changed = {
        field.name
        for field in dataclasses.fields(machine)
        if getattr(machine, field.name) != getattr(newer, field.name)
    }
    expected = {"max_tasklets", "clock_hz", "wram_bytes", "iram_instructions"}
    assert changed == {"name", "sources"} | expected
    assert newer.sources["dma_read_alpha"].status == "assumed"


@pytest.mark.parametrize("name", available_machines())
def test_every_constant_has_a_source_and_a_status(name):
    machine = load_machine(name)
    fields = {field.name for field in dataclasses.fields(machine)} - {"name", "sources"}
    assert set(machine.sources) == fields
    for constant in machine.sources.values():
        assert constant.status in STATUSES
        assert len(constant.source) > 3
        assert getattr(machine, constant.name) == constant.value


def test_a_figure_remembered_from_a_paper_is_not_called_published():
    # Only what was seen in a second source is.
    confirmed = {"to_dpu_bandwidth", "to_rank_bandwidth"}
    for constant in load_machine().sources.values():
        if constant.source.startswith("PrIM"):
            assert constant.status == ("published" if constant.name in confirmed else "remembered")


def test_machines_hash_and_compare_by_value():
    assert hash(load_machine()) == hash(load_machine())
    assert load_machine() != load_machine("upmem-v1b")


def test_load_from_a_path(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(with_constant("ranks", "value = 40", "value = 2"), encoding="utf-8")
    assert load_machine(path).total_dpus == 128
    assert load_machine(str(path)).name == "mine"
    with pytest.raises(FileNotFoundError):
        load_machine(tmp_path / "absent.toml")


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"'upmem-1'.*upmem-2560, upmem-v1b"):
        load_machine("upmem-1")


def test_missing_and_unknown_constants_are_named():
    without = re.sub(r"\[constants\.clock_hz\].*?\n\n", "", text_of(), flags=re.DOTALL)
    with pytest.raises(ValueError, match=r"missing constants \['clock_hz'\], unknown \[\]"):
        parse_machine(without, "broken")
    renamed = text_of().replace("[constants.clock_hz]", "[constants.clock]")
    with pytest.raises(ValueError, match=r"missing constants \['clock_hz'\], unknown \['clock'\]"):
        parse_machine(renamed, "broken")


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("clock_hz", "350e6", "0", "'clock_hz': value must be positive, got 0"),
        ("clock_hz", "350e6", "-1.0", "'clock_hz': value must be positive, got -1"),
        ("clock_hz", "350e6", "nan", "'clock_hz': value must be a finite number, got nan"),
        ("clock_hz", "350e6", "true", "'clock_hz': value must be a finite number, got True"),
        ("clock_hz", "350e6", '"fast"', "'clock_hz': value must be a finite number, got 'fast'"),
        ("clock_hz", '"Hz"', '"MHz"', "'clock_hz': unit must be 'Hz', got 'MHz'"),
        ("clock_hz", '"published"', '"certain"', "'clock_hz': status must be one of"),
        ("clock_hz", "unit =", "units =", "'clock_hz': keys must be"),
        ("launch_seconds", "38.9e-6", "-1", "'launch_seconds': value must be positive, got -1"),
        ("ranks", "40", "2.5", "'ranks': value must be a whole number, got 2.5"),
    ],
)
def test_bad_constants_are_refused(name, old, new, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_machine(with_constant(name, old, new), "broken")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = ", "'broken' is not a TOML file"),
        ("a = 1", r"no \[constants"),
        ("constants = 1", r"no \[constants"),
        ("[constants]\na = 1", "'a': must be a table"),
        ('[constants.a]\nvalue=1\nunit="s"\nstatus="measured"\nsource=""', "source must be a text"),
    ],
)
def test_bad_files_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse_constants(text, "broken")


def test_table_of_constants():
    text = (
        '[constants.a]\nvalue = 1234.5\nunit = "s"\nsource = "a book"\nstatus = "published"\n'
        '[constants.b]\nvalue = 0\nunit = "B"\nsource = "us"\nstatus = "assumed"\nremark = "why"\n'
    )
    assert constants_table(parse_constants(text, "two")).splitlines()[2:] == [
        "| `a` | 1,234.5 | s | published | a book. |",
        "| `b` | 0 | B | assumed | us. why. |",
    ]
