import contextlib
import dataclasses
import errno
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from accel_rl.io import Checkpoints, DamagedError, checkpoints, leaves
from accel_rl.io.leaves import from_host, to_host


@dataclasses.dataclass(frozen=True)
class State:
    weights: Any
    buffer: Any
    key: Any


jax.tree_util.register_dataclass(State, ["weights", "buffer", "key"], [])


def make_state(seed=0):
    rng = np.random.default_rng(seed)
    return State(
        weights={"a": jnp.asarray(rng.normal(size=(3, 4)), jnp.float32), "b": jnp.float32(seed)},
        buffer=jnp.asarray(rng.normal(size=(1000, 5)), jnp.float32),
        key=jax.random.key(seed),
    )


def template(state):
    return jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding), state
    )


def rows(*steps, **last):
    made = [{"steps": step, "loss": 0.1 * step, "episode_return": float("nan")} for step in steps]
    made[-1].update(last)
    return made


def save(folder, *steps, **settings):
    """Checkpoints at these steps, the state made of the step."""
    into = Checkpoints(folder, **settings)
    with into.writing():
        for number, step in enumerate(steps):
            into.save(make_state(step), {"from": "here"}, rows(*steps[: number + 1]))
    return into


def bits(tree):
    return {name: (a.dtype, a.shape, a.tobytes()) for name, a in to_host(tree).items()}


def names(folder):
    return sorted(path.name for path in pathlib.Path(folder).iterdir() if path.name != ".lock")


def test_what_is_saved_comes_back_bit_for_bit(tmp_path):
    payload = np.array([0x7FC12345, 0xFFC00001, 0x80000000, 1], np.uint32)  # NaNs, -0, subnormal
    state = {
        "odd": jnp.asarray(payload.view(np.float32)),
        "scalar": jnp.int32(-7),
        "flag": jnp.array([True, False]),
        "byte": jnp.int8(-1),
        "half": jnp.asarray([1.5, -2.25], jnp.bfloat16),
        "none": jnp.zeros((0, 3)),
        "key": jax.random.split(jax.random.key(1), 3),
        "other": jax.random.key(1, impl="rbg"),
        "nested": [State(jnp.ones(2), {"x/y": jnp.zeros(1)}, None)],
    }
    into = Checkpoints(tmp_path)
    log = rows(10, 20, per_seed={"loss": [0.1, float("inf")]})
    path = into.save(state, {"lr": 0.1}, log)
    found = into.newest()
    assert (found.path, found.step) == (path, 20)
    assert found.about["lr"] == 0.1
    assert repr(found.rows) == repr(log)
    back = found.state(template(state))
    assert jax.tree.structure(back) == jax.tree.structure(state)
    assert bits(back) == bits(state)
    assert [leaf.dtype for leaf in jax.tree.leaves(back)] == [
        leaf.dtype for leaf in jax.tree.leaves(state)
    ]


def test_arrays_come_back_where_the_template_says(tmp_path):
    mesh = jax.make_mesh((4,), ("seeds",), axis_types=(jax.sharding.AxisType.Auto,))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("seeds"))
    state = {"x": jax.device_put(np.arange(8, dtype=np.float32), sharding)}
    Checkpoints(tmp_path).save(state, {}, rows(1))
    back = Checkpoints(tmp_path).newest().state(template(state))
    assert back["x"].sharding == sharding
    assert bits(back) == bits(state)


def test_a_copy_is_not_changed_by_later_steps_and_does_not_hinder_them():
    step = jax.jit(lambda x: x.at[0].add(1.0), donate_argnums=0)
    state = step(jnp.zeros(10_000))
    copies = to_host({"x": state})
    pointer = state.unsafe_buffer_pointer()
    later = step(state)
    assert state.is_deleted()
    assert later.unsafe_buffer_pointer() == pointer  # in place: the memory was given away
    assert (copies["x"][0], later[0]) == (1, 2)
    assert not np.shares_memory(copies["x"], np.asarray(later))


