"""--overwrite, and what it leaves in a folder."""

import json
import shutil

import pytest
from commands import SMALL, TINY, invoke, succeed

from accel_rl.cli import clearing
from accel_rl.experiment import folder
from accel_rl.experiment import sweep as sweeps
from accel_rl.io import run_folder


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
        "results.json", "run.json",
    }  # fmt: skip
    shutil.rmtree(out)
    shutil.copytree(sweep[0], out, ignore=pictures)
    (out / "mine.txt").touch()
    succeed("train", dataset, *SMALL, *over)
    assert {file.name for file in out.iterdir()} == {
        "mine.txt", "config.json", "results.json", "run.json", "table.npz", "history.json",
    }  # fmt: skip
    shutil.rmtree(out)
    shutil.copytree(training[0], out, ignore=pictures)
    (out / "mine.txt").touch()
    stopped = {"reason": "interrupted", "steps": 0}
    monkeypatch.setattr(sweeps, "run", lambda *_, **__: stopped)  # what it writes is known
    invoke("sweep", "dqn", "CartPole-v1", *TINY, "agent.gamma=0.9,1", *over)
    assert {file.name for file in out.iterdir()} == {"mine.txt"}


@pytest.mark.parametrize("name", ["../kept", "../kept/", "/kept/", "..", "./", "a/../../kept"])
def test_a_manifest_that_lists_files_elsewhere_is_damaged(tmp_path, name):
    (tmp_path / "kept").mkdir()
    out = tmp_path / "run"
    run_folder.begin_run(out, "training", "accel-rl train dqn", [0], {})
    manifest = json.loads((out / "run.json").read_text())
    (out / "run.json").write_text(json.dumps({**manifest, "files": {name: "no file of a run"}}))
    with pytest.raises(ValueError, match=r"run\.json is damaged: files must be names within the"):
        clearing.clear(out)
    assert (tmp_path / "kept").is_dir()


def test_what_any_command_wrote_is_cleared(tmp_path):
    run_folder.begin_run(tmp_path, "training", "accel-rl train dqn", [0], folder.FILES)
    for name in (*folder.FILES, "mine.txt", "picture.png"):
        if name.endswith("/"):
            (tmp_path / name / "000000000005").mkdir(parents=True)
        else:
            (tmp_path / name).touch()
    clearing.clear(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"mine.txt", "picture.png"}
