"""Whether composed trainings take what the composer predicts, and are the fastest that there are.

    python benchmarks/compose.py [--quick] [--rivals PYTHON] [--json PATH]

DQN on CartPole, and DDPG on Pendulum and MountainCarContinuous: each is profiled and planned over
two host devices and the native kernels; every mapping then runs, in interleaved rounds, and what an
iteration took stands beside what was predicted. Stable-Baselines3 trains with equal
hyper-parameters in the same rounds, in an environment of its own (`training_sb3.py` says how to
make it; without it its claims are null). The fused program and the best split mapping are reported
apart. Calibrated synthetic steps show how much of the replay's time is hidden behind learning, and
a training of many seeds what a lag of priorities does to returns.

Joules are null where neither RAPL nor NVML can be read; performance portability is null, as this is
a single platform.
"""

import argparse
import functools
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import compose_synthetic as synthetic
import cores
import jax
import numpy as np
from common import Claim, Report
from compose_rival import RIVAL, Rival
from rich.console import Console
from training_devices import use_all_cores

from accel_rl import compose, experiment, plot, train
from accel_rl.compose import Estimate, Mapping, Plan
from accel_rl.compose.devices import find
from accel_rl.compose.placing import placement
from accel_rl.compose.run import iteration_seconds
from accel_rl.experiment import Experiment

PACKAGES = ("jax", "jaxlib", "numpy", "flax", "optax", "gymnax")
DEVICES = ("cpu:0", "cpu:1", "native")
ITERATION, THROUGHPUT = "iteration", "trained samples per second"
OVER_RIVAL, HIDDEN, WITHIN_BEST = 2.1, 0.8, 1.05
ROWS = 10  # of a run, of which the first that learns is left out
RIVAL_STEPS = 1_000  # of environments, in a run of the rival
THREADS = (1, 2)  # that it is given
LEARNED = 150.0  # returns of CartPole from which the margin says something
MARGIN = 50.0  # of CartPole's 500, within which returns count as unchanged


def case(agent: str, environment: str, **settings: Any) -> Experiment:
    """Experiment of a case; a setting's name has _ for its dot, once."""
    given = {name.replace("_", ".", 1): value for name, value in settings.items()}
    sizes = {"replay.batch_size": 64, "replay.capacity": 10_000, "schedule.num_envs": 1}
    given = {**sizes, "compose.devices": DEVICES, **given}
    return experiment.load(None, given, agent=agent, environment=environment, command="compose")


@functools.cache
def all_cases() -> dict[str, Experiment]:
    """Experiments by name; they compute, so that JAX must have its devices before."""
    return {
        "DQN CartPole, 1 env, batch 64": case("dqn", "CartPole-v1"),
        "DQN CartPole, prioritised, 1 env, batch 64": case(
            "dqn", "CartPole-v1", replay_sampler="prioritised"
        ),
        "DQN CartPole, 32 envs, batch 256": case(
            "dqn",
            "CartPole-v1",
            replay_batch_size=256,
            schedule_num_envs=32,
            replay_capacity=10_016,
        ),
        "DQN CartPole, 256 steps then 128 updates of 64": case(
            "dqn",
            "CartPole-v1",
            replay_capacity=100_000,
            schedule_rollout=256,
            schedule_updates=128,
            agent_learning_rate=2.3e-3,
            agent_hidden=(256, 256),
        ),
        "DDPG Pendulum, 200 steps then 200 updates of 256": case(
            "ddpg",
            "Pendulum-v1",
            replay_batch_size=256,
            schedule_rollout=200,
            schedule_updates=200,
        ),
        "DDPG Pendulum, 1 env, batch 256": case("ddpg", "Pendulum-v1", replay_batch_size=256),
        "DDPG MountainCarContinuous, 1 env, batch 256": case(
            "ddpg", "MountainCarContinuous-v0", replay_batch_size=256
        ),
    }


