"""Ape-X on this machine: actors in processes of their own, killed and started again."""

import dataclasses
import json
import os
import signal
import threading
import time
import types
import warnings

import jax
import numpy as np
import pytest
import quick
from apex_settings import TINY, tiny
from processes import LIMIT, wait_until

from accel_rl.remote.apex import (
    Actors,
    ApexTraining,
    LocalActors,
    RayActors,
    load,
    mailbox,
    run_actor,
    run_learner,
)
from accel_rl.remote.apex.mailbox import ActorReport, Newest
from accel_rl.train.pipeline.actors import Published, Version


def test_a_training_travels_as_json():
    again = ApexTraining.from_tables(json.loads(json.dumps(TINY.tables)))
    assert again.tables == TINY.tables
    assert (again.num_actors, again.envs_per_actor, again.schedule) == (2, 2, TINY.schedule)
    assert again.hyper == TINY.hyper
    np.testing.assert_array_equal(jax.random.key_data(again.key), jax.random.key_data(TINY.key))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["schedule.rollout=0"], "rollout must be at least 1, got 0"),
        (["replay.alpha=-1"], "alpha must be finite and at least 0"),
        (["agent.gamma=1.5"], "gamma must be from 0 to 1, got 1.5"),
        (["apex.epsilon=2"], "apex.epsilon must be less than or equal to 1, got 2"),
        (["apex.num_actors=0"], "apex.num_actors must be greater than or equal to 1, got 0"),
        (["apex.num_actors=3"], "num_envs must be a multiple of apex.num_actors, 3, got 8"),
        (["apex.run="], "settings are written section.name=value"),
        (["training.seed=-1"], "training.seed must be from 0 to"),
        (["training.seeds=2"], "training.seeds must be 1 for Ape-X, got 2"),
        (["replay.batch_size=60_000"], "batch_size"),
        (["replay.sampler=uniform"], "replay.sampler must be prioritised for Ape-X, got uniform"),
        (["replay.weights_over=buffer"], "replay.weights_over must be batch for Ape-X"),
        (["evaluation.stop_at=100"], "evaluation.stop_at must be None for Ape-X"),
        (["evaluation.stop_excess=2"], "evaluation.stop_excess must be None for Ape-X"),
    ],
)
def test_settings_that_ape_x_has_no_place_for_are_refused(words, message):
    with pytest.raises(ValueError, match=message):
        load("CartPole-v1", words=words)


def test_an_environment_that_is_not_dqns_is_refused():
    with pytest.raises(ValueError, match="Discrete"):
        load("Pendulum-v1")


def test_a_file_may_name_another_agent_which_is_refused(tmp_path):
    file = tmp_path / "td3.toml"
    file.write_text('agent.name = "td3"\nenvironment.name = "Pendulum-v1"')
    with pytest.raises(ValueError, match="name must be dqn for Ape-X, got td3"):
        load(file=file)


def test_policies_and_reports_go_through_the_mailbox(serve, connect):
    client = connect(serve().address)
    policy = {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.int32(4)}
    like = jax.eval_shape(lambda: Published(policy, None))
    newest = Newest(client, "run", like, seconds=0.0)
    found = []
    waiting = threading.Thread(target=lambda: found.append(newest()), daemon=True)
    waiting.start()
    time.sleep(0.05)
    assert not found
    mailbox.check_free(client, "run")
    mailbox.publish(client, "run", Version(Published(policy, None), 3))
    with pytest.raises(ValueError, match="a training named 'run' on this server already"):
        mailbox.check_free(client, "run")
    waiting.join(LIMIT)
    assert found[0].updates == 3
    np.testing.assert_array_equal(found[0].published.policy["w"], policy["w"])
    wrong = Published({"w": policy["w"], "n": np.int64(4)}, None)
    mailbox.publish(client, "run", Version(wrong, 5))
    with pytest.raises(ValueError, match="run/policy in the server's mailbox is no policy of this"):
        newest()
    for number, foreign in enumerate((b"", b"\xff", b"\x93\x01\x02\x03", b"\x81\xa10\x01")):
        client.publish("run/policy", 6 + number, foreign)
        with pytest.raises(ValueError, match="run/policy in the server's mailbox is no policy"):
            newest()
        client.publish("run/actor/2", 1 + number, foreign)
        with pytest.raises(ValueError, match="run/actor/2 in the server's mailbox is no report"):
            mailbox.reported(client, "run", 2)
    assert mailbox.reported(client, "run", 1) is None
    for done in (ActorReport(0, -1, 0, 0, 0, 0.0, 0.0), ActorReport(0, 7, 100, 3, 2, 40.0, 40.0)):
        mailbox.report(client, "run", 1, done)
        assert mailbox.reported(client, "run", 1) == done
    again = dataclasses.replace(done, life=1)
    mailbox.report(client, "run", 1, again)
    assert mailbox.reported(client, "run", 1) == again


