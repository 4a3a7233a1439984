"""sweep -> plot and resume, and what each leaves behind."""

import json
import shutil

import pytest
from commands import TINY, as_json, invoke, succeed
from trainings import rows_of, scores, signal_at

from accel_rl import io
from accel_rl.cli import drawing, training_output
from accel_rl.experiment import folder
from accel_rl.experiment import sweep as sweeps
from accel_rl.experiment.sweep import SweepGroup


@pytest.mark.long  # trains with every combination of settings
def test_plot_draws_all_runs_in_one_picture(training, sweep, tmp_path):
    (path, _), (sweep, _) = training, sweep
    out = tmp_path / "pictures"
    for words in ((path, sweep), (path, sweep / "1", "--metric", "episode_return")):
        (file,) = as_json("plot", *words, "--out", out)["files"]
        with open(file, "rb") as picture:
            assert picture.read(8) == b"\x89PNG\r\n\x1a\n"
    assert {file.name for file in out.iterdir()} == {"evaluation.png", "episode_return.png"}
    assert as_json("plot", sweep)["files"] == [str(sweep / "evaluation.png")]
    for words, part in (
        ((path, sweep), "--out"),
        ((path, "--metric", "los"), "no metric 'los'"),
        ((path, "--metric", "seconds"), "no metric 'seconds' of each seed"),
        ((path, "--confidence", 2), "confidence must be above 0"),
        ((path, "--confidence", 0), "confidence must be above 0"),
        ((path, tmp_path, "--out", out), "is no agent's run"),
    ):
        refused = invoke("plot", *words)
        assert refused.exit_code == 2
        assert part in refused.stderr


@pytest.mark.long  # wants the sweep
def test_curves_are_told_apart_by_what_they_differ_in(training, sweep):
    runs = [training[0], sweep[0]]
    figure = drawing.figures(runs, "evaluation", 0.9)["evaluation.png"]
    (ax,) = figure.axes
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    same = "learning_rate 0.00025, sampler uniform"
    assert labels == [
        f"{same}, {training[0]} (2 seeds)",
        f"{same}, {sweep[0] / '1' / '0'} (2 seeds)",
        "learning_rate 0.01, sampler uniform (2 seeds)",
        "learning_rate 0.00025, sampler amper_fr (2 seeds)",
        "learning_rate 0.01, sampler amper_fr (2 seeds)",
    ]


@pytest.mark.long  # wants the sweep
def test_sweep_trains_every_combination(training, sweep):
    """Hyper-parameters at once, each as it would be trained alone; other settings in groups."""
    out, results = sweep
    found = results["combinations"]
    settings = [tuple(each["settings"].values()) for each in found]
    samplers, rates = ("uniform", "amper-fr"), (2.5e-4, 1e-2)
    assert settings == [(sampler, rate) for sampler in samplers for rate in rates]
    ranks = [(each["interquartile_mean"], each["mean"]) for each in found]
    (best,) = [each for each in found if each["best"]]
    assert (best["interquartile_mean"], best["mean"]) == max(ranks)
    assert best["settings"] == results["best"]
    assert found[0]["per_seed"] == pytest.approx(scores(training[1])[0], rel=1e-6)
    assert json.loads((out / "results.json").read_text())["combinations"] == found
    played = as_json("evaluate", out, "--episodes", 4)
    assert [tuple(each["settings"].values()) for each in played["trainings"]] == settings
    resumed = invoke("resume", out)
    assert "nothing is left to do, 400 steps are done; --steps N" in resumed.stderr
    text = resumed.stdout
    assert text.count("best") == 2
    assert f"best: replay.sampler={results['best']['replay.sampler']} agent.learning_rate=" in text


@pytest.mark.long  # wants the sweep
def test_an_unfinished_sweep_is_shown_as_it_is(sweep, tmp_path):
    """Its second group is cut back to its first checkpoint, then to nothing."""
    out = shutil.copytree(sweep[0], tmp_path / "sweep")
    assert as_json("evaluate", out)["unfinished"] == []
    inner = out / "2"
    first, *later = io.Checkpoints(inner / "checkpoints").steps()
    for step in later:
        shutil.rmtree(inner / "checkpoints" / f"{step:012d}")
    (inner / "results.json").unlink()
    result = invoke("evaluate", out, "--json")
    found = json.loads(result.stdout)
    assert [each["steps"] for each in found["trainings"]] == [400, 400, first, first]
    assert found["steps"] is found["checkpoint"] is None
    (told,) = found["unfinished"]
    assert (told["run"], told["steps"], told["of"]) == (str(inner), first, 400)
    assert f"{inner} (replay.sampler=amper-fr) has {first} of 400 steps" in result.stderr
    assert f"accel-rl resume {out}" in result.stderr
    title, _, head, *_ = succeed("evaluate", out).splitlines()
    assert title == "dqn in CartPole-v1, seeds: 2; means of 4 greedy episodes"
    assert "steps" in head
    shutil.rmtree(inner)
    with pytest.warns(UserWarning, match=f"{inner} is not drawn"):
        drawing.figures([out], "evaluation", 0.9)
    result = invoke("evaluate", out)
    assert "dqn in CartPole-v1, 400 steps, seeds: 2" in result.stdout
    assert "has 0 of 400 steps; it has no such checkpoint and is not in the table" in result.stderr


