"""The benchmark of a hostile client's neighbour."""

import sys
from pathlib import Path

from optional import require

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import common
import neighbour as benchmark

require("replay server")


def test_claims_are_of_the_worst_kind():
    report = common.Report(["numpy"])
    benchmark.claim(report, "tcp", {"AMPER": 2.0, "large pings": 7.0})
    benchmark.claim(report, "unix", {"AMPER": 2.0})
    benchmark.claim(report, "udp", {})
    assert [(claim.value, claim.holds) for claim in report.claims] == [
        (7.0, False),
        (2.0, True),
        (None, None),
    ]
    assert "large pings" in report.claims[0].claim


def test_every_kind_of_work_is_a_request_of_its_table():
    for spec, build in benchmark.kinds(1_000).values():
        assert spec.name in ("tails", "large", "small")
        frame = build(3)
        assert benchmark.wire.U32.unpack_from(frame, benchmark.wire.LENGTH_AT)[0] == len(frame)
