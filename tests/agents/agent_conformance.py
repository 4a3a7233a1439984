"""What every agent must do, beside learning the probes; see docs/agent.md.

Adding an agent is a line in `CASES`: `test_agent_contract.py` puts it through `check_contract`, and
`test_probes.py` trains it on the probes, sound and broken.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import probes

from accel_rl import agents, tabular, testing


@dataclasses.dataclass(frozen=True)
class Case:
    """An agent under test, and what it needs to learn the probes."""

    make: Callable[..., Any]  # of both spaces
    hyper: dict = dataclasses.field(default_factory=dict)
    continuous: bool = False  # actions
    box: bool = True  # observations
    online: bool = False  # from replay.newest instead of replay.make
    iterations: int = 600  # of 8 environment steps each
    tolerance: float = 0.1  # of values
    random: bool = False  # whether learning is random

    def spaces(self):
        """Spaces of observations and of actions."""
        actions = probes.CONTINUOUS_ACTIONS if self.continuous else probes.DISCRETE_ACTIONS
        return probes.FEATURES if self.box else probes.STATES, actions


EXPLORING = {"epsilon_start": 1.0, "epsilon_end": 0.5, "epsilon_steps": 2000.0}
NET = {"hidden": (24,)}


def _dqn(box=True, **options):
    hyper = {**EXPLORING, "learning_rate": 0.01, "target_period": 5.0}
    return Case(functools.partial(agents.dqn, **NET, **options), hyper, box=box)


def _normalised():
    """Reads observations less their mean, over their standard deviation."""
    plain = _dqn()
    return dataclasses.replace(
        plain, make=lambda *spaces: agents.normalise_observations(plain.make(*spaces))
    )


def _actor_critic(make, **hyper):
    rates = {"actor_learning_rate": 0.001, "critic_learning_rate": 0.01, "tau": 0.05}
    hyper = {**rates, "random_steps": 4000.0, **hyper}
    make = functools.partial(make, **NET)
    return Case(make, hyper, continuous=True, iterations=1000, random=True)


def _tabular(rule):
    hyper = {**EXPLORING, "alpha": 0.1}
    make = functools.partial(agents.tabular, rule)
    return Case(make, hyper, box=False, online=True, iterations=400, random=rule.random)


CASES = {
    "dqn": _dqn(double=False),
    "dqn_of_discrete_observations": _dqn(double=False, box=False),
    "double_dueling_dqn": _dqn(double=True, dueling=True, loss="huber"),
    "c51": _dqn(distributional="c51", num_atoms=25, value_range=(-3.0, 3.0)),
    "quantile": _dqn(distributional="quantile", num_atoms=8),
    "rainbow": dataclasses.replace(
        _dqn(distributional="c51", num_atoms=25, value_range=(-3.0, 3.0), dueling=True, noisy=True),
        random=True,
    ),
    "normalised_dqn": _normalised(),
    "ddpg": _actor_critic(agents.ddpg, noise_scale=0.3),
    "td3": _actor_critic(agents.td3, noise_scale=0.3),
    "sac": _actor_critic(agents.sac, initial_temperature=0.01, temperature_learning_rate=0.0),
    "q_learning": _tabular(tabular.q_learning()),
    "sarsa": _tabular(tabular.sarsa()),
    "expected_sarsa": _tabular(tabular.expected_sarsa()),
    "double_q_learning": _tabular(tabular.double_q_learning()),
    "int32_q_learning": _tabular(tabular.q_learning(tabular.int32_pow2())),
}
# One of each kind trains on the probes in every run of the tests, the others in the slow ones.
QUICK = {"q_learning"}


def check_contract(case):
    """Assert the contract, function by function, for one agent."""
    testing.check_agent(case.make, *case.spaces(), random=case.random, **case.hyper)
