"""An episode as lines of text, or as a moving picture."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from matplotlib.animation import AbstractMovieWriter, FFMpegWriter, FuncAnimation, PillowWriter
from matplotlib.artist import Artist

from accel_rl import envs, plot
from accel_rl.cli import pictures
from accel_rl.envs.registry import has_tables
from accel_rl.experiment.configuration import EnvironmentConfig
from accel_rl.train import Episode
from accel_rl.types import GridLayout


def check_format(path: Path) -> None:
    """Raise ValueError unless a file can be written in the format of its name."""
    if path.suffix not in (".gif", ".mp4"):
        raise ValueError(f"{path} must end in .gif or .mp4")
    if path.suffix == ".mp4" and not FFMpegWriter.isAvailable():
        raise ValueError(f"{path} needs ffmpeg (apt-get install ffmpeg); a .gif needs nothing")


def text(environment: EnvironmentConfig, episode: Episode) -> Iterator[str]:
    """Yield the episode's steps: maps of a grid world, images by channel numbers, or numbers."""
    layouts = _layouts(environment)
    actions = [None, *episode.actions]
    for number, seen in enumerate(_observations(episode)):
        if layouts:
            state = int(seen)
            action = None if actions[number] is None else int(actions[number])
            color = sys.stdout.isatty()
            yield envs.render_ansi(_of_state(layouts, state), state, action, color=color)
            continue
        line = f"step {number}"
        if number:
            line += f", action {_numbers(actions[number])}, reward {episode.rewards[number - 1]:g}"
        yield line if seen.ndim == 3 else f"{line}: {_numbers(seen)}"
        if seen.ndim == 3:
            yield from _image(seen)


def save(path: Path, environment: EnvironmentConfig, episode: Episode, fps: int) -> None:
    """Write the episode as GIF or MP4, whole or not at all."""
    figure = pictures.new_figure(4.8, 3.6)
    ax = figure.subplots()
    seen = _observations(episode)
    earned = np.concatenate([[0.0], np.cumsum(episode.rewards, dtype=np.float64)])
    layouts = _layouts(environment)

    def frame(number: int) -> list[Artist]:
        if layouts:
            state = int(seen[number])
            plot.draw_grid_state(ax, _of_state(layouts, state), state)
        else:
            plot.draw_observation(ax, environment.name, seen[number])
        figure.suptitle(f"step {number}, return {earned[number]:g}", fontsize="medium")
        return []

    film = FuncAnimation(figure, frame, frames=len(seen), init_func=list)
    writer: AbstractMovieWriter = (
        PillowWriter(fps=fps) if path.suffix == ".gif" else FFMpegWriter(fps=fps)
    )
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        made = Path(scratch) / path.name
        film.save(made, writer=writer, dpi=80)
        made.replace(path)


def _observations(episode: Episode) -> np.ndarray:
    if not isinstance(episode.observations, np.ndarray):
        raise ValueError("the environment's observations are no array: --json gives its return")
    return episode.observations


def _layouts(environment: EnvironmentConfig) -> list[GridLayout]:
    """Return the layouts of a grid world: Taxi's are one for each passenger and destination."""
    if not has_tables(environment.name, drawn=True):
        return []
    if not environment.name.startswith("Taxi"):
        return [envs.layout(environment.name, **environment.arguments)]
    return [
        envs.layout(environment.name, passenger=passenger, destination=destination)
        for passenger in ("R", "G", "Y", "B", "taxi")
        for destination in "RGYB"
    ]


def _of_state(layouts: list[GridLayout], state: int) -> GridLayout:
    return next((each for each in layouts if np.any(each.states == state)), layouts[0])


def _numbers(values: object) -> str:
    return " ".join(f"{value:.3g}" for value in np.ravel(np.asarray(values, np.float64)))


def _image(seen: np.ndarray) -> Iterator[str]:
    """Yield rows of an image: the number of the topmost channel in each cell, a dot for none."""
    channels = np.arange(1, seen.shape[2] + 1)
    top = np.max(np.where(seen > 0, channels, 0), axis=2)
    for row in top:
        yield "  " + "".join("." if cell == 0 else f"{cell % 36:x}"[-1] for cell in row)