def measure(
    wanted: Experiment, plan: Plan, rival: Rival, rounds: int, seconds: float, console: Console
) -> tuple[dict[Mapping, list[float]], list[float], list[float]]:
    """Seconds of an iteration in interleaved rounds: of every mapping and of the rival.

    Each runs for about so many seconds. The rival's are those with as many threads as it is fastest
    with. And what `cores.wait` ended with before each run of a mapping.
    """
    taken: dict[Mapping, list[float]] = {each.mapping: [] for each in plan.estimates}
    others: dict[int, list[float]] = {threads: [] for threads in THREADS}
    slowdowns = []
    made = wanted.program.schedule
    for number in range(rounds):
        for estimate in plan.estimates:
            slowdowns.append(cores.wait())
            period = max(2, int(seconds / estimate.seconds / ROWS)) * made.steps
            steps = made.warmup * made.steps + ROWS * period
            key = jax.random.key(number)
            ran = compose.run(wanted, estimate.mapping, key, steps, period=period)
            taken[estimate.mapping].append(ran.seconds)
        for threads, found in others.items():
            iterations = -(-RIVAL_STEPS // made.steps)
            other = rival.train(wanted, iterations, threads)
            if other is not None:
                found.append(other)
        console.print(f"  round {number + 1} of {rounds}", highlight=False)
    fastest = min((each for each in others.values() if each), key=statistics.median, default=[])
    return taken, fastest, slowdowns


def off(estimate: Estimate, taken: Sequence[float]) -> float:
    """How far a prediction is from what was measured, of what it may be: 15 %, or twice the spread.

    The spread is the distance between the quartiles of the rounds.
    """
    low, median, high = np.quantile(taken, [0.25, 0.5, 0.75])
    return float(abs(estimate.seconds - median) / max(0.15 * median, 2 * (high - low)))


def study(
    report: Report,
    case: str,
    wanted: Experiment,
    rival: Rival,
    rounds: int,
    seconds: float,
    console: Console,
) -> None:
    """Plans and runs a case; records and claims."""
    console.print(case, highlight=False)
    cores.wait()
    plan = compose.plan(wanted, seconds=0.05 if rounds < 3 else 0.1)
    taken, others, slowdowns = measure(wanted, plan, rival, rounds, seconds, console)
    report.add(case, "machine", "a thread's time beside another's", "times alone", slowdowns)
    offs = {}
    for estimate in plan.estimates:
        name = str(estimate.mapping)
        report.add(
            case, name, f"{ITERATION}, predicted", "us", [estimate.seconds * 1e6], "modelled"
        )
        report.add(case, name, ITERATION, "us", np.array(taken[estimate.mapping]) * 1e6)
        offs[estimate.mapping] = off(estimate, taken[estimate.mapping])
    share = float(np.mean([value <= 1 for value in offs.values()]))
    report.claims.append(
        Claim(f"{case}: share of mappings predicted within 15 % or twice the spread", share, 1.0,
              share >= 1.0)
    )  # fmt: skip
    medians = {mapping: statistics.median(each) for mapping, each in taken.items()}
    fastest = min(medians, key=lambda mapping: medians[mapping])
    chosen = plan.best.mapping
    ratio = medians[chosen] / medians[fastest]
    apart = np.quantile(taken[chosen], 0.25) > np.quantile(taken[fastest], 0.75)
    report.claims.append(
        Claim(f"{case}: chosen over the measured best (or their quartiles overlap)", ratio,
              WITHIN_BEST, ratio <= WITHIN_BEST or not apart, "<=",
              ours=report.place(case, str(chosen), ITERATION),
              rival=report.place(case, str(fastest), ITERATION))
    )  # fmt: skip
    split = min((m for m in medians if m.executor != "fused"), key=lambda m: medians[m])
    fused = min((m for m in medians if m.executor == "fused"), key=lambda m: medians[m])
    samples = plan.best.samples
    for what, mapping in (("best split", split), ("fused", fused)):
        rates = samples / np.array(taken[mapping])
        report.add(case, f"{what}: {mapping}", THROUGHPUT, "samples/s", rates)
    value = None
    if others:
        report.add(case, RIVAL, THROUGHPUT, "samples/s", samples / np.array(others))
        value = statistics.median(others) / medians[split]
    if wanted.configuration.replay.sampler == "uniform":
        holds = None if value is None else value >= OVER_RIVAL
        claim = f"{case}: best split over {RIVAL}"
        ours = report.place(case, f"best split: {split}", THROUGHPUT)
        theirs = report.place(case, RIVAL, THROUGHPUT)
        report.claims.append(
            Claim(
                claim, value, OVER_RIVAL, holds, ours=None if value is None else ours, rival=theirs
            )
        )


def overlap(report: Report, rounds: int, iterations: int, scale: float) -> None:
    """How much of the replay's time is hidden, half of learning's, which is 8 ms times a scale."""
    case = f"synthetic steps, learning {8 * scale:.0f} ms"
    speed = synthetic.turns_per_second()
    replay = {"insert": scale * 1e-3, "sample": scale * 2e-3, "update": scale * 1e-3}
    learn = scale * 8e-3
    devices = find(DEVICES)
    mapping = Mapping("deterministic", "cpu:0", "cpu:0", "cpu:0", ("cpu:1",))
    place = placement(mapping, devices)
    steps = synthetic.small().schedule.learning_starts + iterations

    def iteration(seconds: dict[str, float]) -> float:
        made = synthetic.program(seconds, speed)
        ran = train.pipelined(
            made, jax.random.key(0), steps, placement=place, period=max(1, steps // 8)
        )
        return iteration_seconds(ran.rows, made.schedule)[0]

    hidden = []
    for _ in range(rounds):
        slow = [cores.wait()]
        alone = iteration({**dict.fromkeys(replay, 0.0), "learn": learn})
        both = iteration({**replay, "learn": learn})
        slow.append(cores.slowdown())
        report.add(case, "accel_rl", "iteration without replay time", "ms", [alone * 1e3])
        report.add(case, "accel_rl", "iteration with it", "ms", [both * 1e3])
        report.add(case, "machine", "a thread's time beside another's", "times alone", slow)
        if max(slow) <= cores.AT_ONCE:  # else there was nothing to hide behind
            hidden.append(1 - (both - alone) / sum(replay.values()))
    claim = f"{case}, two cores: share of the replay's time that is hidden"
    share = "share of the replay's time that is hidden"
    if hidden:
        report.add(case, "accel_rl", share, "", hidden)
    value = statistics.median(hidden) if hidden else None
    holds, ours = None if value is None else value >= HIDDEN, report.place(case, "accel_rl", share)
    report.claims.append(Claim(claim, value, HIDDEN, holds, ours=ours))


def relaxed(report: Report, seeds: int, steps: int) -> None:
    """Test that returns with a priority lag of one update are equivalent."""
    case = f"DQN CartPole, prioritised, {seeds} seeds, {steps:,} steps"
    prioritised = all_cases()["DQN CartPole, prioritised, 1 env, batch 64"]
    found = {}
    for lag in (0, 1):
        schedule = {"num_envs": 4, "policy_lag": 0, "priority_lag": lag}
        section = {f"schedule.{name}": value for name, value in schedule.items()}
        wanted = prioritised.with_settings(section)
        made = wanted.program
        run = train.fused(made, steps)
        play = train.evaluator(made.env, made.agent, max_steps=500)

        def learn(
            key: jax.Array, run: Any = run, play: Any = play, hyper: Any = wanted.hyper
        ) -> Any:
            run_key, play_key = jax.random.split(key)
            policy = run(run_key, **hyper).state.agent
            return play(policy, play_key)

        everyone = train.over_seeds(learn)
        keys = jax.random.split(jax.random.key(7), seeds)
        found[lag] = np.asarray(everyone(keys)).reshape(seeds, -1).mean(1)
        report.add(case, f"priority lag {lag}", "greedy return", "mean over seeds", found[lag])
    draws = np.random.default_rng(0)
    differences = [
        plot.interquartile_mean(draws.choice(found[1], seeds))
        - plot.interquartile_mean(draws.choice(found[0], seeds))
        for _ in range(4_000)
    ]
    low, high = np.quantile(differences, [0.05, 0.95])
    for end, each in (("lower", low), ("upper", high)):
        metric = f"difference of IQM, {end} end of its 90 % interval"
        report.add(case, "lag 1 less lag 0", metric, "", [each])
    value = float(max(abs(low), abs(high)))
    claim = f"{case}: 90 % interval of the difference within the margin"
    learned = plot.interquartile_mean(found[0]) >= LEARNED  # else both are as good as nothing
    places = [report.place(case, f"priority lag {lag}", "greedy return") for lag in (1, 0)]
    holds = value <= MARGIN if learned else None
    report.claims.append(Claim(claim, value, MARGIN, holds, "<=", ours=places[0], rival=places[1]))


def demonstration(report: Report) -> None:
    """PEARL's own table."""
    from accel_rl.hardware_models import pearl

    table = {
        "CPU": (0.0013, 0.03, 0.002, 0.6),
        "GPU1": (0.0006, 0.5, 0.001, 0.2),
        "GPU2": (0.0008, 0.4, 0.001, 0.3),
        "FPGA": (0.001, 0.1, 0.0015, 0.5),
    }
    rows: dict[str, pearl.PearlRow] = {}
    for name, (insert, sample, update, learn) in table.items():
        kind: Any = name.rstrip("12").lower()
        each = (insert * 1e-3, sample * 1e-3, update * 1e-3, learn * 1e-3)
        rows[name] = pearl.PearlRow(kind, pearl.TaskSeconds(*each))
    seconds = pearl.modelled_iteration_seconds(rows, "CPU", "GPU1")
    report.add("PEARL's table", "CPU, GPU1", "modelled iteration", "ms", [seconds * 1e3])
    claim = "PEARL's table: Replay Manager on CPU, Learner on GPU1, ms"
    ours, holds = report.records[-1].place, bool(np.isclose(seconds, 0.23e-3))
    report.claims.append(Claim(claim, seconds * 1e3, 0.23, holds, "==", ours=ours))


def main(arguments: Sequence[str] | None = None) -> None:
    """Return the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one case, few rounds and steps")
    parser.add_argument("--rivals", metavar="PYTHON", help="interpreter that has SB3")
    parser.add_argument(
        "--only",
        action="append",
        metavar="TEXT",
        help="of names of cases, 'synthetic steps' or 'priority lag'; may be repeated",
    )
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the report there")
    options = parser.parse_args(arguments)
    use_all_cores()
    part = ", ".join(options.only) if options.only else None
    seeds = "0 of trainings, JAX's key 7 split for seeds"
    report = Report(PACKAGES, "compose", quick=options.quick, seeds=seeds, part=part)
    console = Console(width=160)
    rival = Rival(options.rivals)
    rounds, seconds = (2, 0.3) if options.quick else (5, 1.0)

    def chosen(name: str) -> bool:
        return any(text in name for text in options.only or [""])

    cases = {name: each for name, each in all_cases().items() if chosen(name)}
    if options.quick:
        cases = dict(list(cases.items())[:1])
    demonstration(report)
    for name, each in cases.items():
        study(report, name, each, rival, rounds, seconds, console)
    if chosen("synthetic steps"):
        for scale in (1, 4):
            overlap(report, 1 if options.quick else 9, 60 if options.quick else 200 // scale, scale)
    if chosen("priority lag"):
        relaxed(report, 4 if options.quick else 24, 4_000 if options.quick else 50_000)
    for claim in ("samples per joule over SB3, measured", "performance portability"):
        report.claims.append(Claim(claim, None, 3.4 if "joule" in claim else 1.0, None))
    report.finish(options.json, console)


if __name__ == "__main__":
    main()
