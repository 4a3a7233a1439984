import contextlib
import csv
import errno
import importlib
import json
import math
import os
import re
import sys
import types

import pytest

from accel_rl import io
from accel_rl.io import files

NAN = float("nan")


def row(step, **values):
    return {
        "steps": step,
        "episode_return": step / 3,
        "evaluation": NAN,
        **values,
        "per_seed": {"episode_return": [step / 3, NAN]},
    }


@contextlib.contextmanager
def begun(logger, rows=None):
    logger.begin(rows)
    try:
        yield logger
    finally:
        logger.close()


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def read_table(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_json_lines_hold_every_number_exactly(tmp_path):
    path = tmp_path / "deep" / "log.jsonl"
    with begun(io.JsonLines(path)) as log:
        log.log(row(10))
        assert read_lines(path)[0]["steps"] == 10  # at once, for who watches
        log.log(row(20, loss=float("inf")))
    first, second = read_lines(path)
    assert first == {
        "steps": 10,
        "episode_return": 10 / 3,
        "evaluation": None,
        "per_seed": {"episode_return": [10 / 3, None]},
    }
    assert second["loss"] is None
    assert "NaN" not in path.read_text()


def test_tables_hold_the_numbers_alone(tmp_path):
    path = tmp_path / "log.csv"
    with begun(io.Csv(path)) as log:
        log.log(row(10))
        log.log(row(20, evaluation=7.5))
    assert read_table(path) == [
        {"steps": "10", "episode_return": repr(10 / 3), "evaluation": ""},
        {"steps": "20", "episode_return": repr(20 / 3), "evaluation": "7.5"},
    ]
    with begun(io.Csv(path), [row(10)]) as log, pytest.raises(ValueError, match="'loss'"):
        log.log(row(20, loss=1.0))


KINDS = {"jsonl": io.JsonLines, "csv": io.Csv}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", ["", '{"steps": 4', "\n\n"])
def test_what_came_after_the_checkpoint_is_cut(tmp_path, kind, end):
    path, whole = tmp_path / "log", tmp_path / "whole"
    with begun(KINDS[kind](whole)) as log:
        for step in (10, 20, 30):
            log.log(row(step))
    path.write_bytes(whole.read_bytes() + end.encode())
    with begun(KINDS[kind](path), [row(10), row(20)]) as log:
        log.log(row(30))
    assert path.read_bytes() == whole.read_bytes()
    path.unlink()  # nothing is left of it, or a power cut took it
    with begun(KINDS[kind](path), [row(10), row(20)]) as log:
        log.log(row(30))
    assert path.read_bytes() == whole.read_bytes()
    with begun(KINDS[kind](path), []) as log:  # killed before the first checkpoint
        for step in (10, 20, 30):
            log.log(row(step))
    assert path.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_training_overwrites_no_log(tmp_path, kind):
    path = tmp_path / "log"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match=re.escape(str(path))):
        KINDS[kind](path).begin(None)
    assert path.read_text() == "mine"
    path.write_text("")
    with begun(KINDS[kind](path)):
        pass


