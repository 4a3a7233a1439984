import dataclasses
import errno
import functools
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys

import jax
import killed_training
import pytest
import tiny_training
from tiny_training import HYPER, PERIOD, STEPS, Kept, assert_same, key, program, untimed

from accel_rl import io, train
from accel_rl.io import checkpoints as module
from accel_rl.train import checkpoint_metadata

HERE = pathlib.Path(__file__).parent


def go(of, folder, number=None, steps=STEPS, **arguments):
    arguments = {"period": PERIOD, "hyper": HYPER, **arguments}
    settings = {"every": arguments.pop("every", None), "keep": arguments.pop("keep", 2)}
    into = io.Checkpoints(folder, **settings) if folder else None
    return train.run(of, key(number), steps, checkpoints=into, **arguments)


@pytest.fixture(scope="module")
def one():
    return program()


@pytest.fixture(scope="module")
def whole(one):
    return go(one, None)


def at(step):
    return train.stop_at("steps", step)


def lines(path):
    """What a log holds, without what is measured."""
    return untimed([json.loads(line) for line in path.read_text().splitlines()])


MEMORIES = {
    "uniform": {},
    "prioritised": {"sampler": "prioritised"},
    "amper_fr": {"sampler": "amper_fr", "policy_lag": 2},
    "amper_k": {"sampler": "amper_k", "priority_lag": 1},
}
MARKS = {"uniform": (), "prioritised": pytest.mark.slow}


@pytest.mark.parametrize(
    "memory", [pytest.param(name, marks=MARKS.get(name, pytest.mark.long)) for name in MEMORIES]
)
def test_a_training_that_was_stopped_goes_on_bit_for_bit(tmp_path, memory):
    of = program(**MEMORIES[memory])
    uninterrupted = go(of, None)
    for step in (100, 300, 600):  # before learning, and twice after
        part = go(of, tmp_path, stop=at(step), resume=True)
        assert part.rows[-1]["steps"] == step
    rest = go(of, tmp_path, resume=True)
    assert rest.reason == "done"
    assert_same(rest.state, uninterrupted.state)
    assert untimed(rest.rows) == untimed(uninterrupted.rows)
    seconds = [row["seconds"] for row in rest.rows]
    assert seconds == sorted(seconds)


@pytest.mark.long  # compiles a training on two devices
def test_seeds_on_several_devices_go_on_bit_for_bit(tmp_path, one):
    several = functools.partial(go, one, number=2, seeds="sharded", steps=500)
    uninterrupted = several(folder=None)
    several(folder=tmp_path, stop=at(300))
    rest = several(folder=tmp_path, resume=True)
    assert_same(rest.state, uninterrupted.state)
    assert untimed(rest.rows) == untimed(uninterrupted.rows)
    assert all(len(leaf.devices()) == 2 for leaf in jax.tree.leaves(rest.state))
    held = train.restore(one, io.Checkpoints(tmp_path).newest())
    assert_same(held, uninterrupted.state)


@pytest.mark.long  # trains four times
def test_checkpoints_have_a_cadence_of_their_own(tmp_path, one):
    kept = []
    for number, stops in enumerate(([], [at(100), at(400)])):
        folder = tmp_path / str(number)
        for stop in stops:
            go(one, folder, every=250, keep=99, stop=stop, resume=True)
        go(one, folder, every=250, keep=99, resume=True)
        kept.append(io.Checkpoints(folder).steps())
    assert kept[0] == [300, 500, 800, 900]  # the first ends of chunks after 250, 500, 750; the end
    assert kept[1] == [100, 300, 400, 500, 800, 900]  # and where it was stopped


def test_what_is_done_or_stopped_stays_so(tmp_path, one):
    stopped = go(one, tmp_path, stop=at(300))
    again = go(one, tmp_path, stop=at(300), resume=True)
    assert (again.reason, again.checkpoint) == (stopped.reason, stopped.checkpoint)
    assert_same(again.state, stopped.state)
    done = go(one, tmp_path, resume=True)
    kept = Kept()
    again = go(one, tmp_path, resume=True, loggers=[kept])
    assert (again.reason, kept.rows, kept.closed) == ("done", [], 1)
    assert untimed(kept.begun[0]) == untimed(done.rows)
    assert_same(again.state, done.state)


