"""Processes that train together by `jax.distributed`, against one process."""

import contextlib
import os
import pathlib
import re
import socket

import distributed_worker as worker
import jax
import numpy as np
import pytest
from processes import LIMIT, start

WORKER = pathlib.Path(worker.__file__)
COUNT = 2


def environment():
    """Ours, with as many devices for each process as make our mesh together."""
    flag = "--xla_force_host_platform_device_count="
    flags = re.sub(rf"{flag}\d+", f"{flag}{worker.SHARDS // COUNT}", os.environ["XLA_FLAGS"])
    paths = os.pathsep.join([str(WORKER.parent), str(WORKER.parent.parent)])
    return os.environ | {"XLA_FLAGS": flags, "PYTHONPATH": paths}


def free_address():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Results of one process, and of each of two."""
    folder, address = tmp_path_factory.mktemp("processes"), free_address()
    files = [folder / f"{number}.npz" for number in range(COUNT)]
    with contextlib.ExitStack() as stack:
        started = [
            stack.enter_context(start(WORKER, number, COUNT, address, file, env=environment()))
            for number, file in enumerate(files)
        ]
        alone = jax.tree.map(np.asarray, worker.results(worker.transitions()))
        assert [process.wait(LIMIT) for process in started] == [0] * COUNT
    structure = jax.tree.structure(alone)
    each = [list(np.load(file).values()) for file in files]
    return alone, [jax.tree.unflatten(structure, leaves) for leaves in each]


pytestmark = pytest.mark.long  # starts processes that import JAX and compile


def test_seeds_are_the_same_bits(found):
    alone, each = found
    for one in each:
        jax.tree.map(np.testing.assert_array_equal, one["seeds"], alone["seeds"])
    seeds = np.concatenate(
        [leaf.reshape(worker.SEEDS, -1) for leaf in jax.tree.leaves(alone["seeds"])], axis=1
    )
    assert len({row.tobytes() for row in seeds}) == worker.SEEDS


def test_processes_agree_on_what_they_learned(found):
    one, other = (each["learned"] for each in found[1])
    jax.tree.map(np.testing.assert_array_equal, one, other)


def test_shards_of_processes_teach_what_those_of_one_do(found):
    """Equal within tolerance: gradients of the devices are added in another order."""
    alone, (one, _) = found
    for expected, got in zip(
        jax.tree.leaves(alone["learned"]), jax.tree.leaves(one["learned"]), strict=True
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_one_device_learns_the_same_from_the_whole_batches(found):
    """Data-parallel updates are those of the whole batch; batches hold items of every shard."""
    parameters, ((batches, weights), errors) = found[1][0]["learned"]
    agent, state = worker.learner()
    learn = jax.jit(agent.learn)
    keys = jax.random.split(jax.random.key(2), worker.UPDATES)
    for number, key in enumerate(keys):
        batch = jax.tree.map(lambda leaf, number=number: leaf[number], batches)
        state, learned = learn(state, batch, weights[number], key)
        np.testing.assert_allclose(errors[number], learned.td_error, rtol=1e-3, atol=1e-5)
    jax.tree.map(
        lambda got, wanted: np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5),
        parameters, state.params,
    )  # fmt: skip
    rewards = worker.transitions()[0].reward
    assert all(np.isin(rewards[shard], batches.reward).any() for shard in range(worker.SHARDS))


@pytest.mark.slow  # XLA's own clock decides that a process has stopped: a busy machine is one, too
@pytest.mark.parametrize(("ahead", "threads"), [(16, None), pytest.param(400, 4, id="threads")])
def test_collectives_in_flight_do_not_stop_a_process(ahead, threads):
    """Waits for results suffice, or two threads a device; XLA aborts one that has stopped."""
    given = {name: value for name, value in os.environ.items() if name != "NPROC"}
    given |= {"NPROC": str(threads)} if threads else {}
    with start(WORKER.parent / "collectives_in_flight.py", 2, 400, ahead, env=given) as process:
        assert process.wait(LIMIT) == 0
