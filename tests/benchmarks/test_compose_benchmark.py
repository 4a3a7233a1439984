"""The benchmark of the composer: its claims, and synthetic steps that change nothing but time."""

import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from accel_rl import train
from accel_rl.compose import Estimate, Mapping, timing

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import compose as benchmark
import compose_synthetic as synthetic
from common import Report


def test_a_prediction_may_be_off_by_15_percent_or_twice_the_spread():
    mapping = Mapping("fused", "cpu:0", "cpu:0", "cpu:0", ("cpu:0",))
    estimate = Estimate(mapping, 1.0, 64, {}, None, "measured")
    assert benchmark.off(estimate, [1.1, 1.1, 1.1]) == pytest.approx(0.1 / 0.165)
    assert benchmark.off(estimate, [1.5, 1.5, 1.5]) == pytest.approx(0.5 / 0.225)
    # Quartiles 1.25 and 1.75: the spread is 0.5.
    assert benchmark.off(estimate, [1.0, 1.25, 1.5, 1.75, 2.0]) == pytest.approx(0.5 / 1.0)


def test_the_demonstration_is_computed():
    report = Report(benchmark.PACKAGES)
    benchmark.demonstration(report)
    (claim,) = report.claims
    assert claim.holds
    assert claim.value == pytest.approx(0.23)


def test_without_a_rival_there_is_no_time_of_it(capsys):
    rival = benchmark.Rival(None)
    assert rival.train(next(iter(benchmark.all_cases().values())), 100, 1) is None
    assert "claims are null" in capsys.readouterr().err


FAKE = """
import json, os, sys
assert "XLA_FLAGS" not in os.environ
print(json.dumps({"version": "2.9"}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if asked["iterations"] > 500:
        sys.exit(1)
    assert asked["settings"]["hidden"] == [120, 84] and asked["threads"] == 2
    print(json.dumps({"wall": 3.0, "cpu": 2.0}), flush=True)
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    path = tmp_path / "fake.py"
    monkeypatch.setattr("compose_rival.SCRIPT", path)
    return path


def test_the_rival_is_asked_until_it_ends(script, capsys):
    script.write_text(FAKE)
    rival = benchmark.Rival(sys.executable)
    assert rival.version == "2.9"
    wanted = next(iter(benchmark.all_cases().values()))
    assert rival.train(wanted, 100, threads=2) == pytest.approx(3.0 / 100)
    assert (
        rival.train(wanted.with_settings({"replay.sampler": "prioritised"}), 100, threads=2) is None
    )
    assert rival.train(wanted, 501, threads=2) is None
    assert "SB3 ended without an answer: fake.py ended" in capsys.readouterr().err
    assert rival.train(wanted, 100, threads=2) is None


@pytest.mark.parametrize("text", ["", "print('hello')", "print(3)"])
def test_a_rival_that_does_not_greet_is_warned_of(script, capsys, text):
    script.write_text(text)
    rival = benchmark.Rival(sys.executable)
    assert rival.train(next(iter(benchmark.all_cases().values())), 100, 1) is None
    assert "SB3 did not start: fake.py" in capsys.readouterr().err


@pytest.mark.slow
def test_synthetic_steps_take_time_and_change_nothing():
    speed = synthetic.turns_per_second()
    none = dict.fromkeys(("insert", "sample", "update", "learn"), 0.0)
    plain = synthetic.program(none, speed)
    slow = synthetic.program({**none, "learn": 5e-3}, speed)
    key = jax.random.key(0)
    finals = [jax.jit(train.fused(each, 100))(key).state for each in (plain, slow)]
    one, other = (jax.tree.leaves(state.agent) for state in finals)
    for left, right in zip(one, other, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)

    learn = jax.jit(slow.agent.learn)
    sample = slow.require_replay().sample(finals[0].replay, key, 0.5, 0.99)
    state = finals[0].agent
    call = lambda: jax.block_until_ready(learn(state, sample.batch, sample.weights, key))  # noqa: E731
    assert timing.alone(call, 0.1).median > 2e-3
