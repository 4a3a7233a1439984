"""Actors on a Ray cluster of this machine; Ray is no part of the tests' environment."""

import os
import signal
import warnings

import pytest
from apex_settings import SETTINGS, TINY, tiny
from optional import require
from processes import wait_until

require("Ray")
import ray  # noqa: E402

from accel_rl.remote.apex import RayActors, load, run_learner  # noqa: E402

pytestmark = [
    pytest.mark.long,  # a cluster has to start
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Ray's sockets and logs
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def process_of(actor):
    """The number of the process that acts for this training, and for no other."""
    return ray.get(actor.handle.__ray_call__.remote(lambda _: os.getpid()))


def node_of(actor):
    """The node that an actor is on."""
    where = lambda _: ray.get_runtime_context().get_node_id()  # noqa: E731 - sent as it is
    return ray.get(actor.handle.__ray_call__.remote(where))


def test_a_killed_actor_comes_back_and_the_training_ends(serve):
    server = serve(secret=b"s" * 16)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with RayActors(TINY, server.address, secret=b"s" * 16, restarts=1) as actors:
            killed = []

            def on_row(row):
                if row["actors_heard"] == 2 and not killed:
                    killed.append(process_of(actors.running[0]))
                    os.kill(killed[0], signal.SIGKILL)

            done = run_learner(
                TINY, server.address, 12_000, secret=b"s" * 16, period=500, ended=actors.gone,
                on_row=on_row,
            )  # fmt: skip
            wait_until(lambda: actors.restarted)
            assert (actors.restarted, actors.alive) == (1, 2)
    assert any("actor" in str(each.message) for each in caught)
    assert done.rows[-1]["steps"] >= 12_000
    assert not ray.is_initialized()


def test_actors_of_two_nodes(serve):
    """Two raylets, each with a processor for one of the two actors."""
    from ray.cluster_utils import Cluster

    server = serve(secret=b"s" * 16)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        cluster.add_node(num_cpus=1)
        with RayActors(
            TINY, server.address, secret=b"s" * 16, ray_address=cluster.address
        ) as actors:
            assert len({node_of(actor) for actor in actors.running}) == 2
            done = run_learner(
                TINY, server.address, 3_000, secret=b"s" * 16, period=500, ended=actors.gone
            )
        assert done.rows[-1]["actors_heard"] == 2
    finally:
        ray.shutdown()
        cluster.shutdown()


def test_without_actors_the_learner_ends(serve):
    server, one = serve(), tiny(num_actors=1)
    one.port(server.address, one.schedule.num_envs).close()
    settings = SETTINGS | {"apex.num_actors": 1, "replay.capacity": 1_000}
    other = load("CartPole-v1", settings)  # of another table: it is refused
    with (
        RayActors(other, server.address) as actors,
        pytest.raises(RuntimeError, match=r"all actors have ended: .*TableDiffers"),
    ):
        run_learner(one, server.address, 2_000, ended=actors.gone)
