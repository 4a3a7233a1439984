"""What tests of trainings and of sweeps look at, and how they stop one."""

import json
import signal

from accel_rl import io
from accel_rl.experiment import folder


def rows_of(path):
    """The rows of a run without the times, which differ."""
    rows = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    for row in rows:
        del row["seconds"]
        row.get("per_seed", {}).pop("seconds", None)
    return rows


def scores(results):
    return [each["per_seed"] for each in results["trainings"]]


def signal_at(monkeypatch, steps, folder_name="run"):
    """Ctrl-C where a row of the training in that folder says these steps."""
    loggers = folder.loggers

    class Stop(io.Console):
        def log(self, row):
            if row["steps"] == steps:
                signal.raise_signal(signal.SIGINT)

    def also_stop(directory, *words, **more):
        stops = [Stop()] if directory.name == folder_name else []
        return [*loggers(directory, *words, **more), *stops]

    monkeypatch.setattr(folder, "loggers", also_stop)
