"""Every agent keeps the contract, and agents that do not are found; see agent_conformance.py."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
import quick
from agent_conformance import CASES, check_contract

from accel_rl import testing


@pytest.mark.parametrize("name", quick.only(["q_learning"], CASES, others="long"))
def test_contract(name):
    check_contract(CASES[name])


def heeds_no_weights(agent):
    def learn(state, batch, weights, key):
        return agent.learn(state, batch, jnp.ones_like(weights), key)

    return agent._replace(learn=learn)


def bootstraps_after_the_end(agent):
    def td_error(critics, batch, key):
        batch = dataclasses.replace(batch, discount=jnp.full_like(batch.discount, 0.5))
        return agent.td_error(critics, batch, key)

    return agent._replace(td_error=td_error)


def explores_when_told_not_to(agent):
    def act(policy, memory, observation, key, step, explore=True):
        return agent.act(policy, memory, observation, key, step)

    return agent._replace(act=act)


def acts_outside_the_space(agent):
    def act(*args, **options):
        action, memory = agent.act(*args, **options)
        return action + 1, memory

    return agent._replace(act=act)


def forgets_a_hyperparameter(agent):
    def init(key, alpha=0.1, **hyper):
        return agent.init(key, **hyper)

    return agent._replace(init=init)


def changes_its_types(agent):
    def learn(*args):
        state, learned = agent.learn(*args)
        return dataclasses.replace(state, tables=state.tables.astype(np.float16)), learned

    return agent._replace(learn=learn)


def never_learns(agent):
    return agent._replace(learn=lambda state, *rest: (state, agent.learn(state, *rest)[1]))


BROKEN = [
    heeds_no_weights,
    bootstraps_after_the_end,
    explores_when_told_not_to,
    acts_outside_the_space,
    forgets_a_hyperparameter,
    changes_its_types,
    never_learns,
]


@pytest.mark.parametrize(
    "broken",
    quick.only([heeds_no_weights, forgets_a_hyperparameter, never_learns], BROKEN, others="long"),
)
def test_broken_agents_are_found(broken):
    sound = CASES["q_learning"]
    hyper = {**sound.hyper, "initial_value": 1.0}  # so that there is something to bootstrap from
    case = dataclasses.replace(sound, make=lambda *spaces: broken(sound.make(*spaces)), hyper=hyper)
    with pytest.raises(AssertionError):
        testing.check_agent(case.make, *case.spaces(), **case.hyper)