def test_more_steps_may_be_asked_for(tmp_path, one, whole):
    go(one, tmp_path, steps=500)
    longer = go(one, tmp_path, resume=True)
    assert_same(longer.state, whole.state)
    with pytest.raises(ValueError, match="steps must be at least 900, where the checkpoint is"):
        go(one, tmp_path, steps=600, resume=True)


def test_more_steps_first_complete_the_last_chunk(tmp_path, one, whole):
    go(one, tmp_path, steps=450)
    longer = go(one, tmp_path, resume=True)
    assert_same(longer.state, whole.state)
    steps = [row["steps"] for row in longer.rows]
    assert steps == sorted({*(row["steps"] for row in whole.rows), 450})


def test_a_folder_is_only_gone_on_with_when_asked(tmp_path, one):
    assert go(one, tmp_path, stop=at(300), resume=True).rows[0]["steps"] == 100  # none: it starts
    with pytest.raises(FileExistsError, match=re.escape(f"{tmp_path} holds checkpoints already")):
        go(one, tmp_path)
    with (
        io.Checkpoints(tmp_path).writing(),
        pytest.raises(BlockingIOError, match="another process trains in"),
    ):
        go(one, tmp_path, resume=True)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory, one):
    folder = tmp_path_factory.mktemp("stopped")
    go(one, folder, stop=at(300))
    return folder


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"period": 50}, "period must be as in the checkpoint, 100, got 50"),
        ({"number": 2}, "seeds must be as in the checkpoint, None, got 2"),
        ({"hyper": {}}, r"hyper.agent.epsilon_steps must be as in the checkpoint, 500.0, got None"),
        (
            {"evaluation": train.Evaluation(5, 300)},
            "evaluation.episodes must be as in the checkpoint, None, got 5",
        ),
        (
            {"hyper": {"agent": {**HYPER["agent"], "target_period": 21}}},
            "hyper.agent.target_period must be as in the checkpoint, 20.0, got 21.0",
        ),
    ],
)
def test_another_training_is_refused_by_name(stopped, one, changed, message):
    with pytest.raises(ValueError, match=f"to resume exactly, {message}"):
        go(one, stopped, resume=True, **changed)


def test_another_schedule_key_or_environment_is_refused_by_name(stopped, one):
    with pytest.raises(
        ValueError, match=r"schedule.updates must be as in the checkpoint, 1, got 2"
    ):
        go(program(updates=2), stopped, resume=True)
    with pytest.raises(ValueError, match="keys must be as in the checkpoint"):
        train.run(
            one,
            jax.random.key(8),
            STEPS,
            period=PERIOD,
            hyper=HYPER,
            checkpoints=io.Checkpoints(stopped),
            resume=True,
        )
    other = one.env._replace(name="Other-v0")
    with pytest.raises(ValueError, match="environment must be as in the checkpoint, CartPole-v1"):
        go(dataclasses.replace(one, env=other), stopped, resume=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param(
            {"hidden": (24,)},
            r"agent\.params.*: expected float32\[24\], found float32\[16\]",
            marks=pytest.mark.slow,
        ),
        ({"capacity": 128}, r"replay.*: expected .*, found "),
        ({"sampler": "prioritised"}, r"replay.*: expected .*, found nothing"),
    ],
)
def test_another_program_is_refused_by_the_leaf(stopped, changes, message):
    with pytest.raises(ValueError, match=rf"{stopped}/0+300 is of another program: {message}"):
        go(program(**changes), stopped, resume=True)


def test_other_versions_and_devices_are_warned_of(stopped, one, monkeypatch):
    monkeypatch.setattr(checkpoint_metadata.jax, "device_count", lambda: 3)
    monkeypatch.setattr(checkpoint_metadata.platform, "python_version", lambda: "4.0")
    with pytest.warns(
        UserWarning,
        match=r"not bit for bit: devices.count was 8, is 3; versions.python was \S+, is 4\.0",
    ):
        go(one, stopped, stop=at(300), resume=True)


