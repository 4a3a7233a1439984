"""What `accel-rl apex` runs and writes."""

import contextlib
import dataclasses
import json
import math
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from accel_rl import remote, train
from accel_rl.cli import folders, runtime
from accel_rl.io import Checkpoints, atomic_write
from accel_rl.remote.apex import ApexSettings, LocalActors, run_learner

EPISODES = 20  # of the evaluation
METRICS, RESULTS, CHECKPOINTS = "metrics.jsonl", "results.json", "checkpoints"


def settings_of(environment: str, words: Sequence[str], **given: Any) -> ApexSettings:
    """Settings from words like batch_size=128.

    Raises:
      ValueError: if a name is unknown, or a value is of the wrong type or out of range.
    """
    fields = {field.name: field.default for field in dataclasses.fields(ApexSettings)}
    own = set(fields) - {"environment", *given}
    for word in words:
        name, found, text = word.partition("=")
        if not found or name not in own:
            raise ValueError(f"settings are name=value, of {', '.join(sorted(own))}, got {word!r}")
        example: Any = fields[name]
        try:
            value = (
                tuple(int(each) for each in text.split(","))
                if isinstance(example, tuple)
                else type(example)(text)
            )
        except ValueError as error:
            raise ValueError(f"{name} must be like {example!r}, got {text!r}") from error
        given[name] = value
    return ApexSettings(environment, **given)


def execute(
    directory: Path,
    settings: ApexSettings,
    steps: int,
    *,
    server: str | None,
    secret: bytes | None,
    restarts: int,
    on_row: Callable[[Any], None],
) -> dict[str, Any]:
    """Trains, evaluates the last policy, and writes both.

    Raises:
      ValueError: if the server has had a training of that name.
      ImportError: if the server was not built.
      RuntimeError: if all actors have ended; a `RemoteError` if the server is lost.
    """
    runtime.import_gymnax()
    directory.mkdir(parents=True, exist_ok=True)  # before, not after a long training
    for stale in (METRICS, RESULTS):
        (directory / stale).unlink(missing_ok=True)
    shutil.rmtree(directory / CHECKPOINTS, ignore_errors=True)
    env, agent = settings.parts
    with contextlib.ExitStack() as stack:
        if server is None:
            server = stack.enter_context(remote.ReplayServer(secret=secret)).address
        actors = stack.enter_context(
            LocalActors(settings, server, secret=secret, restarts=restarts)
        )
        done = run_learner(settings, server, steps, secret=secret, ended=actors.gone, on_row=on_row)
        restarted = actors.restarted
    play = train.evaluator(env, agent, episodes=EPISODES)
    returns = np.asarray(play(agent.policy(done.state.agent), settings.key))
    last = done.rows[-1]
    results = {
        "settings": dataclasses.asdict(settings),
        "versions": folders.versions(),
        "steps": int(last["steps"]),
        "acted_steps": int(last["acted_steps"]),
        "updates": int(sum(row["updates"] for row in done.rows)),
        "seconds": float(last["seconds"]),
        "actor_restarts": restarted,
        "evaluation": float(returns.mean()),
        "evaluation_returns": returns.tolist(),
    }
    saved = Checkpoints(directory / CHECKPOINTS)
    with saved.writing():
        saved.save(done.state, {"settings": results["settings"]}, done.rows)
    with atomic_write(directory / METRICS, "w") as file:
        for row in done.rows:
            file.write(json.dumps({name: _plain(value) for name, value in row.items()}) + "\n")
    folders.write_json(directory / RESULTS, results)
    return results


def _plain(value: Any) -> Any:
    """For JSON, which has no NaN."""
    value = np.asarray(value).tolist()
    return None if isinstance(value, float) and not math.isfinite(value) else value
