"""SwiftRL's experiment: the runs of `accel-rl demo` and of the first notebook.

{Q-learning, SARSA} x {SEQ, STR, RAN} x {FP32, INT32} on FrozenLake and Taxi, split over emulated
DPUs. SARSA is `sarsa_epsilon_greedy`, as SwiftRL's is remembered: its next action comes from the
DPU's own table. In addition: the third numerics, the effect of the merge on Taxi, the value
estimates of SARSA's two modes, and the scaling of modelled time.

Reference: Gogineni et al., "SwiftRL", ISPASS 2024, arXiv:2405.03967.
"""

import dataclasses
import functools
import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor

import jax
import numpy as np

from accel_rl import datasets, envs, pim, tabular
from accel_rl.datasets import TabularDataset
from accel_rl.experiment import tabular_run
from accel_rl.experiment.tabular_run import Outcome, TabularSettings
from accel_rl.io.values import Json
from accel_rl.pim import load_machine, modelled

ENVIRONMENTS = ("FrozenLake-v1", "Taxi-v3")
RULES = ("q_learning", "sarsa_epsilon_greedy")
ORDERS = ("SEQ", "STR", "RAN")
NUMERICS = ("fp32", "int32_scaled")
SWEEP_ENVIRONMENT = "Taxi-v3"  # has many pairs (s, a), which each DPU covers sparsely
SCALING_DPUS = (125, 250, 500, 1000, 2000)
SCALING_NUMERICS = (*NUMERICS, "int32_pow2")

Step = Callable[[str], object]


@dataclasses.dataclass(frozen=True)
class Scale:
    """Size of the experiment."""

    transitions: int
    dpus: int
    passes: int
    few_dpus: int  # second number of DPUs for SARSA with logged next actions
    sweep_transitions: int  # of the smaller runs of the sweep over merge x period
    sweep_dpus: int
    sweep_passes: int
    sweep_periods: tuple[int, ...]
    scaling_transitions: int  # second size of the scaling study, beside `transitions`


FULL = Scale(1_000_000, 2000, 100, 20, 250_000, 500, 50, (1, 5, 10, 50), 5_000_000)
# Equal sizes share compiled programs: compilation takes most of a quick run.
QUICK = Scale(20_000, 40, 4, 40, 20_000, 40, 4, (1, 4), 100_000)


@dataclasses.dataclass(frozen=True, eq=False)
class Trained:
    """Run of the experiment."""

    settings: TabularSettings
    outcome: Outcome
    returns: np.ndarray  # [M] float32, exact return at each merge
    record: dict[str, Json]


@dataclasses.dataclass(frozen=True, eq=False)
class Findings:
    """Results in one environment."""

    environment: str
    dataset: dict[str, Json]  # see `tabular_run.describe`
    optimal: float  # return of an optimal policy
    fitted: dict[str, float]  # see `Laboratory.fit`
    trained: list[Trained]  # main runs, merged by visits
    mean: Trained  # Q-learning with the plain mean of the tables
    sarsa: list[dict[str, Json]]  # see `sarsa_error`
    sweep: list[dict[str, Json]]  # records of merge x period; empty but in SWEEP_ENVIRONMENT
    # transitions -> partition -> numerics -> seconds
    scaling: dict[str, dict[str, dict[str, dict[str, list[float]]]]]


