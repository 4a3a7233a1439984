"""Vaults on disk, against the arrays that were appended."""

import json
import shutil
import signal
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from accel_rl import replay
from accel_rl.io import DamagedError
from accel_rl.replay import Vault

EXAMPLE = {
    "picture": np.zeros((2, 3), np.uint8),
    "reward": np.float32(0),
    "done": np.bool_(False),
    "small": jnp.bfloat16(0),
}
ENVS = 2


def rows(steps, seed=0, envs=(ENVS,)):
    rng = np.random.default_rng(seed)
    lead = (steps, *envs)
    return {
        "picture": rng.integers(0, 256, (*lead, 2, 3)).astype(np.uint8),
        "reward": rng.normal(size=lead).astype(np.float32),
        "done": rng.random(lead) > 0.5,
        "small": rng.normal(size=lead).astype(jnp.bfloat16),
    }


def joined(parts):
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def check_equal(found, want):
    for name, leaf in want.items():
        assert found[name].dtype == leaf.dtype, name
        np.testing.assert_array_equal(found[name], leaf, name)


def test_what_is_appended_is_read_back_in_any_part(tmp_path):
    parts = [rows(steps, steps) for steps in (3, 1, 5)]
    with Vault(tmp_path / "v", EXAMPLE, num_envs=ENVS, metadata={"task": "mine"}) as vault:
        for part in parts:
            vault.append(part)
        vault.append(jax.tree.map(lambda leaf: leaf[0], rows(1, 9)))  # one step, without its axis
    want = joined([*parts, rows(1, 9)])
    again = Vault(tmp_path / "v", EXAMPLE, num_envs=ENVS, read_only=True)
    assert (len(again), again.metadata) == (10, {"task": "mine"})
    check_equal(again.read(), want)
    check_equal(again.read(2, 7), {name: leaf[2:7] for name, leaf in want.items()})
    check_equal(again.read(-3), {name: leaf[-3:] for name, leaf in want.items()})
    assert again.read(7, 2)["reward"].shape == (0, ENVS)
    batches = list(again.batches(4))
    assert [len(batch["reward"]) for batch in batches] == [4, 4, 2]
    check_equal(joined(batches), want)


def test_items_without_environments(tmp_path):
    with Vault(tmp_path / "v", EXAMPLE) as vault:
        vault.append(rows(4, envs=()))
        check_equal(vault.read(), rows(4, envs=()))


def test_draws_are_items_of_the_vault(tmp_path):
    with Vault(tmp_path / "v", {"n": np.int32(0)}, num_envs=3) as vault:
        with pytest.raises(ValueError, match="got an empty vault"):
            vault.sample(np.random.default_rng(0), 1)
        vault.append({"n": np.arange(12, dtype=np.int32).reshape(4, 3)})
        drawn = vault.sample(np.random.default_rng(1), 1200)["n"]
        again = vault.sample(np.random.default_rng(1), 1200)["n"]
    np.testing.assert_array_equal(drawn, again)
    counts = np.bincount(drawn, minlength=12)
    # chi^2 of 11 degrees of freedom: above 31.3 with probability 0.001; the seed is fixed.
    assert ((counts - 100) ** 2 / 100).sum() < 31.3


def test_a_buffer_is_written_as_it_fills_and_filled_again(tmp_path):
    buffer = replay.make(EXAMPLE, 8 * ENVS, 2, num_envs=ENVS)
    state, parts = buffer.init(), []
    with Vault.of(tmp_path / "v", buffer) as vault:
        assert vault.write(buffer, state) == 0
        for steps in (3, 5, 1, 7, 3):  # around the ring's end, too
            parts.append(rows(steps, steps))
            state = buffer.add(state, parts[-1])
            assert vault.write(buffer, state) == steps
        check_equal(vault.read(), joined(parts))
        later = state
        for seed in range(3):
            later = buffer.add(later, rows(4, seed))
        with pytest.raises(ValueError, match="8 items were overwritten before they were written"):
            vault.write(buffer, later)
        filled = vault.fill(buffer, buffer.init())
        newest = jax.tree.map(lambda leaf: leaf[-8:], joined(parts))
        order = np.argsort(np.r_[3:8, 0:3])  # the ring's cursor is at row 3 after 19 rows
        ring = jax.tree.map(lambda leaf: leaf.reshape(8, ENVS, *leaf.shape[1:]), state.store.data)
        np.testing.assert_array_equal(ring["reward"][np.argsort(order)], newest["reward"])
        found = jax.tree.map(np.asarray, filled.store.data)
        check_equal(found, jax.tree.map(lambda leaf: leaf.reshape(16, *leaf.shape[2:]), newest))
        assert buffer.size(filled) == 16