def test_restored_arrays_can_be_given_away():
    step = jax.jit(lambda x: x.at[0].add(1.0), donate_argnums=0)
    array = np.zeros(10_000, np.float32)
    state = from_host({"x": array}, {"x": jax.ShapeDtypeStruct(array.shape, array.dtype)})["x"]
    pointer = state.unsafe_buffer_pointer()
    assert step(state).unsafe_buffer_pointer() == pointer
    assert array[0] == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda s: dataclasses.replace(s, buffer=s.buffer[:500]),
            "buffer: expected float32[500, 5], found float32[1000, 5]",
        ),
        (
            lambda s: dataclasses.replace(s, weights={"a": s.weights["a"], "b": jnp.int32(0)}),
            "weights.b: expected int32[], found float32[]",
        ),
        (
            lambda s: dataclasses.replace(s, weights={**s.weights, "c": jnp.zeros(2)}),
            "weights.c: expected float32[2], found nothing",
        ),
        (
            lambda s: dataclasses.replace(s, weights={"a": s.weights["a"]}),
            "weights.b: expected nothing, found float32[]",
        ),
    ],
)
def test_another_programs_state_is_refused_by_the_leaf(tmp_path, change, message):
    found = save(tmp_path, 10).newest()
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        found.state(template(change(make_state(10))))
    assert not isinstance(error.value, DamagedError)


def test_names_must_tell_leaves_apart():
    with pytest.raises(ValueError, match=r"called a\.b"):
        to_host({"a": {"b": jnp.zeros(1)}, "a.b": jnp.zeros(1)})


def files_of(path):
    return sorted(file for file in path.rglob("*") if file.is_file())


