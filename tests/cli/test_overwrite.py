"""--overwrite, and what it leaves in a folder."""

import shutil

import pytest
from commands import SMALL, TINY, invoke, succeed

from accel_rl.cli import clearing


@pytest.mark.long  # wants the sweep
def test_overwrite_leaves_nothing_of_another_kind_of_run(
    training, sweep, dataset, tmp_path, monkeypatch
):
    pictures = shutil.ignore_patterns("*.png")  # of another test
    out = shutil.copytree(sweep[0], tmp_path / "run", ignore=pictures)
    (out / "mine.txt").touch()
    over = ("--out", out, "--overwrite")
    succeed("train", "dqn", "--config", training[0] / "config.json", *over)
    assert {file.name for file in out.iterdir()} == {
        "mine.txt", "README.txt", "checkpoints", "config.json", "metrics.csv", "metrics.jsonl",
        "results.json",
    }  # fmt: skip
    shutil.copytree(sweep[0], out, dirs_exist_ok=True, ignore=pictures)
    succeed("train", dataset, *SMALL, *over)
    assert {file.name for file in out.iterdir()} == {
        "mine.txt", "config.json", "results.json", "table.npz", "history.json",
    }  # fmt: skip
    shutil.copytree(training[0], out, dirs_exist_ok=True, ignore=pictures)
    stopped = {"reason": "interrupted", "steps": 0}
    monkeypatch.setattr(sweep, "run", lambda *_, **__: stopped)  # what it writes is known
    invoke("sweep", "dqn", "CartPole-v1", *TINY, "agent.gamma=0.9,1", *over)
    assert {file.name for file in out.iterdir()} == {"mine.txt"}


def test_what_any_command_wrote_is_cleared(tmp_path):
    ours = ("spec.toml", "mapping.toml", "plan.json", "run.json", "details.json", "table.npz")
    ours += ("history.json", "config.json", "results.json", "metrics.jsonl", "README.txt")
    for name in (*ours, "mine.txt", "picture.png"):
        (tmp_path / name).touch()
    (tmp_path / "checkpoints" / "000000000005").mkdir(parents=True)
    clearing.clear(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"mine.txt", "picture.png"}
