"""The benchmarks of durability and of access latency, on servers that are small."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from optional import needs

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import access_latency
import durability

pytestmark = [needs("replay server"), pytest.mark.long]  # processes that import JAX


def test_durability(tmp_path):
    durability.main(["--quick", "--json", str(tmp_path / "r.json")])
    report = json.loads((tmp_path / "r.json").read_text())
    found = {(each["case"], each["system"]): each["value"] for each in report["records"]}
    for size in durability.SIZES:
        case = f"push {durability.PUSHED} of {size:,} B"
        assert all(found[case, name] > 0 for name in ("none", "snapshot", "log", "plain writes"))
    assert all(claim["value"] is not None for claim in report["claims"])
    lost = found[durability.KILLED, "log"]
    assert 0 <= lost < 10_000  # ms


def test_access_latency(tmp_path):
    picture = tmp_path / "p.png"
    access_latency.main(["--quick", "--json", str(tmp_path / "r.json"), "--plot", str(picture)])
    report = json.loads((tmp_path / "r.json").read_text())
    metrics = {each["metric"] for each in report["records"]}
    assert {"sample 64, p50", "update 64, p99", access_latency.SHARE} <= metrics
    shares = [x["value"] for x in report["records"] if x["metric"] == access_latency.SHARE]
    with_memif = any(each["system"] == "memif" for each in report["records"])
    assert len(shares) == 2 * (4 + with_memif)
    assert np.all((np.array(shares) > 0) & (np.array(shares) < 100))
    assert picture.stat().st_size > 10_000
