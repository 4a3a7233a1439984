"""The benchmark of compilation: its clock runs while JAX compiles, and claims compare medians."""

import json
import sys
from pathlib import Path

import jax
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import compile_time as benchmark


def test_the_clock_runs_where_something_is_compiled():
    clock = benchmark.Clock()
    fn = jax.jit(lambda x: x * 3 + 1)
    fn(1.0)
    first = clock.seconds
    assert first > 0
    fn(2.0)
    assert clock.seconds == first


@pytest.mark.parametrize(("times", "holds"), [(1.9, True), (2.1, False)])
def test_claims_compare_with_prioritised_replay(tmp_path, monkeypatch, times, holds):
    def compile_once(clock, agent, sampler, seeds, executor, *, on_host):
        return 10.0 * (times if sampler == "amper_k" else 1) * (1.5 if seeds > 1 else 1)

    monkeypatch.setattr(benchmark, "compile_once", compile_once)
    benchmark.main(["--json", str(tmp_path / "r.json")])
    report = json.loads((tmp_path / "r.json").read_text())
    assert len(report["records"]) == len(benchmark.cases())
    values = [claim["value"] for claim in report["claims"]]
    assert values == pytest.approx([1, times, 1, times, 1.5, 1, 1])
    found = [claim["holds"] for claim in report["claims"]]
    assert found == [True, holds, True, holds, True, True, True]