@pytest.mark.parametrize("shards", quick.only([1], [1, 2], others="long"))
def test_actors_and_a_learner_keep_the_ratio(serve, shards):
    """In threads of this process: as many samples for what was inserted as settings say."""
    servers, going = [serve() for _ in range(shards)], [True]
    address = servers[0].address if shards == 1 else [each.address for each in servers]
    errors = []

    def act(number):
        try:
            run_actor(TINY, address, number, should_continue=lambda: going[0])
        except Exception as error:
            errors.append(error)
            going[0] = False

    actors = [threading.Thread(target=act, args=(n,), daemon=True) for n in range(2)]
    for actor in actors:
        actor.start()
    steps, rows = 2_000, []
    done = run_learner(
        TINY,
        address,
        steps,
        period=500,
        ended=lambda: None if going[0] else str(errors),
        on_row=rows.append,
    )
    going[0] = False
    for actor in actors:
        actor.join(LIMIT)
        assert not actor.is_alive()
    assert not errors
    assert [row["steps"] for row in rows][-1] == done.rows[-1]["steps"] == steps
    updates = sum(row["updates"] for row in rows)
    assert updates == TINY.schedule.updates * (steps - 112) // 16  # 112: whole iterations above 100
    name = TINY.run if shards == 1 else f"{TINY.run}/limiter"
    counts = servers[0].stats()["tables"][name]
    assert counts["samples"] >= updates * TINY.batch_size
    most = counts["inserts"] * TINY.schedule.updates * TINY.batch_size / 16
    assert abs(counts["samples"] - most) < 4 * 16 + 100 + 64
    for each in servers:
        assert each.stats()["tables"][TINY.run]["updates"] > 0
        assert each.stats()["tables"][TINY.run]["inserts"] * shards >= counts["inserts"] - 16
    last = rows[-1]
    assert np.isfinite(last["loss"])
    assert last["actors_heard"] == 2
    assert last["shards_lost"] == 0
    assert last["priority_age_max"] >= 1
    assert last["policy_age_max"] >= last["policy_age_mean"] >= 0


@pytest.mark.long  # trains with processes that are killed
@pytest.mark.filterwarnings("ignore:shard 1 of the replay buffer:RuntimeWarning")
def test_a_training_goes_on_without_a_shard(serve):
    """Of two, the one that has not the limiter."""
    servers = [serve() for _ in range(2)]
    address, going = [each.address for each in servers], [True]
    one = tiny(num_actors=1)
    options = {"should_continue": lambda: going[0]}
    actor = threading.Thread(target=run_actor, args=(one, address, 0), kwargs=options, daemon=True)
    actor.start()

    def on_row(row):
        if row["steps"] >= 1_000:
            servers[1].close()

    done = run_learner(
        one,
        address,
        4_000,
        period=500,
        ended=lambda: None if actor.is_alive() else "the actor ended",
        on_row=on_row,
    )
    going[0] = False
    actor.join(LIMIT)
    assert not actor.is_alive()
    assert done.rows[0]["shards_lost"] == 0
    assert done.rows[-1]["shards_lost"] == 1
    assert done.rows[-1]["steps"] == 4_000


def test_actors_are_told_addresses_that_are_text(serve):
    server = serve()
    for wrong in (server, [server.address, server]):
        with pytest.raises(TypeError, match="ReplayServer is not JSON serializable"):
            LocalActors(TINY, wrong)


class Failing(Actors[int]):
    """Actors that end at once, and are started again once at most."""

    def _start(self, number):
        if number < len(self.running):
            raise KeyError("of whatever launches them")
        return number

    def _how(self, actor):
        return f"end {actor}"

    def _stop(self):
        return


@pytest.mark.filterwarnings("ignore:actor . ended with end:RuntimeWarning")
def test_an_actor_that_cannot_be_started_again_is_gone():
    """Whatever the error is: a learner would wait for ever for one that nobody watches."""
    with Failing(TINY, "unix:/nowhere", restarts=5) as actors:
        wait_until(actors.gone)
        assert actors.gone() == "all actors have ended: end 0, end 1"


def test_an_actor_of_a_ray_that_fails_has_ended():
    """With a Ray of which nothing is left, so that each call of it fails."""
    actors = RayActors.__new__(RayActors)
    actors._ray = types.SimpleNamespace()
    assert actors._how(types.SimpleNamespace(result=None)).startswith("AttributeError: ")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:actor 0 ended:RuntimeWarning")
def test_without_actors_the_learner_ends(serve):
    server, one = serve(), tiny(num_actors=1)
    with LocalActors(one, server.address) as actors:
        actors.processes[0].kill()
        with pytest.raises(RuntimeError, match="all actors have ended: exit code -9"):
            run_learner(one, server.address, 2_000, ended=actors.gone)


@pytest.mark.long
def test_a_killed_actor_comes_back_and_the_training_ends(serve):
    server = serve()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with LocalActors(TINY, server.address, restarts=1) as actors:
            killed = []

            def on_row(row):
                if row["actors_heard"] == 2 and not killed:
                    killed.append(actors.processes[0].pid)
                    os.kill(killed[0], signal.SIGKILL)

            done = run_learner(TINY, server.address, 12_000, period=500, on_row=on_row)
            wait_until(lambda: actors.restarted)
            assert actors.restarted == 1
            assert actors.processes[0].pid != killed[0]
    assert any("actor 0 ended with exit code -9" in str(each.message) for each in caught)
    assert done.rows[-1]["steps"] >= 12_000
    assert all(process.returncode is not None for process in actors.processes)