def test_a_checkpoint_says_what_it_is_from(stopped):
    about = json.loads((stopped / "000000000300" / "about.json").read_text())
    assert about["step"] == 300
    assert about["training"]["environment"] == "CartPole-v1"
    assert about["training"]["schedule"]["num_envs"] == 2
    assert about["training"]["hyper"] == {"agent": {"epsilon_steps": 500, "target_period": 20}}
    assert about["setting"]["versions"]["jax"] == jax.__version__
    assert about["setting"]["devices"]["count"] == 8


def test_a_damaged_checkpoint_costs_time_and_nothing_else(tmp_path, one, whole):
    go(one, tmp_path, every=100, stop=at(500))
    os.truncate(tmp_path / "000000000500" / "rows.json", 10)
    with pytest.warns(UserWarning, match=r"0500: rows.json was changed.*0400 is used"):
        rest = go(one, tmp_path, every=100, resume=True)
    assert_same(rest.state, whole.state)
    assert untimed(rest.rows) == untimed(whole.rows)
    for path in tmp_path.glob("0*"):
        (path / "manifest.json").unlink()
    with pytest.raises(io.DamagedError, match="no checkpoint is whole"):
        go(one, tmp_path, resume=True)


def test_a_full_disk_costs_time_and_nothing_else(tmp_path, one, whole, monkeypatch):
    write = module.write_manifest

    def sometimes(folder):
        if any(f"{step:012d}" in folder.name for step in (400, 500)):  # the rest is random
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(folder)

    with monkeypatch.context() as patch:
        patch.setattr(module, "write_manifest", sometimes)
        with pytest.warns(UserWarning, match="no checkpoint at step") as warned:
            part = go(one, tmp_path, every=100, stop=at(500))
    assert [str(each.message) for each in warned] == [
        f"no checkpoint at step {step}: [Errno 28] No space left on device; the last is "
        f"{tmp_path}/000000000300"
        for step in (400, 500)
    ]
    assert part.checkpoint == tmp_path / "000000000300"
    assert io.Checkpoints(tmp_path).steps() == [200, 300]
    rest = go(one, tmp_path, every=100, resume=True)
    assert_same(rest.state, whole.state)


def test_logs_are_cut_to_the_checkpoint(tmp_path, one):
    loggers = [io.JsonLines(tmp_path / "log.jsonl"), io.Csv(tmp_path / "log.csv")]

    class Fail(Kept):
        def log(self, row):
            if row["steps"] == 600:
                raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        go(one, tmp_path / "c", every=400, loggers=[*loggers, Fail()])
    assert len((tmp_path / "log.csv").read_text().splitlines()) == 7  # a heading, 6 rows
    rest = go(one, tmp_path / "c", every=400, resume=True, loggers=loggers)
    logged = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [row["steps"] for row in logged] == [row["steps"] for row in rest.rows]
    assert len((tmp_path / "log.csv").read_text().splitlines()) == 10


def killed(folder, rows, seconds):
    """Runs a training in a process of its own that is killed; whether it was."""
    command = [sys.executable, HERE / "killed_training.py", folder, str(rows), str(seconds)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


@pytest.mark.parametrize(
    "kills",  # each starts a process
    [pytest.param(3, marks=pytest.mark.long), pytest.param(10, marks=pytest.mark.slow)],
)
def test_killed_the_end_is_the_same(tmp_path, kills):
    uninterrupted = killed_training.go(tmp_path / "whole")
    rng = random.Random(kills)
    into = io.Checkpoints(tmp_path / "killed" / "checkpoints")
    for _ in range(kills):
        assert killed(tmp_path / "killed", rng.randint(1, 3), rng.uniform(0, 0.15))
        assert not into.steps() or into.newest()
    assert not killed(tmp_path / "killed", 0, 0)
    of = tiny_training.program()
    assert_same(train.restore(of, into.newest()), uninterrupted.state)
    assert lines(tmp_path / "killed" / "log.jsonl") == lines(tmp_path / "whole" / "log.jsonl")
    assert len(uninterrupted.rows) == 30


def test_a_checkpoint_that_says_of_no_training_is_refused():
    ours = {"training": {"period": 1}, "setting": {}}
    with pytest.raises(ValueError, match="does not say of which training it is"):
        checkpoint_metadata.check_metadata({"format": 1, "settings": {}}, ours)
    checkpoint_metadata.check_metadata({"format": 1, **ours}, ours)