def test_what_groups_differ_in_is_not_said_of_all(tmp_path, capsys):
    figures = {"settings": {}, "mean": 1.0, "interquartile_mean": 1.0}
    common = {"agent": "dqn", "environment": "CartPole-v1", "seeds": 2, "episodes": 4}
    common |= {"training_seconds": 0.5, "trainings": [figures], "reason": "done"}
    found = [
        (SweepGroup(str(number), {"training.steps": number}, None), {**common, "steps": number})
        for number in (400, 800)
    ]
    results = sweeps.compare(tmp_path, found)
    assert results["steps"] is None
    assert results["seeds"] == 2
    assert [each["settings"] for each in results["combinations"]] == [
        {"training.steps": 400},
        {"training.steps": 800},
    ]
    results["combinations"] = [
        {**each, "lowest": 0, "highest": 2} for each in results["combinations"]
    ]
    training_output.finish_sweep(tmp_path, results, json=False)
    title = "dqn in CartPole-v1, seeds: 2; means of 4 greedy episodes"
    assert capsys.readouterr().out.startswith(title)


@pytest.mark.long  # wants the sweep
def test_a_sweep_is_one_process_s(sweep, tmp_path):
    out = shutil.copytree(sweep[0], tmp_path / "sweep")
    again = ("sweep", "dqn", "CartPole-v1", *TINY, "agent.gamma=0.9,1", "--out", out, "--overwrite")
    before = (out / "sweep.json").read_bytes()
    with folder.writing(out):
        for words, code in ((("resume", out), 1), (again, 2)):
            refused = invoke(*words)
            assert refused.exit_code == code
            assert "another process trains in" in refused.stderr
    assert (out / "sweep.json").read_bytes() == before
    assert (out / "results.json").exists()


@pytest.mark.long  # wants the sweep, and trains it again
def test_a_stopped_sweep_resumes_to_the_same_bits(sweep, tmp_path, monkeypatch):
    path, printed = sweep
    out = tmp_path / "sweep"
    words = ("agent.learning_rate=2.5e-4,1e-2", "replay.sampler=uniform,amper-fr", "--out", out)
    signal_at(monkeypatch, 200, "2")
    stopped = invoke("sweep", "dqn", "CartPole-v1", *TINY, *words)
    monkeypatch.undo()
    assert (stopped.exit_code, stopped.stdout) == (130, "")
    assert f"accel-rl resume {out}" in stopped.stderr
    assert not (out / "results.json").exists()
    first = json.loads((out / "1" / "results.json").read_text())
    assert rows_of(out / "1") == rows_of(path / "1")
    assert rows_of(out / "2") == rows_of(path / "2")[:3]
    resumed = as_json("resume", out)
    assert scores(json.loads((out / "1" / "results.json").read_text())) == scores(first)
    means = [[each["mean"] for each in found["combinations"]] for found in (resumed, printed)]
    assert means[0] == means[1]
    assert rows_of(out / "2") == rows_of(path / "2")


@pytest.mark.long  # wants the sweep
def test_curves_of_what_diverged(sweep, tmp_path):
    """Of two combinations one is never evaluated, and of the other a seed at last is not."""
    run = shutil.copytree(sweep[0] / "1", tmp_path / "run")
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    scored = [row["steps"] for row in rows if row["per_seed"]["evaluation"][2] is not None]

    def write(lost):
        for row in rows:
            of = row["per_seed"]["evaluation"]
            row["per_seed"]["evaluation"] = [
                None if number in lost(row["steps"]) else value for number, value in enumerate(of)
            ]
        (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    write(lambda step: (0, 1, 2) if step == scored[-1] else (0, 1))
    with pytest.warns(UserWarning, match=r"run with agent.learning_rate=0.00025 is not drawn"):
        (ax,) = drawing.figures([run], "evaluation", 0.9)["evaluation.png"].axes
    (line,) = ax.get_lines()
    assert line.get_xdata().tolist() == scored[:-1]
    write(lambda step: range(4))
    with pytest.raises(ValueError, match=r"for all seeds of .*=0.01; --metric episode_return"):
        drawing.figures([run], "evaluation", 0.9)


@pytest.mark.long
def test_a_combination_that_diverges_does_not_end_the_others(tmp_path):
    out = tmp_path / "sweep"
    results = as_json(
        "sweep", "dqn", "CartPole-v1", *TINY, "--out", out, "agent.hidden=[8,8,8]",
        "environment.reward_scale=1e18",
        "agent.learning_rate=1e-9,1", "agent.target_period=1", "schedule.updates=4",
    )  # fmt: skip
    sound, lost = results["combinations"]
    assert (sound["best"], lost["best"]) == (True, False)
    assert None not in sound["per_seed"]
    assert lost["mean"] is None
    assert results["reason"] == "done"
    sound, lost = as_json("evaluate", out)["trainings"]
    assert (sound["mean"] is None, lost["mean"] is None) == (False, True)
    text = succeed("resume", out)
    assert "none" in text
    assert "best: agent.learning_rate=1e-09" in text
