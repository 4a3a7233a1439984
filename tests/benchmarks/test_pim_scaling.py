"""The modelled scaling of both partitions: its groups hold every step, and a page its tables."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import pim_scaling as benchmark

from accel_rl.experiment import swiftrl
from accel_rl.pim import cost

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cost-model.md"


@pytest.fixture(scope="module")
def log():
    return benchmark.load("FrozenLake-v1", 20_000)


@pytest.mark.parametrize("by", benchmark.PARTITIONS)
def test_groups_hold_every_step(log, by):
    found = benchmark.scaling(log, "int32_pow2", by)
    for run in (found.few, found.many):
        groups = benchmark.grouped(run.detail)
        assert sum(groups.values()) == pytest.approx(run.total)
        assert groups["launches"] + groups["cycles"] == pytest.approx(run.pim_kernel)
        assert min(groups.values()) > 0
    lost = {
        name: seconds - benchmark.grouped(found.few.detail)[name] / 16
        for name, seconds in benchmark.grouped(found.many.detail).items()
    }
    assert found.limit == (max(lost, key=lost.get), pytest.approx(max(lost.values())))


def test_the_limit_is_what_falls_least():
    def run(seconds):
        return cost.ModelledSeconds(0.0, 0.0, 0.0, 0.0, 0.0, seconds)

    few, many = {"merge_pull": 16.0, "kernel_apply": 160.0}, {"merge_pull": 3.0, "kernel_apply": 11}
    assert benchmark.Scaling(run(few), run(many), 16.0).limit == ("pulls", 2.0)


def test_a_picture_is_drawn(log, tmp_path):
    benchmark.draw({"FrozenLake-v1": log}, tmp_path / "launches.png")
    assert (tmp_path / "launches.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.long  # models logs of 5 M rows
def test_the_page_holds_the_tables():
    text = PAGE.read_text(encoding="utf-8")
    logs = {name: benchmark.load(name, benchmark.ROWS) for name in swiftrl.ENVIRONMENTS}
    for table in (benchmark.comparison, benchmark.sensitivity):
        assert "\n".join(table(logs)) in text
