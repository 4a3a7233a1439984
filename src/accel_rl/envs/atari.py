"""Atari games of the Arcade Learning Environment (ALE), for `host_environment`."""

from typing import Any

import numpy as np

from accel_rl.arguments import whole


def atari(game: str, *, frames: int = 4, clip_rewards: bool = False, **kwargs: Any) -> Any:
    """Make one Atari game with the preprocessing that scores are published for.

    `host_environment(atari, 8, "processes", game="Breakout")` makes a batch. An action is repeated
    for four frames, of which the last two give the maximum of each pixel, in grey levels of 84 by
    84. An episode begins after 1 to 30 frames without an action, and ends with the game, not with a
    life. The console repeats the last action with probability 0.25 in place of the one given.

    Args:
      game: of ALE, such as "Breakout" for ALE/Breakout-v5.
      frames: observations are stacks of this many pictures.
      clip_rewards: give the sign of each reward, as agents learn from; returns then count signs.
      **kwargs: of ALE's environment, such as `repeat_action_probability=0` or
        `full_action_space=True`.

    Returns:
      A Gymnasium environment. Observations are [84, 84, frames] uint8, the newest picture last.

    Raises:
      ImportError: if ale-py or OpenCV is not installed.
      ValueError: if ALE has no such game.

    Reference: Machado et al., "Revisiting the Arcade Learning Environment: Evaluation Protocols and
      Open Problems for General Agents", JAIR 61, 2018, section 5; Mnih et al., "Human-level
      control through deep reinforcement learning", Nature 518, 2015, Methods, for the pictures.
    """
    whole("frames", frames, 1)
    if "frameskip" in kwargs:
        got = kwargs["frameskip"]
        raise ValueError(f"frameskip must be left to atari, which repeats actions, got {got}")
    try:
        import ale_py
        import cv2  # noqa: F401  # else Gymnasium says so only once an episode begins
        import gymnasium
        from gymnasium import wrappers
    except ImportError as error:
        raise ImportError(
            f"Atari games need {error.name}, which is not installed: pip install 'accel-rl[atari]'"
        ) from error
    gymnasium.register_envs(ale_py)
    try:
        env: Any = gymnasium.make(f"ALE/{game}-v5", frameskip=1, **kwargs)
    except gymnasium.error.UnregisteredEnv as error:
        raise ValueError(f"game must be one of ALE's, got {game!r}: {error}") from error
    env = wrappers.FrameStackObservation(wrappers.AtariPreprocessing(env), frames)
    if clip_rewards:
        env = wrappers.TransformReward(env, lambda reward: float(np.sign(float(reward))))
    count, *side = env.observation_space.shape
    space = gymnasium.spaces.Box(0, 255, (*side, count), np.uint8)
    return wrappers.TransformObservation(env, lambda stack: np.moveaxis(stack, 0, -1), space)