def test_only_the_buffer_that_was_written_is_written_on(tmp_path):
    buffer = replay.make(EXAMPLE, 8 * ENVS, 2, num_envs=ENVS)
    state = buffer.add(buffer.init(), rows(5, 0))
    with Vault.of(tmp_path / "v", buffer) as vault:
        vault.write(buffer, state)
        vault.append(rows(2, 1))  # from elsewhere
        with pytest.raises(ValueError, match="has 0 rows, fewer than the 5 written"):
            vault.write(buffer, buffer.init())
        with pytest.raises(ValueError, match="not the one that was written"):
            vault.write(buffer, buffer.add(buffer.init(), rows(6, 2)))
    with Vault.of(tmp_path / "v", buffer) as vault:  # the counts are kept
        assert vault.write(buffer, buffer.add(state, rows(3, 3))) == 3
        parts = [rows(5, 0), rows(2, 1), rows(3, 3)]
        check_equal(vault.read(), joined(parts))
        filled = vault.fill(buffer, buffer.init())
        assert vault.write(buffer, buffer.add(filled, rows(4, 4))) == 4
        check_equal(vault.read(), joined([*parts, rows(4, 4)]))


def test_a_buffer_of_other_environments_is_refused(tmp_path):
    other = replay.make(EXAMPLE, 12, 2, num_envs=3)
    with (
        Vault(tmp_path / "v", EXAMPLE, num_envs=ENVS) as vault,
        pytest.raises(ValueError, match="num_envs of the buffer must be 2, got 3"),
    ):
        vault.write(other, other.init())


def test_other_items_are_refused_by_name(tmp_path):
    Vault(tmp_path / "v", EXAMPLE, num_envs=ENVS).close()
    other = {**EXAMPLE, "reward": np.float16(0)}
    for example, options, says in (
        (other, {"num_envs": ENVS}, r"\['reward'\] is float32\[\] in the vault, got float16\[\]"),
        ({"x": np.float32(0)}, {"num_envs": ENVS}, "the vault has the fields"),
        (EXAMPLE, {"num_envs": 3}, "num_envs must be 2, with which"),
    ):
        with pytest.raises(ValueError, match=says):
            Vault(tmp_path / "v", example, **options)
    with (
        Vault(tmp_path / "v", EXAMPLE, num_envs=ENVS) as vault,
        pytest.raises(ValueError, match=r"transitions\['reward'\] must have shape"),
    ):
        vault.append({**rows(2), "reward": np.zeros(3, np.float32)})


def test_one_appends_and_others_read(tmp_path):
    with Vault(tmp_path / "v", EXAMPLE, num_envs=ENVS) as vault:
        vault.append(rows(2))
        with pytest.raises(BlockingIOError, match="another process appends"):
            Vault(tmp_path / "v", EXAMPLE, num_envs=ENVS)
        reader = Vault(tmp_path / "v", EXAMPLE, num_envs=ENVS, read_only=True)
        check_equal(reader.read(), rows(2))
        with pytest.raises(ValueError, match="closed, or was opened with read_only=True"):
            reader.append(rows(1))
    with pytest.raises(FileNotFoundError, match="holds no vault"):
        Vault(tmp_path / "absent", EXAMPLE, read_only=True)


