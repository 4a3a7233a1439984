"""The benchmark of the replay server: what is timed, and claims from its records."""

import sys
from pathlib import Path

import pytest
from optional import require

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import common
import replay_server as benchmark
from replay_server_rivals import OtherRival

require("replay server")

# Answers as the scripts of rivals do: pushes take 1 s, anything else 2 us.
SCRIPT = """
import json, sys
print(json.dumps({"version": "0"}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    slow = request.get("operation", "").startswith("push")
    answer = {"filled": True} if "fill" in request else {"p50": 1e6 if slow else 2.0}
    print(json.dumps(answer), flush=True)
"""


@pytest.fixture
def rivals(tmp_path, capfd):
    script = tmp_path / "rival.py"
    script.write_text(SCRIPT)
    absent = OtherRival(benchmark.REVERB, None, str(script), "dm-reverb")
    assert "claims are null" in capfd.readouterr().err
    broken = OtherRival("none", "/bin/false", str(script), "nothing")
    assert "did not start" in capfd.readouterr().err
    present = OtherRival(benchmark.RAY, sys.executable, str(script), "ray")
    yield [present, absent, broken]
    present.close()


def test_claims_come_from_what_ran(monkeypatch, rivals):
    monkeypatch.setattr(benchmark, "CAPACITY", {40: 600})
    monkeypatch.setattr(benchmark.cores, "wait", lambda seconds: None)
    report = common.Report(["numpy"])
    benchmark.measure(report, 40, 1, 3, rivals)
    systems = {record.system for record in report.records}
    assert {benchmark.TCP, benchmark.UNIX, benchmark.RAY} <= systems
    assert not {benchmark.REVERB, "none"} & systems
    operations = {r.case.split(", ")[1] for r in report.records if r.system == benchmark.TCP}
    assert operations == set(benchmark.OPERATIONS)
    holds = {claim.claim: claim.holds for claim in report.claims}
    for operation, slower in (("push 50", True), ("sample 64", False), ("sample 512", False)):
        case = f"40 B items, {operation}"
        of_rivals = [holds[c] for c in holds if c.startswith(f"{case}: {benchmark.RAY}")]
        assert of_rivals == [slower]
        assert [holds[c] for c in holds if c.startswith(f"{case}: {benchmark.REVERB}")] == [None]


def test_all_hold_the_same_distribution():
    items = benchmark.make_items(600, 40)
    assert sum(column.dtype.itemsize * column[0].size for column in items.arrays.values()) == 40
    assert len(next(iter(items.part(580, 50).values()))) == 20
