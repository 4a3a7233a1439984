"""The scoreboard's parts, what is kept of them, and the page that is made of what is kept."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import scoreboard
from scoreboard_parts import Part, parts

from accel_rl.cli import train_agent
from accel_rl.envs import is_host
from accel_rl.envs.registry import list_environments

ROOT = Path(__file__).resolve().parents[2]
WORDS = ("td3", "Pendulum-v1", "--seeds", "2")
SHORT = ("--steps", "1200", "evaluation.every=600", "evaluation.episodes=2", "agent.hidden=[8]")


@pytest.fixture
def folders(tmp_path, monkeypatch):
    monkeypatch.setattr(scoreboard, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(scoreboard, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(scoreboard, "PAGE", tmp_path / "page.md")
    return tmp_path


def test_parts_have_names_of_their_own_and_known_environments():
    found = parts()
    assert len({part.name for part in found}) == len(found)
    known = list_environments(gymnax=True)
    for part in found:
        agent, environment, *_ = part.command
        assert agent in train_agent.AGENTS
        assert environment == part.environment
        assert environment in known or is_host(environment) or environment.startswith("brax:")


def test_the_page_is_what_is_kept():
    assert (ROOT / "docs" / "scoreboard.md").read_text() == scoreboard.page()


def test_kept_files_are_of_parts():
    names = {part.name for part in parts()}
    for path in scoreboard.KEPT.glob("*.json"):
        assert path.stem in names
        found = json.loads(path.read_text())
        assert len(found["scores"]) == next(p.seeds for p in parts() if p.name == path.stem)
        assert found["wall_seconds"] is None or found["wall_seconds"] > 0
        assert [row[0] for row in found["curve"]] == sorted(row[0] for row in found["curve"])


def test_scores_have_intervals():
    assert scoreboard.score([1.0, 2.0, 6.0]) == "3.0 (1.0 to 6.0)"
    middle, low, high = (
        float(each) for each in scoreboard.score([1.0, 2, 3, 4, 90]).replace(
            "(", "").replace(")", "").replace(" to", "").split()
    )  # fmt: skip
    assert middle == 3
    assert low <= middle <= high


def seed(*curve, wall=30.0, cpu="AMD EPYC"):
    times = {"wall_seconds": wall, "cpu_seconds": 9.0, "machine": {"cpu": cpu, "cores": 1}}
    return {"scores": [curve[-1][1]], "curve": curve, **times, "command": "command"}


def test_times_to_the_threshold_are_of_the_slowest_seed():
    case = [
        seed([1, 0.0, 10.0, 1.0], [2, 7.0, 20.0, 4.0], [3, 8.0, 30.0, 9.0]),
        seed([1, 0.0, 11.0, 2.0], [2, 5.0, 19.0, 5.0], [3, 8.0, 29.0, 8.0], cpu="Intel(R) Xeon(R)"),
    ]
    slower = [seed([1, 0.0, 10.0, None], [2, 2.0, 20.0, None])]
    reach = scoreboard.threshold([case, slower])
    assert reach == 6.0
    assert "| 30 | 9 | 6.0 | 20 | 5 | 1 AMD, 1 Intel |" in scoreboard.line("E", "A", case, reach)
    assert "| 30 | 9 | 6.0 |  |  | 1 AMD |" in scoreboard.line("E", "A", slower, reach)
    old = [seed([1, 0.0, 10.0], [2, 8.0, 20.0])]  # without CPU time
    assert "| 30 | 9 | 6.0 | 20 |  |" in scoreboard.line("E", "A", old, reach)
    stopped = [seed([1, 0.0, 10.0, 1.0], [2, 8.0, 20.0, 2.0], wall=None)]
    assert "|  | 9 | 6.0 |  |  |" in scoreboard.line("E", "A", stopped, reach)


def test_a_rival_that_is_absent_is_not_run(folders, capsys, monkeypatch):
    rival = Part("MuJoCo", "Hopper-v5", "SB3 TD3", ("td3", "Hopper-v5", "--seed", "0"), 0)
    monkeypatch.setattr(scoreboard, "parts", lambda: [rival])
    scoreboard.main([])
    assert "needs --rivals" in capsys.readouterr().out
    assert "| Hopper-v5 | SB3 TD3 | | | | | | | | | |" in scoreboard.PAGE.read_text()


@pytest.mark.long  # trains by the command line, in processes of their own
def test_a_part_is_trained_by_its_command_and_goes_on(folders, monkeypatch):
    short = Part("Classic control", "Pendulum-v1", "TD3", (*WORDS, *SHORT), seeds=2)
    monkeypatch.setattr(scoreboard, "parts", lambda: [short])
    scoreboard.main([])
    kept = scoreboard.kept(short)
    assert len(kept["scores"]) == 2
    assert [row[0] for row in kept["curve"]] == [600, 1_200]
    assert 0 < kept["curve"][0][3] <= kept["curve"][1][3] <= round(kept["cpu_seconds"], 1)
    assert kept["command"].startswith("accel-rl train td3 Pendulum-v1 --seeds 2 --steps 1200")
    assert "| Pendulum-v1 | TD3 | 1,200 | 2 |" in scoreboard.PAGE.read_text()
    before = (scoreboard.RUNS / short.name / "metrics.jsonl").stat().st_mtime_ns
    scoreboard.main([])
    assert (scoreboard.RUNS / short.name / "metrics.jsonl").stat().st_mtime_ns == before
    (scoreboard.KEPT / f"{short.name}.json").unlink()
    scoreboard.main([])
    again = scoreboard.kept(short)
    assert again["scores"] == kept["scores"]
    assert again["wall_seconds"] is again["cpu_seconds"] is None  # of two processes
    assert "| Pendulum-v1 | TD3 | 1,200 | 2 |" in scoreboard.PAGE.read_text()
