"""play, export and plot: an episode, a policy that runs without this library, pictures."""

import json
import subprocess
import sys

import jax
import numpy as np
import pytest
from commands import as_json, invoke, succeed
from PIL import Image

from accel_rl import envs, experiment
from accel_rl.cli import episode_output
from accel_rl.experiment.configuration import EnvironmentConfig
from accel_rl.train import Episode


def test_an_episode_as_text(training):
    path, _ = training
    figures = as_json("play", path, "--seed", 5, "--training", 1)
    lines = succeed("play", path, "--seed", 5, "--training", 1).splitlines()
    assert len(lines) == figures["steps"] + 2  # the first observation, and a summary
    assert lines[0].startswith("step 0: ")
    assert lines[1].startswith("step 1, action ")
    assert lines[-1].startswith(f"CartPole-v1: return {figures['episode_return']:g} in ")
    assert figures["episode_return"] == figures["steps"]  # CartPole pays 1 a step


def test_an_episode_as_gif(training, tmp_path):
    path, _ = training
    out = tmp_path / "cartpole.gif"
    succeed("play", path, "--out", out, "--max-steps", 3, "--fps", 20)
    with Image.open(out) as film:
        assert (film.n_frames, film.info["duration"]) == (4, 50)
        first = np.asarray(film.convert("RGB"))
    assert len(np.unique(first.reshape(-1, 3), axis=0)) > 10  # it is not a blank picture
    assert [file.name for file in tmp_path.iterdir()] == ["cartpole.gif"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--out", "x.avi"), "x.avi must end in .gif or .mp4"),
        (("--out", "absent/x.gif"), "directory absent does not exist"),
        (("--training", "2"), "number must be from 0 to 1, got 2"),
        (("--checkpoint", "worst"), "'worst' is not one of 'last', 'best'"),
    ],
)
def test_refuses(training, words, says):
    refused = invoke("play", training[0], *words)
    assert refused.exit_code == 2
    assert says in refused.stderr


def test_an_exported_policy_acts_without_the_library(training, tmp_path):
    path, _ = training
    out = tmp_path / "policy.stablehlo"
    figures = as_json("export", path, "--out", out, "--training", 1)
    assert figures["observations"] == "float32[batch,4]"
    observations = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    script = (
        "import sys, json, jax, numpy as np\n"
        "act = jax.export.deserialize(bytearray(open(sys.argv[1], 'rb').read())).call\n"
        "print(json.dumps(np.asarray(act(np.float32(json.loads(sys.argv[2])))).tolist()))\n"
        "assert 'accel_rl' not in sys.modules\n"
    )
    words = [sys.executable, "-c", script, str(out), json.dumps(observations.tolist())]
    found = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    run = experiment.load_run(path)
    agent = run.experiment.program.agent
    want, _ = agent.act(run.policy(1), (), observations, jax.random.key(9), 0, explore=False)
    assert found == want.tolist()
    again = invoke("export", path, "--out", out)
    assert again.exit_code == 2
    assert "exists; --overwrite replaces it" in again.stderr


@pytest.mark.parametrize(("kind", "magic"), [("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_plot_writes_other_formats(training, tmp_path, kind, magic):
    words = ("--out", tmp_path, "--format", kind, "--per-seed", "--title", "Two seeds")
    (file,) = as_json("plot", training[0], *words)["files"]
    assert file == str(tmp_path / f"evaluation.{kind}")
    with open(file, "rb") as picture:
        content = picture.read()
    assert content.startswith(magic)


def test_grid_worlds_are_maps_and_images_are_channels():
    lake = EnvironmentConfig(name="FrozenLake-v1", arguments={"map_name": "8x8"})
    steps = Episode(np.array([0, 1]), np.array([2]), np.array([0.0]), False)
    first, second = episode_output.text(lake, steps)
    layout = envs.layout("FrozenLake-v1", map_name="8x8")
    assert first == envs.render_ansi(layout, 0, color=False)
    assert second == envs.render_ansi(layout, 1, 2, color=False)
    taxi = EnvironmentConfig(name="Taxi-v3")
    shown = "".join(episode_output.text(taxi, Episode(np.array([479, 499]), [0], [0.0], False)))
    assert "passenger in the taxi, destination B" in shown
    image = np.zeros((2, 3, 4), bool)
    image[0, 1, 3] = image[1, 2, 0] = True
    lines = episode_output.text(
        EnvironmentConfig(name="Breakout-MinAtar"), Episode(image[None], [], [], False)
    )
    assert list(lines) == ["step 0", "  .4.", "  ..1"]


def test_a_run_without_a_checkpoint_says_so(training, tmp_path):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(training[0], copy, ignore=shutil.ignore_patterns("0*"))
    with pytest.raises(FileNotFoundError, match="has no checkpoint yet: accel-rl resume"):
        experiment.load_run(copy)
    refused = invoke("play", copy)
    assert refused.exit_code == 2
    assert "has no checkpoint yet" in refused.stderr
