"""Import of Minari datasets with discrete observations and actions (the extra `minari`)."""

from typing import TYPE_CHECKING, Any

import numpy as np

from accel_rl.datasets.arrays import Log, assemble
from accel_rl.datasets.dataset import DatasetError, DatasetInfo, TabularDataset

if TYPE_CHECKING:
    from minari import MinariDataset


def from_minari(
    dataset: "MinariDataset | str", *, require_next_action: bool = True
) -> TabularDataset:
    """Import a Minari dataset with discrete observations and actions.

    Terminations are Minari's; an episode without one counts as truncated. A space that starts at k
    is shifted to start at 0. Minari stores the final observation of an episode, but no action
    there, so the next action of a truncated episode's last row is unknown.

    Args:
        dataset: a Minari dataset, or the id of one on this machine (nothing is downloaded).
        require_next_action: drop the rows whose next action is unknown; `info.dropped` counts them.
            If False, they are kept with next action 0 and counted in `info.missing_next_action`.

    Returns:
        The dataset, in Minari's order of episodes.

    Raises:
        ImportError: Minari is not installed.
        FileNotFoundError: no dataset of this id is on this machine.
        TypeError: the observation or action space is not `Discrete`.
        DatasetError: an episode does not match its spaces, has columns of unequal length or
            continues after a termination, a reward is not finite in float32, or no row is left.
    """
    try:
        import minari
        from gymnasium.spaces import Discrete
    except ImportError as error:
        raise ImportError(
            f"from_minari needs Minari ({error}): pip install 'accel-rl[minari]'"
        ) from error
    source = minari.load_dataset(dataset) if isinstance(dataset, str) else dataset
    observations: Any = source.observation_space
    actions: Any = source.action_space
    for kind, space in (("observation", observations), ("action", actions)):
        if not isinstance(space, Discrete):
            raise TypeError(f"the {kind} space must be Discrete, got {space}")
    name = source.id
    info = DatasetInfo(
        source.env_spec.id if source.env_spec is not None else "unnamed",
        int(observations.n),
        int(actions.n),
        f"unknown, imported from Minari's {name}",
    )
    try:
        parts = [
            _episode(number, episode, int(observations.start), int(actions.start))
            for number, episode in enumerate(source.iterate_episodes())
        ]
        if not parts:
            raise DatasetError("no episodes")
        log = Log(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        return assemble(log, info, require_next_action)
    except DatasetError as error:
        raise DatasetError(f"{name}: {error}") from None


def _episode(
    number: int, episode: Any, first_state: int, first_action: int
) -> tuple[np.ndarray, ...]:
    """Return the columns of one episode, in the order of `Log`."""
    states = np.asarray(episode.observations) - first_state
    actions = np.asarray(episode.actions) - first_action
    terminated = np.asarray(episode.terminations, bool)
    length = len(terminated)
    shapes = {"observations": states, "actions": actions, "rewards": np.asarray(episode.rewards)}
    for name, column in shapes.items():
        expected = (length + 1,) if name == "observations" else (length,)
        if column.shape != expected:
            raise DatasetError(
                f"episode {number}: {name} must have shape {expected}, got {column.shape}"
            )
    with np.errstate(over="ignore"):  # values beyond float32 become infinite; `validate` refuses
        reward = np.asarray(episode.rewards).astype(np.float32)
    last = np.arange(length) == length - 1
    return (
        states[:-1].astype(np.int32),
        actions.astype(np.int32),
        reward,
        states[1:].astype(np.int32),
        terminated,
        last,
    )
