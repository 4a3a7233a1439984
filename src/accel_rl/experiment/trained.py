"""Trained agents, loaded from the folders of their trainings."""

import dataclasses
from pathlib import Path
from typing import Literal

import jax
import jax.numpy as jnp
from jax import export

from accel_rl import train
from accel_rl.arguments import one_of, whole
from accel_rl.experiment import folder
from accel_rl.experiment.assembly import Experiment, assemble
from accel_rl.types import Array, PyTree


class NoCheckpointError(FileNotFoundError):
    """Error of a training that has no checkpoint yet."""


@dataclasses.dataclass(frozen=True)
class TrainedRun:
    """Experiment of a folder, with the state of one of its checkpoints."""

    experiment: Experiment  # configuration, environments, program
    state: train.TrainState  # with a leading axis [trainings] if there are several
    checkpoint: Path
    steps: int  # of each training, when the checkpoint was saved

    def policy(self, number: int = 0) -> PyTree:
        """Return the policy of one training, which `agent.act` takes.

        Args:
          number: of the training: combination of the sweep times seeds, plus seed.
        """
        several, agent = self.experiment.key.ndim > 0, self.experiment.program.agent
        whole("number", number, 0, self.experiment.trainings - 1)
        state = self.state.agent
        if several:
            state = jax.tree.map(lambda leaf: leaf[number], state)
        return agent.policy(state)

    def record(self, key: Array, number: int = 0, max_steps: int = 1_000) -> train.Episode:
        """Play one greedy episode of a training's policy; see `train.record`."""
        agent, host = self.experiment.program.agent, self.experiment.host
        if host is not None:
            seed = int(jax.random.bits(key, (), jnp.uint32)) >> 2
            with host.open_scored(1) as env:
                return train.host_record(env, agent, self.policy(number), seed, max_steps)
        return train.record(self.experiment.env, agent, self.policy(number), key, max_steps)

    def export_policy(
        self, number: int = 0, platforms: tuple[str, ...] = ("cpu", "cuda", "rocm", "tpu")
    ) -> export.Exported:
        """Export greedy actions as StableHLO that needs JAX, and nothing of this library.

        Its function takes observations [B, *observation] for any B, and returns actions
        [B, *action]. `serialize()` gives the bytes of a file, `jax.export.deserialize(data).call`
        runs them.

        Args:
          number: of the training, as for `policy`.
          platforms: that the program is lowered for.
        """
        agent, policy = self.experiment.program.agent, self.policy(number)

        def act(observation: Array) -> PyTree:
            memory, key = agent.memory(observation.shape[0]), jax.random.key(0)
            return agent.act(policy, memory, observation, key, jnp.int32(0), explore=False)[0]

        space = agent.observation_space
        (batch,) = export.symbolic_shape("batch")
        example = jax.ShapeDtypeStruct((batch, *space.shape), space.dtype)
        return export.export(jax.jit(act), platforms=platforms)(example)


def load_run(directory: str | Path, which: Literal["last", "best"] = "last") -> TrainedRun:
    """Load a training from its folder: configuration, program and state.

    Args:
      directory: of a training, as `accel-rl train` or `Experiment.train` write it.
      which: "last", the newest checkpoint; "best", the one whose evaluation had the highest mean
        over the seeds.

    Raises:
      FileNotFoundError: if there is no such checkpoint.
    """
    one_of("which", which, ("last", "best"))
    path = Path(directory)
    experiment = assemble(folder.read(path))
    checkpoints = folder.checkpoints(path, experiment.configuration)
    found = checkpoints.newest() if which == "last" else checkpoints.highest()
    if found is None:
        raise NoCheckpointError(f"{path} has no checkpoint yet: accel-rl resume {path}")
    return TrainedRun(experiment, train.restore(experiment.program, found), found.path, found.step)
