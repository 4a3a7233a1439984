"""The benchmark of Ape-X's learning: its test of equality; and the run of all benchmarks."""

import json
import sys
from pathlib import Path

import numpy as np
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import accept
import apex_learning
from apex_learning import LOCAL, MARGIN, TCP
from common import Report


def test_the_interval_is_welchs():
    rng = np.random.default_rng(0)
    one, other = rng.normal(250, 80, 20), rng.normal(280, 120, 12)
    interval = stats.ttest_ind(one, other, equal_var=False).confidence_interval(0.9)
    expected = max(abs(interval.low), abs(interval.high))
    np.testing.assert_allclose(apex_learning.further_end(one, other), expected)
    same = np.full(5, 500.0)
    assert apex_learning.further_end(same, same) == 0.0


def test_a_claim_holds_where_both_tests_do():
    noise = np.random.default_rng(1).normal(0, 30, 20)
    for shift, holds in ((0.0, True), (MARGIN, False), (-MARGIN, False)):
        report = Report([])
        found = {TCP: list(250 + noise + shift), LOCAL: list(250 - noise)}
        apex_learning.fill(report, "case", found, {TCP: [1.0], LOCAL: [1.0]})
        (claim,) = report.claims
        assert claim.holds is holds
        low = stats.ttest_ind(np.add(found[TCP], MARGIN), found[LOCAL], equal_var=False)
        high = stats.ttest_ind(np.subtract(found[TCP], MARGIN), found[LOCAL], equal_var=False)
        below = low.statistic > 0 and low.pvalue / 2 < 0.05
        above = high.statistic < 0 and high.pvalue / 2 < 0.05
        assert bool(below and above) is holds


def test_all_benchmarks_are_there_and_a_failed_one_is_told(tmp_path, monkeypatch):
    folder = Path(accept.__file__).parent
    commands = {
        path.stem for path in folder.glob("*.py")
        if "__main__" in (source := path.read_text()) and '"--quick"' in source
    }  # fmt: skip
    assert commands - {"accept"} == set(accept.BENCHMARKS)
    for name, options in accept.BENCHMARKS.items():
        source = (folder / f"{name}.py").read_text()
        for option in ("--json", "--quick", *options):
            assert f'"{option}"' in source, (name, option)
    monkeypatch.setattr(accept, "HERE", tmp_path)
    claim = {"claim": "c", "value": None, "bound": 2.0, "holds": None, "sense": ">="}
    (tmp_path / "good.py").write_text(
        "import json, sys; from pathlib import Path\n"
        f"Path(sys.argv[2]).write_text(json.dumps({{'claims': [{claim!r}]}}))\n"
    )
    (tmp_path / "bad.py").write_text("raise SystemExit(3)\n")
    good = accept.run("good", tmp_path / "good.json", [], None)
    assert json.loads((tmp_path / "good.json").read_text()) == good
    assert good["claims"] == [claim]
    assert good["commit"] is None
    (tmp_path / "bad.json").write_text("of this morning")
    assert accept.run("bad", tmp_path / "bad.json", [], None) is None
    assert (tmp_path / "bad.json").read_text() == "of this morning"
    assert not list(tmp_path.glob("*.draft"))
    failed = {"claims": [claim | {"value": 1.0, "holds": False}]}
    for reports, well in (
        ({"a": good}, (True, True)),
        ({"a": good, "b": failed}, (True, False)),
        ({"a": None}, (False, True)),
    ):
        assert accept.table_of(reports)[1:] == well