class Laboratory:
    """Runner of trainings on one environment's data."""

    def __init__(self, environment: str, dataset: TabularDataset):
        """Prepare the data for training and for the cost model."""
        self.environment = environment
        self.mdp = envs.make_mdp(environment)
        self.dataset = dataset
        self.load = modelled.load_of(dataset)
        self._machine = load_machine()
        self.probe = tabular_run.return_probe(self.mdp, tabular_run.horizon_of(self.mdp))
        # Runs on the same number of DPUs share their chunks.
        self._chunks = functools.cache(functools.partial(tabular_run.chunks_of, dataset))

    def train_all(
        self, settings: Iterable[TabularSettings], pool: Executor, step: Step
    ) -> list[Trained]:
        """Train with each of the settings, in parallel on the pool's threads."""
        settings = list(settings)
        for dpus, by in {(each.dpus, each.by) for each in settings}:
            self._chunks(
                dpus, by
            )  # fill the cache first: concurrent misses would each split the log
        done = []
        for each, run in zip(settings, pool.map(self.train, settings), strict=True):
            done.append(run)
            step(f"{self.environment}: {_describe(each)}")
        return done

    def train(self, settings: TabularSettings) -> Trained:
        """Train with the settings, and model the time on DPUs."""
        outcome = tabular_run.train(
            self._chunks(settings.dpus, settings.by), settings, self.probe, segmented=False
        )
        returns = np.asarray(outcome.returns)
        seconds = self.modelled_seconds(settings)
        record = tabular_run.record(self.environment, settings, float(returns[-1]), seconds)
        return Trained(settings, outcome, returns, record)

    def modelled_seconds(self, settings: TabularSettings) -> dict[str, float]:
        """Model the seconds of each part of a run on DPUs, without the run."""
        run = modelled.workload(self._machine, self.load, settings.kernel, settings.dpus)
        return modelled.parts(self._machine, run)

    def fit(self, gamma: float) -> dict[str, float]:
        """Solve the MDP that the data's counts estimate.

        Args:
            gamma: discount factor.

        Returns:
            "episode_return" of its greedy policy, exact in the environment, and
            "measured_seconds" on this machine, without compilation.
        """

        def solve() -> jax.Array:
            model = tabular.fit_mdp(
                self.dataset.transitions, self.mdp.num_states, self.mdp.num_actions
            )
            return jax.block_until_ready(tabular.value_iteration(model, gamma)[1])

        values = solve()
        started = time.perf_counter()
        solve()
        seconds = time.perf_counter() - started
        return {"episode_return": float(self.probe(values)), "measured_seconds": seconds}

    def first(self, transitions: int) -> "Laboratory":
        """Return a laboratory with the first transitions only."""
        columns, episode = jax.tree.map(
            lambda column: column[:transitions], (self.dataset.transitions, self.dataset.episode)
        )
        return Laboratory(self.environment, TabularDataset(columns, episode, self.dataset.info))


def steps(scale: Scale) -> int:
    """Count the calls of `step` by `explore`, summed over all environments."""
    each = len(list(_main_settings(scale, 0))) + len(list(_sarsa_settings(scale, 0))) + 3
    return len(ENVIRONMENTS) * each + len(list(_sweep_settings(scale, 0)))


def explore(environment: str, scale: Scale, seed: int, pool: Executor, step: Step) -> Findings:
    """Make all runs in one environment.

    Args:
        environment: a tabular environment's name.
        scale: size of the experiment.
        seed: of the data and of the runs.
        pool: threads for the runs; results do not depend on their number.
        step: called with a description of finished work, `steps(scale)` times in all environments.
    """
    base = TabularSettings(dpus=scale.dpus, passes=scale.passes, seed=seed)
    laboratory = Laboratory(environment, _collect(environment, scale.transitions, seed))
    step(f"{environment}: {scale.transitions:,} transitions collected")
    scaling = pool.submit(_model_scaling, laboratory, scale, base)
    mean_merge = dataclasses.replace(base, merge="mean")
    *trained, mean = laboratory.train_all([*_main_settings(scale, seed), mean_merge], pool, step)
    own = next(run for run in trained if run.settings.rule == "sarsa_epsilon_greedy")
    logged = laboratory.train_all(_sarsa_settings(scale, seed), pool, step)
    sarsa = [sarsa_error(laboratory, run) for run in (own, *logged)]

    sweep = []
    if environment == SWEEP_ENVIRONMENT:
        small = laboratory.first(scale.sweep_transitions)
        sweep = [run.record for run in small.train_all(_sweep_settings(scale, seed), pool, step)]

    optimal = float(tabular.optimal_return(laboratory.mdp))
    fitted = laboratory.fit(base.gamma)
    described = tabular_run.describe(laboratory.dataset)
    modelled_seconds = scaling.result()
    step(f"{environment}: {scale.scaling_transitions:,} transitions modelled")
    return Findings(
        environment, described, optimal, fitted, trained, mean, sarsa, sweep, modelled_seconds
    )


