"""Blind Cliffwalk's memory holds every sequence, and its updates are those of NumPy."""

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import cliffwalk
from common import Report


def played(states):
    """Pairs of all sequences of actions, played until they fall or arrive."""
    for actions in itertools.product((0, 1), repeat=states):
        for state, action in enumerate(actions):
            yield 2 * state + action
            if action:
                break


@pytest.mark.parametrize("states", [2, 5])
def test_a_memory_has_all_sequences(states):
    found = cliffwalk.walk(states, 0)
    assert len(found.pairs) == 2 ** (states + 1) - 2
    # walk counts sequences by where they fall; this plays each of them.
    assert sorted(found.pairs) == sorted(played(states))
    assert (found.rewards[found.pairs] == 1).sum() == 1
    assert not np.array_equal(found.pairs, cliffwalk.walk(states, 1).pairs)


def test_the_truth_solves_bellman_s_equation():
    found = cliffwalk.walk(4, 0)
    best = found.truth.reshape(4, 2).max(axis=1)
    following = np.where(found.ahead < 0, 0, best[found.ahead])
    np.testing.assert_allclose(found.truth, found.rewards + 0.75 * following)


def by_hand(kind, states, rng):
    """Updates of uniform replay until convergence, in float64."""
    walk, phi = cliffwalk.walk(states, 0), cliffwalk.features(kind, 2 * states).astype(float)
    weights = 0.1 * rng.standard_normal(phi.shape[1])
    time, wrong = 0, 1.0
    while wrong >= 1e-3:
        time += 1
        pair = rng.choice(walk.pairs)
        values = phi @ weights
        ahead = walk.ahead[pair]
        target = walk.rewards[pair]
        if ahead >= 0:
            target = target + walk.discount * values.reshape(-1, 2)[ahead].max()
        weights = weights + 0.25 * (target - values[pair]) * phi[pair]
        wrong = np.mean((phi @ weights - walk.truth) ** 2)
    return time


@pytest.mark.parametrize("kind", cliffwalk.KINDS)
def test_uniform_replay_takes_as_many_updates_as_numpy_s(kind):
    """Means within 4 standard errors: a false alarm in about 16,000."""
    rng = np.random.default_rng(0)
    theirs = np.array([by_hand(kind, 3, rng) for _ in range(200)])
    ours = cliffwalk.updates("uniform", kind, 3, seeds=200)
    error = np.sqrt(ours.var() / 200 + theirs.var() / 200)
    assert abs(ours.mean() - theirs.mean()) < 4 * error


@pytest.mark.long  # compiles each sampler
@pytest.mark.parametrize("kind", cliffwalk.KINDS)
def test_priorities_save_updates_and_the_oracle_saves_most(kind):
    found = {
        system: np.median(cliffwalk.updates(system, kind, 5, seeds=16))
        for system in cliffwalk.SAMPLERS
    }
    others = {name: value for name, value in found.items() if name not in ("uniform", "oracle")}
    assert found["oracle"] < min(others.values())
    assert max(others.values()) < found["uniform"]


def test_what_did_not_converge_is_no_figure():
    report = Report((), "cliffwalk")
    cliffwalk.claims(report)
    assert [claim.holds for claim in report.claims] == [None, None]
    assert cliffwalk.updates("uniform", "table", 3, seeds=2, most=5).tolist() == [5, 5]
