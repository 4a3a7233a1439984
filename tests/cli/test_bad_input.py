"""Bad usage and bad input: exit code 2 and one line that names what is wrong."""

import os
import re
from importlib import resources

import pytest
from commands import SMALL, invoke
from sdk_present import needs

from accel_rl import datasets, pim
from accel_rl.io import run_folder


def complaint(*arguments):
    """The one line on stderr of a command that must refuse."""
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("accel-rl: ")
    return line


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("collect", "Taxy-v3", "--out", "x.npz"), ("ENV", "Taxy-v3", "Taxi-v3")),
        (("collect", "Taxi-v3"), ("--out",)),
        (("collect", "Taxi-v3", "--out", "no/such/x.npz"), ("--out", "no/such")),
        (("collect", "Taxi-v3", "--out", "x.npz", "--num", 0), ("--num",)),
        (("collect", "Taxi-v3", "--out", "x.npz", "--seed", -1), ("--seed",)),
        (("collect", "Taxi-v3", "--out", "x.npz", "--policy", "none"), ("--policy", "none")),
        (("train", "Taxi"), ("ENV|DATASET.npz", "Taxi-v3")),
        (("train", "absent.npz"), ("DATASET.npz", "absent.npz")),
        (("train", "Taxi-v3", "--machine", "none"), ("--machine", "upmem-2560")),
        (("evaluate", "absent"), ("RUN_DIR", "absent")),
        (("plot", "absent"), ("RUN_DIR", "absent")),
        (("envs", "show", "none"), ("NAME", "none")),
        (("envs", "show", "Taxi-v3", "--passenger", "X"), ("passenger", "X")),
        (("demo", "--seed", "x"), ("--seed",)),
    ],
)
def test_names_the_argument(words, parts):
    line = complaint(*words)
    for part in parts:
        assert part in line


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("--rule", "none"), ("--rule", "q_learning")),
        (("--alpha", 2), ("alpha", "2.0")),
        (("--gamma", 0.995, "--numerics", "int32_scaled"), ("gamma", "0.995", "0.99")),
        (("--backend", "none"), ("--backend", "upmem")),
        (("--env", "Taxi-v3"), ("--env", "16 states", "500")),
        (("--dpus", 3000), ("3000 DPUs", "2560")),
        (("--dpus", 2500, "--machine", "upmem-2560", "--passes", 0), ("--passes",)),
        (("--tasklets", 25), ("25 tasklets", "24")),
        (("--target-block", 7000), ("65,536 B", "WRAM", "updates 70,000")),
    ],
)
def test_train_refuses_before_it_trains(dataset, tmp_path, words, parts):
    line = complaint("train", dataset, *SMALL, "--out", tmp_path / "run", *words)
    for part in parts:
        assert part in line
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_not_what_they_should_be(dataset, run, tmp_path):
    path, _ = run
    assert "not a table that accel_rl wrote" in complaint("evaluate", dataset)
    table = path / "table.npz"
    assert "DATASET.npz" in complaint("train", table, *SMALL, "--out", tmp_path / "run")
    short = tmp_path / "short.npz"
    short.write_bytes(dataset.read_bytes()[:1000])
    assert "short.npz" in complaint("train", short, *SMALL, "--out", tmp_path / "run")
    out = ("--out", tmp_path / "x.npz")
    assert "(16, 4)" in complaint("collect", "Taxi-v3", "--policy", path, *out)


@pytest.mark.parametrize("command", ["evaluate", "plot", "resume"])
def test_a_demo_is_for_report(command, tmp_path):
    run_folder.begin_run(tmp_path, "demo", "accel-rl demo", [0], {})
    told = f"is a run of accel-rl demo, not of .*: accel-rl report {tmp_path} shows it"
    assert re.search(told, complaint(command, tmp_path))


def test_a_backend_that_is_absent(dataset, tmp_path, monkeypatch):
    monkeypatch.setenv("ACCEL_RL_UPMEM", "vendor")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("UPMEM_HOME", raising=False)
    line = complaint("train", dataset, *SMALL, "--out", tmp_path / "run", "--backend", "upmem")
    for part in ("backend 'upmem' is absent", "SDK was not found", "upmem_env.sh"):
        assert part in line
    assert not (tmp_path / "run").exists()


def test_chunk_larger_than_mram(dataset, tmp_path):
    """On a machine of the user's own, whose DPUs have 96,000 bytes of MRAM."""
    text = (resources.files("pim_emu") / "machines" / "upmem-2560.toml").read_text()
    small = re.sub(r"(\[constants.mram_bytes\]\nvalue = )[\d_]+", r"\g<1>96_000", text)
    assert small != text
    machine = tmp_path / "small.toml"
    machine.write_text(small)
    words = ("--dpus", 1, "--tasklets", 1, "--out", tmp_path / "run", "--machine", machine)
    line = complaint("train", dataset, "--passes", 1, *words)
    for part in ("4,000 rows", "MRAM", "records 32,000", "96,000 B"):
        assert part in line


def test_logged_sarsa_needs_next_actions(tmp_path):
    log, path = tmp_path / "log.txt", tmp_path / "log.npz"
    log.write_text("0 1 0 1\n1 1 0 2\n0 0 0 0\n")
    mdp = {"num_states": 3, "num_actions": 2, "episode_end": "truncated"}
    datasets.save(path, datasets.load_text(log, **mdp, require_next_action=False))
    words = ("--dpus", 1, "--passes", 1, "--out", tmp_path / "run")
    line = complaint("train", path, "--rule", "sarsa", *words)
    assert "--rule" in line
    assert "2 rows" in line
    assert invoke("train", path, "--rule", "q_learning", *words).exit_code == 0


def test_a_full_disk_is_exit_code_1_and_names_the_file(dataset, run, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for words, name in (
        (("train", dataset, *SMALL, "--out", tmp_path / "run"), "run/run.json"),
        (("plot", run[0], "--out", tmp_path), "time.png"),
        (("report", run[0], "--out", tmp_path / "page.html"), "page.html"),
    ):
        result = invoke(*words)
        assert result.exit_code == 1
        assert result.stderr == f"accel-rl: {tmp_path / name}: No space left on device\n"
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@needs("gcc", "g++")
def test_what_fails_on_dpus_is_one_line(dataset, tmp_path, monkeypatch):
    monkeypatch.setattr(pim.upmem.build, "_folder", lambda toolkit: tmp_path / "file" / "folder")
    (tmp_path / "file").write_text("in the way")
    result = invoke(
        "train", dataset, *SMALL, "--out", tmp_path / "run", "--backend", "upmem",
        "--order", "STR", "--stride", 7, "--tasklets", 3,
    )  # fmt: skip
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("accel-rl: BuildFailed: ")
    assert "ACCEL_RL_CACHE" in line