def test_every_file_is_watched(tmp_path):
    into = save(tmp_path, 10)
    path = tmp_path / "000000000010"
    assert {"about.json", "rows.json", "manifest.json"} <= {file.name for file in files_of(path)}
    for file in files_of(path):
        content = file.read_bytes()
        for damaged in (
            content[:-1],
            content[: len(content) // 2]
            + bytes([content[len(content) // 2] ^ 1])
            + content[len(content) // 2 + 1 :],
        ):
            file.write_bytes(damaged)
            if file.name == "manifest.json" and json_or_none(damaged) == json_or_none(content):
                continue  # a change of a space
            with pytest.raises(DamagedError, match="000000000010"):
                into.open(10)
        file.unlink()
        with pytest.raises(DamagedError, match=f"{file.name}: .*No such file"):
            into.open(10)
        file.write_bytes(content)
    assert bits(into.open(10).state(template(make_state(10)))) == bits(make_state(10))


def json_or_none(content):
    try:
        return json.loads(content)
    except ValueError:
        return None


def truncate(path):
    largest = max(files_of(path), key=lambda file: file.stat().st_size)
    os.truncate(largest, largest.stat().st_size // 2)


def empty(path):
    shutil.rmtree(path)
    path.mkdir()


def unlisted(path):
    (path / "manifest.json").write_text('{"sha256": {}}')
    (path / "about.json").unlink()


@pytest.mark.parametrize("damage", [truncate, empty, unlisted])
def test_the_one_before_a_damaged_one_is_used_and_both_are_named(tmp_path, damage):
    into = save(tmp_path, 10, 20, 30, keep=3)
    damage(tmp_path / "000000000030")
    with pytest.warns(UserWarning, match=r"damaged: .*0030.*; .*0020 is used|0030.*0020 is used"):
        found = into.newest()
    assert found.step == 20
    assert bits(found.state(template(make_state(20)))) == bits(make_state(20))
    # The training goes on from there, and what it writes takes the damaged one's place.
    with into.writing():
        into.save(make_state(30), {}, rows(10, 20, 30))
    assert into.newest().step == 30


def test_one_of_a_newer_version_is_refused_and_stays(tmp_path):
    into = save(tmp_path, 10, 20)
    newest = tmp_path / "000000000020"
    (newest / "manifest.json").write_text('{"sha256": {}}')
    (newest / "about.json").write_text('{"format": 99}')
    with pytest.raises(ValueError, match="0020: format 99, this version reads 1"):
        into.newest()


def test_what_cannot_be_read_now_is_not_damaged(tmp_path, monkeypatch):
    into = save(tmp_path, 10, 20)

    def refuse(*_):
        raise PermissionError(errno.EACCES, "not now")

    monkeypatch.setattr("accel_rl.io.manifest.hashlib.file_digest", refuse)
    with pytest.raises(PermissionError, match="not now"):
        into.newest()


def test_a_damaged_one_does_not_count_among_the_kept(tmp_path):
    into = save(tmp_path, 10, 20, 30, keep=3)
    empty(tmp_path / "000000000030")
    again = Checkpoints(tmp_path, keep=2)
    again.save(make_state(25), {}, rows(10, 20, 25))  # the training went on from 20
    assert again.steps() == [20, 25]
    assert into.newest().step == 25


def test_nothing_whole(tmp_path):
    assert Checkpoints(tmp_path / "absent").newest() is None
    into = save(tmp_path, 10, 20)
    for path in tmp_path.glob("0*"):
        truncate(path)
    with pytest.raises(DamagedError, match=r"no checkpoint is whole: .*0020.*0010"):
        into.newest()


def full(*args):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("where", ["to_host", "_save_arrays", "write_manifest", "sync_directory"])
def test_a_failure_leaves_all_others(tmp_path, monkeypatch, where):
    into = save(tmp_path, 10, 20)
    with monkeypatch.context() as patch:
        patch.setattr(leaves if where == "to_host" else checkpoints, where, full)
        with pytest.raises(OSError, match="No space left"):
            into.save(make_state(30), {}, rows(10, 20, 30))
    written = {10, 20} | ({30} if where == "sync_directory" else set())
    assert set(into.steps()) == written
    assert names(tmp_path) == [f"{step:012d}" for step in sorted(written)]
    into.save(make_state(30), {}, rows(10, 20, 30))
    assert into.steps() == [20, 30]
    assert into.newest().step == 30


@contextlib.contextmanager
def small_disk(path, size):
    """A file system of its own; skips where we may not mount one."""
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path],
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip("file systems cannot be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", path], check=True)


@pytest.mark.skipif(shutil.which("mount") is None, reason="there is no mount")
def test_a_disk_that_is_full(tmp_path):
    state = {"x": jnp.asarray(np.random.default_rng(0).normal(size=30_000), jnp.float32)}
    with small_disk(tmp_path / "disk", "300k"):
        into = Checkpoints(tmp_path / "disk", keep=5)
        saved = [into.save(state, {}, rows(1))]

        def fill():
            for step in range(2, 9):
                saved.append(into.save(state, {}, rows(step)))

        with pytest.raises(OSError, match="No space left on device"):
            fill()
        assert names(tmp_path / "disk") == [path.name for path in saved]
        assert bits(into.newest().state(template(state))) == bits(state)
        shutil.rmtree(saved.pop(0))
        into.save(state, {}, rows(9))
        assert into.newest().step == 9


KILLED = """
import os, pathlib, shutil, signal, sys
import numpy as np
import orbax.checkpoint
from accel_rl import io
from accel_rl.io import checkpoints

def kill(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)

for moment, owner, name in [
    ("manifest", checkpoints, "write_manifest"),
    ("rename", pathlib.Path, "rename"),
    ("sync", checkpoints, "sync_directory"),
    ("prune", shutil, "rmtree"),
]:
    if child := os.fork():
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL, moment
        continue
    into = io.Checkpoints(pathlib.Path(sys.argv[1]) / moment, keep=1)
    with into.writing():
        into.save({"x": np.full(3, 10, np.float32)}, {}, [{"steps": 10}])
        setattr(owner, name, kill)
        into.save({"x": np.full(3, 20, np.float32)}, {}, [{"steps": 10}, {"steps": 20}])
"""


def test_killed_while_writing(tmp_path):
    # Processes that do nothing but write start in no time from one that has the imports.
    subprocess.run([sys.executable, "-W", "ignore", "-c", KILLED, tmp_path], check=True)
    wanted = {"x": jax.ShapeDtypeStruct((3,), np.float32)}
    for moment, step in (("manifest", 10), ("rename", 10), ("sync", 20), ("prune", 20)):
        into = Checkpoints(tmp_path / moment, keep=1)
        assert len(list((tmp_path / moment).glob(".*.tmp"))) == (moment != "sync"), moment
        with into.writing():
            assert not list((tmp_path / moment).glob(".*.tmp"))
            found = into.newest()
            assert found.step == step
            assert found.state(wanted)["x"].tolist() == [step] * 3
            into.save(found.state(wanted), {}, rows(20))
        assert names(tmp_path / moment) == ["000000000020"]


def test_only_one_process_writes(tmp_path):
    program = (
        "import sys; from accel_rl.io import Checkpoints\n"
        "with Checkpoints(sys.argv[1]).writing(): pass"
    )
    with Checkpoints(tmp_path).writing():
        done = subprocess.run(
            [sys.executable, "-c", program, tmp_path], check=False, capture_output=True, text=True
        )
    assert f"BlockingIOError: another process trains in {tmp_path}" in done.stderr
    with Checkpoints(tmp_path).writing():
        pass


def test_the_newest_stay(tmp_path):
    assert save(tmp_path / "two", 10, 20, 30, 40).steps() == [30, 40]
    assert save(tmp_path / "one", 10, 20, 30, keep=1).steps() == [30]


def test_folders_of_others_are_no_checkpoints(tmp_path):
    for name in ("1", "0000000000070", "00000000006x"):
        (tmp_path / name).mkdir()
    assert save(tmp_path, 10, 20, 30).steps() == [20, 30]
    assert {"1", "00000000006x"} < {path.name for path in tmp_path.iterdir()}


def test_the_best_stays_too(tmp_path):
    into = Checkpoints(tmp_path, keep=1, best="evaluation")
    assert into.highest() is None
    log = []
    for step, score in ((10, 1.0), (20, 5.0), (30, 5.0), (40, float("nan")), (50, 3.0)):
        log.append({"steps": step, "evaluation": score})
        into.save(make_state(step), {}, log)
    assert into.steps() == [20, 50]
    assert into.highest().step == 20
    assert into.newest().step == 50
    truncate(tmp_path / "000000000020")
    with pytest.warns(UserWarning, match=r"0020: .* was changed .*0050 is used"):
        assert into.highest().step == 50


def test_older_ones_go_only_when_the_new_one_is_whole(tmp_path, monkeypatch):
    into = save(tmp_path, 10, keep=1)
    seen = []
    discard = checkpoints._discard

    def watched(path):
        seen.append((path.name, into.open(20).step))
        discard(path)

    monkeypatch.setattr(checkpoints, "_discard", watched)
    into.save(make_state(20), {}, rows(10, 20))
    assert seen == [("000000000010", 20)]


def test_when_one_is_due():
    def due(into, *steps, **last):
        return into.due(rows(*steps, **last))

    every = Checkpoints(".", every=100)
    assert [step for step in range(30, 400, 30) if due(every, max(step - 30, 0), step)] == [
        120,
        210,
        300,
    ]
    assert due(every, 100)
    assert not due(every, 99)
    assert due(every, 99, 350)
    assert not due(Checkpoints("."), 10, 10**9)
    best = Checkpoints(".", best="evaluation")
    log = [{"steps": n, "evaluation": score} for n, score in enumerate((1.0, 3.0, float("nan")))]
    assert [best.due(log[: n + 1]) for n in range(3)] == [True, True, False]
    assert not best.due([*log, {"steps": 4, "evaluation": 3.0}])
    assert best.due([*log, {"steps": 4, "evaluation": 3.5}])
    with pytest.raises(ValueError, match="best must be an entry of the rows, steps, loss, got 'ev"):
        best.due([{"steps": 4, "loss": 3.5}])


@pytest.mark.parametrize("settings", [{"every": 0}, {"keep": 0}])
def test_bad_numbers(tmp_path, settings):
    with pytest.raises(ValueError, match=f"{next(iter(settings))} must be at least 1, got 0"):
        Checkpoints(tmp_path, **settings)