def test_lines_wait_for_a_full_disk(tmp_path, monkeypatch):
    path = tmp_path / "log.jsonl"
    write = os.write

    def half(file, data):
        return write(file, data[: len(data) // 2])

    def none(file, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with begun(io.JsonLines(path)) as log:
        log.log(row(10))
        with monkeypatch.context() as patch:
            patch.setattr(files.os, "write", half)
            with pytest.warns(UserWarning, match=r"log\.jsonl: .*No space left.*rows wait"):
                log.log(row(20))
            assert [each["steps"] for each in read_lines(path)] == [10]
            patch.setattr(files.os, "write", none)
            log.log(row(30))  # said once
            assert [each["steps"] for each in read_lines(path)] == [10]
        log.log(row(40))
        assert [each["steps"] for each in read_lines(path)] == [10, 20, 30, 40]
        monkeypatch.setattr(files.os, "write", none)
        with pytest.warns(UserWarning, match="No space left"):
            log.log(row(50))
        monkeypatch.undo()
    assert [each["steps"] for each in read_lines(path)] == [10, 20, 30, 40, 50]


def test_lines_that_are_lost_are_told_of(tmp_path, monkeypatch):
    log = io.JsonLines(tmp_path / "log.jsonl")
    log.begin(None)

    def none(file, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.os, "write", none)
    with pytest.warns(UserWarning, match="No space left"):
        log.log(row(10))
    with pytest.warns(UserWarning, match="the last 1 rows could not be written"):
        log.close()


def test_closed_is_closed(tmp_path):
    log = io.JsonLines(tmp_path / "log.jsonl")
    log.close()
    with pytest.raises(AssertionError, match="not open"):
        log.log(row(1))
    with begun(log):
        log.log(row(1))
    log.close()
    with pytest.raises(AssertionError, match="not open"):
        log.log(row(2))


def test_console_says_what_is_finite(capsys):
    with begun(io.Console()) as log:
        log.log(row(10, loss=0.12345678))
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "        10  episode_return 3.333  loss 0.1235\n"


@pytest.mark.parametrize("rows", [None, [], [row(50)]])
def test_bar_moves_from_where_the_training_stands(capsys, rows):
    bar = io.ProgressBar(100)
    with begun(bar, rows) as log:
        assert log._progress.tasks[0].completed == (rows[-1]["steps"] if rows else 0)
        log.log(row(75))
        assert log._progress.tasks[0].percentage == 75
        log.log(row(100, evaluation=9.0))
    out, err = capsys.readouterr()
    assert out == ""
    assert "100%" in err
    assert "evaluation 9" in err


def test_a_bar_that_was_never_begun_can_be_closed():
    io.ProgressBar(100).close()


def events(folder):
    """Steps and values by name from all event files, those purged by a later one left out."""
    from tensorboardX.proto.event_pb2 import Event, SessionLog
    from tensorboardX.record_writer import masked_crc32c

    found = {}
    for path in sorted(folder.glob("events.out.tfevents.*"), key=lambda p: p.stat().st_mtime_ns):
        data = path.read_bytes()
        while data:
            length = int.from_bytes(data[:8], "little")
            assert int.from_bytes(data[8:12], "little") == masked_crc32c(data[:8])
            event = Event.FromString(data[12 : 12 + length])
            data = data[16 + length :]
            if event.session_log.status == SessionLog.START:
                for values in found.values():
                    for step in [step for step in values if step >= event.step]:
                        del values[step]
            for value in event.summary.value:
                found.setdefault(value.tag, {})[event.step] = value.simple_value
    return found


def test_tensorboard_reads_what_was_logged(tmp_path):
    with begun(io.TensorBoard(tmp_path)) as log:
        for step in (10, 20, 30):
            log.log(row(step, loss=float(step)))
    assert events(tmp_path)["loss"] == {10: 10, 20: 20, 30: 30}
    assert events(tmp_path)["episode_return"] == pytest.approx({10: 10 / 3, 20: 20 / 3, 30: 10})
    assert "evaluation" not in events(tmp_path)  # NaN throughout
    with pytest.raises(FileExistsError, match="log of another training"):
        io.TensorBoard(tmp_path).begin(None)
    with begun(io.TensorBoard(tmp_path), [row(10)]) as log:
        log.log(row(20, loss=-1.0))
    assert events(tmp_path)["loss"] == {10: 10, 20: -1}


class FakeRun:
    def __init__(self, step):
        self.step, self.logged, self.finished = step, [], False

    def log(self, values, step):
        assert step >= self.step  # as wandb wants it
        assert all(math.isfinite(value) for value in values.values())
        self.step = step
        self.logged.append((step, values))

    def finish(self):
        self.finished = True


@pytest.fixture
def wandb(monkeypatch):
    """A module that takes what the real one takes."""
    fake = types.ModuleType("wandb")
    fake.steps, fake.runs = 0, []

    def init(*, resume=None, id=None, project=None, name=None, dir=None, config=None):
        fake.runs.append(FakeRun(fake.steps))
        fake.runs[-1].about = {"name": name, "dir": dir, "config": config}
        fake.runs[-1].given = {"resume": resume, "id": id, "project": project}
        return fake.runs[-1]

    fake.init = init
    monkeypatch.setitem(sys.modules, "wandb", fake)
    return fake


def test_weights_and_biases_gets_each_row_once(wandb):
    with begun(io.WeightsAndBiases(project="p", id="x")) as log:
        for step in (10, 20, 30):
            log.log(row(step))
    (run,) = wandb.runs
    assert run.given == {"resume": "never", "id": "x", "project": "p"}
    assert run.logged == [(step, {"episode_return": step / 3}) for step in (10, 20, 30)]
    assert run.finished
    wandb.steps = 31  # what a run that ended at 30 says
    with begun(io.WeightsAndBiases(project="p", id="x"), [row(10)]) as log:
        for step in (20, 30, 40):
            log.log(row(step))
    assert wandb.runs[1].given["resume"] == "allow"
    assert [step for step, _ in wandb.runs[1].logged] == [40]
    with pytest.raises(ValueError, match="id must be given"):
        io.WeightsAndBiases(project="p").begin([])


def test_a_folder_keeps_the_id_of_a_weights_and_biases_run(wandb, tmp_path):
    for rows in (None, [row(10)], None):
        with begun(io.WeightsAndBiases(tmp_path / "wandb", project="p"), rows):
            pass
    first, resumed, new = (run.given["id"] for run in wandb.runs)
    assert first == resumed != new
    assert len(first) == 32


@pytest.mark.parametrize(
    ("module", "extra", "make"),
    [
        ("tensorboardX", "tensorboard", lambda: io.TensorBoard("x")),
        ("wandb", "wandb", io.WeightsAndBiases),
    ],
)
def test_what_is_not_installed_is_asked_for(monkeypatch, module, extra, make):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModuleNotFoundError, match=rf"pip install 'accel-rl\[{extra}\]'"):
        make()


def test_extras_are_those_of_the_package():
    declared = importlib.metadata.metadata("accel-rl").get_all("Provides-Extra")
    assert {"tensorboard", "wandb"} <= set(declared)