def test_folders_that_are_no_vault_or_a_damaged_one(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("x")
    with pytest.raises(DamagedError, match="holds something that is no vault"):
        Vault(tmp_path / "other", EXAMPLE)
    Vault(tmp_path / "v", EXAMPLE).close()
    index = tmp_path / "v" / "index.json"
    kept = index.read_text()
    for text in ("{", "[]", json.dumps({**json.loads(kept), "schema": 9})):
        index.write_text(text)
        with pytest.raises(DamagedError):
            Vault(tmp_path / "v", EXAMPLE)
    index.write_text(kept)
    with Vault(tmp_path / "v", EXAMPLE) as vault:
        vault.append(rows(5, envs=()))
    array = tmp_path / "v" / "001" / "zarr.json"
    moved = array.rename(tmp_path / "zarr.json")
    with pytest.raises(DamagedError):
        Vault(tmp_path / "v", EXAMPLE)
    moved.rename(array)
    (chunk,) = (tmp_path / "v" / "001").glob("[0-9]*")
    kept = chunk.read_bytes()
    chunk.unlink()
    for read_only in (True, False):
        with pytest.raises(DamagedError, match="missing"):
            Vault(tmp_path / "v", EXAMPLE, read_only=read_only)
    for place in range(len(kept)):
        changed = bytearray(kept)
        changed[place] ^= 1
        chunk.write_bytes(changed)
        with pytest.raises(DamagedError):
            Vault(tmp_path / "v", EXAMPLE, read_only=True)
    chunk.write_bytes(kept)
    check_equal(Vault(tmp_path / "v", EXAMPLE, read_only=True).read(), rows(5, envs=()))


def test_a_read_takes_only_the_chunks_of_its_rows(tmp_path):
    values = np.random.default_rng(0).random(50_000, np.float32)
    with Vault(tmp_path, np.float32(0)) as vault:
        vault.append(values)
        (file,) = (tmp_path / "000").glob("[0-9]*")
        damaged = bytearray(file.read_bytes())
        damaged[100] ^= 1
        file.write_bytes(damaged)
        np.testing.assert_array_equal(vault.read(16_384 // 4), values[16_384 // 4 :])
        with pytest.raises(DamagedError):
            vault.read(0, 1)


def test_a_vault_whose_making_was_killed_is_made_again(tmp_path):
    Vault(tmp_path / "v", EXAMPLE).close()
    shutil.rmtree(tmp_path / "v" / "002")
    (tmp_path / "v" / ".index.json.0.tmp").write_text("{")
    with Vault(tmp_path / "v", EXAMPLE) as vault:
        vault.append(rows(2, envs=()))
        check_equal(vault.read(), rows(2, envs=()))


def test_buffers_of_other_items_are_refused(tmp_path):
    with Vault(tmp_path / "v", {"a": np.int32(0), "b": np.float32(0)}) as vault:
        for example, says in (
            ({"c": np.int32(0), "d": np.float32(0)}, "the buffer has"),
            ({"a": np.int32(0), "b": np.zeros(2, np.float32)}, r"\['b'\] is float32\[\] in"),
        ):
            buffer = replay.make(example, 4, 1)
            with pytest.raises(ValueError, match=says):
                vault.write(buffer, buffer.add(buffer.init(), example))


APPENDER = """
import sys
import numpy as np
from accel_rl.replay import Vault

vault = Vault(sys.argv[1], {"n": np.int32(0)})
while True:
    vault.append({"n": np.arange(len(vault), len(vault) + 7, dtype=np.int32)})
    print(len(vault), flush=True)
"""


@pytest.mark.long  # starts processes
def test_a_killed_vault_holds_what_it_acknowledged(tmp_path):
    words = [sys.executable, "-c", APPENDER, str(tmp_path / "v")]
    known = 0
    for seconds in (0.0, 0.013, 0.05, 0.11):
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            first = process.stdout.readline()
            time.sleep(seconds)
            process.send_signal(signal.SIGKILL)
            told = [first, *process.stdout.read().splitlines()]
        known = max([known, *(int(line) for line in told if line.strip().isdigit())])
        vault = Vault(tmp_path / "v", {"n": np.int32(0)}, read_only=True)
        assert len(vault) >= known
        np.testing.assert_array_equal(vault.read()["n"], np.arange(len(vault)))
        known = len(vault)
