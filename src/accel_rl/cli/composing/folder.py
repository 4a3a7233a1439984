"""Folder of a plan: configuration, mapping, estimates and measurements."""

from collections.abc import Sequence
from pathlib import Path

from accel_rl import experiment
from accel_rl.cli import runtime
from accel_rl.compose import Mapping
from accel_rl.compose import mapping as mappings
from accel_rl.experiment import Experiment
from accel_rl.io import run_folder

MAPPING, PLAN, RUN = "mapping.toml", "plan.json", "measured.json"
METRICS = run_folder.METRICS
FILES = {
    run_folder.CONFIG: "the configuration that was planned",
    MAPPING: "device of each role; may be edited before compose run",
    PLAN: "estimates of each mapping, and the predicted timeline",
    RUN: "measurements of the last run; written last",
    METRICS: "metrics of the last run",
}
MEASURED = "timeline_measured.png"


def load(path: Path, words: Sequence[str] = ()) -> Experiment:
    """Load the experiment of a configuration file; words like compose.weight=0.5 override it."""
    runtime.import_gymnax()
    return experiment.load(path, words=words, command="compose")


def read_mapping(directory: Path) -> tuple[Experiment, Mapping]:
    """Read a folder's experiment and mapping."""
    planned = load(directory / run_folder.CONFIG)
    return planned, mappings.from_table(mappings.read_toml(directory / MAPPING))