def _model_scaling(
    laboratory: Laboratory, scale: Scale, base: TabularSettings
) -> dict[str, dict[str, dict[str, dict[str, list[float]]]]]:
    """Model cycles and total time, in seconds, over numbers of DPUs: `Findings.scaling`."""
    more = _collect(laboratory.environment, scale.scaling_transitions, base.seed)
    return {
        str(len(load)): {
            by: {
                numerics: modelled.scaling(
                    load, dataclasses.replace(base, numerics=numerics, by=by).kernel, SCALING_DPUS
                )
                for numerics in SCALING_NUMERICS
            }
            for by in ("time", "owner")
        }
        for load in (modelled.load_of(more), laboratory.load)
    }


def _describe(settings: TabularSettings) -> str:
    return (
        f"{settings.rule}, {settings.order}, {settings.numerics}, {settings.dpus:,} DPUs by "
        f"{settings.by}, merge {settings.merge} each {settings.period}"
    )


def sarsa_error(laboratory: Laboratory, trained: Trained) -> dict[str, Json]:
    """Compare SARSA's values with the exact values of the policy that it estimates.

    With logged next actions this is the behaviour policy, uniformly random here; with its own next
    actions, the epsilon-greedy policy of the learned values. Errors cover the pairs (s, a) in the
    data; the mean weights pairs by their number of transitions.
    """
    settings, values, mdp = trained.settings, trained.outcome.values, laboratory.mdp
    if settings.rule == "sarsa":
        name, policy = "random, from the log", tabular.uniform_policy(*values.shape)
    else:
        name = f"own, epsilon {settings.epsilon:g}"
        policy = tabular.epsilon_greedy(jax.numpy.asarray(values), settings.epsilon)
    exact = np.asarray(tabular.policy_evaluation(mdp, policy, settings.gamma)[1])
    visits = np.bincount(laboratory.load.pairs(), minlength=exact.size).reshape(exact.shape)
    error = np.abs(values - exact)
    return {
        "environment": laboratory.environment,
        "rule": settings.rule,
        "policy": name,
        "dpus": settings.dpus,
        "passes": settings.passes,
        "max_abs_error": float(error[visits > 0].max()),
        "mean_abs_error": float((error * visits).sum() / visits.sum()),
        "largest_abs_value": float(np.abs(exact[visits > 0]).max()),
    }


def _collect(environment: str, transitions: int, seed: int) -> TabularDataset:
    mdp = envs.make_mdp(environment)
    return datasets.collect(mdp, "random", transitions, seed=seed, environment=environment)


def _main_settings(scale: Scale, seed: int) -> Iterator[TabularSettings]:
    """Yield the paper's twelve variants, Q-learning in the third numerics, and both by owner."""
    base = TabularSettings(dpus=scale.dpus, passes=scale.passes, seed=seed)
    for rule, order in itertools.product(RULES, ORDERS):
        first = (rule, order) == (RULES[0], ORDERS[0])
        for numerics in (*NUMERICS, "int32_pow2") if first else NUMERICS:
            yield dataclasses.replace(base, rule=rule, order=order, numerics=numerics)
    for rule in RULES:
        for numerics in (*NUMERICS, "int32_pow2") if rule == RULES[0] else NUMERICS:
            yield dataclasses.replace(base, rule=rule, numerics=numerics, by="owner")


def _sweep_settings(scale: Scale, seed: int) -> Iterator[TabularSettings]:
    base = TabularSettings(dpus=scale.sweep_dpus, passes=scale.sweep_passes, seed=seed)
    for merge, period in itertools.product(pim.MERGES, scale.sweep_periods):
        yield dataclasses.replace(base, merge=merge, period=period)


def _sarsa_settings(scale: Scale, seed: int) -> Iterator[TabularSettings]:
    """Yield settings of SARSA with logged next actions, on many and on few DPUs.

    With fewer DPUs, each DPU sees each pair more often in a pass.
    """
    base = TabularSettings(rule="sarsa", passes=scale.passes, seed=seed)
    for dpus in (scale.dpus, scale.few_dpus):
        yield dataclasses.replace(base, dpus=dpus)
