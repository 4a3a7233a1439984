"""`accel-rl report`: the page of each kind of run, and what is refused."""

import json
import os
import pathlib
import re
import shutil

import numpy as np
import pytest
from commands import as_json, invoke, succeed
from matplotlib.figure import Figure
from report.browser import needs_chromium, opened, outline

from accel_rl import datasets
from accel_rl.io import run_folder

RESULTS = pathlib.Path(__file__).resolve().parents[2] / "benchmarks" / "results"
PARTS = {"cpu_to_pim": 0.001, "pim_kernel": 0.0625, "inter_pim": 0.002, "pim_to_cpu": 0.003}
MADE = {"versions": {"jax": "1.2.3"}, "host": {"cpu": "Some CPU", "cores": 2}}


def page(*arguments):
    """The page's outline, from the file that the command names."""
    told = as_json("report", *arguments)
    return outline(pathlib.Path(told["report"]).read_text(encoding="utf-8"))


def badges(shown, basis):
    return sum(a.get("class") == f"badge {basis}" for a in shown.all("span")) - 1


def write(path, value):
    path.write_text(json.dumps(value))


def test_the_page_of_a_log_without_environment_shows_what_was_learned(tmp_path):
    rows = {"action": [1, 0, 1], "reward": [0.0, 2.0, 5.0], "terminated": [0, 0, 1]}
    states = {"state": [0, 1, 2], "next_state": [1, 2, 3]}
    path, out = tmp_path / "own.npz", tmp_path / "own"
    datasets.save(path, datasets.from_arrays(**rows, **states))
    succeed("train", path, "--dpus", 1, "--passes", 200, "--gamma", 0.5, "--out", out)
    shown = page(out)
    assert "There is no environment to score in, and so no return." in shown.text
    assert "exact" not in shown.text
    # The one way there is: 5, 2 + 5 / 2, and half of that.
    assert "state greedy action value 0 1 2.25 1 0 4.5 2 1 5 3 0 0" in shown.text
    table = out / "table.npz"
    with np.load(table) as archive:
        content = dict(archive)
    np.savez(table, **content | {"values": np.zeros((65, 2), np.float32)})
    shown = page(out)
    assert "65 states. All values are in table.npz" in shown.text
    assert "greedy action" not in shown.text


def test_a_tables_page_tells_what_was_modelled(run, tmp_path):
    path, printed = run
    shown = page(path, "--out", tmp_path / "page.html")
    assert f"q_learning on {printed['environment']}" in shown.text
    assert f"Return per episode {printed['episode_return']:.3g} measured" in shown.text
    total = 1e3 * sum(printed["modelled_seconds"].values())
    assert f"Time on UPMEM {total:.3g} ms modelled" in shown.text
    assert len(shown.all("img")) == 3
    assert run_folder.versions()["jax"] in shown.text
    assert "settings.alpha" not in shown.text
    assert "alpha 0.1" in shown.text
    assert re.search(r"Machine cpu \S", shown.text)
    assert badges(shown, "modelled") == 6  # the sum, the picture, four parts


@pytest.mark.long  # wants a training
def test_an_agents_page_shows_curves_and_each_setting(training, tmp_path):
    path, printed = training
    shown = page(path, "--out", tmp_path / "page.html")
    mean = printed["trainings"][0]["mean"]
    assert f"Mean greedy return {mean:,.4g} measured" in shown.text
    assert "replay.sampler uniform" in shown.text
    assert "command accel-rl train dqn CartPole-v1" in shown.text
    assert len(shown.all("img")) == 3
    assert badges(shown, "modelled") == 0


@pytest.mark.long  # wants a training
def test_a_training_that_goes_on_has_a_page(training, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(training[0], path)
    (path / "results.json").unlink()
    assert "It has not ended: 400 of 400 steps" in page(path).text
    (path / "metrics.jsonl").write_text("")
    shown = page(path)
    assert "It has not ended: 0 of 400 steps" in shown.text
    assert not shown.all("img")


@pytest.mark.long  # wants a training
def test_a_sweeps_page_names_the_best(training, tmp_path):
    path = tmp_path / "sweep"
    shutil.copytree(training[0], path / "1")
    config = json.loads((path / "1" / "config.json").read_text())
    made = {"versions": MADE["versions"], "host": MADE["host"]}
    manifest = {"kind": "sweep", "schema_version": 1, "command": "x", "seeds": [0], "files": {}}
    write(path / "run.json", {**manifest, **made})
    write(
        path / "sweep.json", {"groups": [{"folder": "1", "settings": {}, "configuration": config}]}
    )
    score = {"mean": 5.0, "interquartile_mean": 4.5, "lowest": 4.0, "highest": 6.0}
    none = dict.fromkeys(score)
    combinations = [
        {"settings": {"agent.tau": 0.5}, **none, "best": False},
        {"settings": {"agent.tau": 1.0}, **score, "best": True},
    ]
    results = {"combinations": combinations, "episodes": 4, "training_seconds": 1.5, **MADE}
    results |= {"steps": None, "seeds": 2}  # of another in each group
    write(path / "results.json", results)
    shown = page(path)
    assert "Trainings of several lengths or numbers of seeds. There were 2 comb" in shown.text
    assert "Best settings agent.tau 1 Its" in shown.text
    assert "Its inter-quartile mean 4.5 measured" in shown.text
    assert shown.text.count("diverged") == 4
    assert "jax 1.2.3" in shown.text
    assert "cpu Some CPU" in shown.text


def test_the_demos_page_has_its_pictures_and_marks_columns(tmp_path):
    record = {
        "environment": "FrozenLake-v1",
        "rule": "q_learning",
        "order": "SEQ",
        "numerics": "fp32",
        "merge": "visits",
        "dpus": 2000,
        "passes": 4,
        "period": 1,
        "episode_return": 0.7361,
        "modelled_seconds": PARTS,
    }
    sarsa = {
        "policy": "random",
        "dpus": 20,
        "max_abs_error": 0.5,
        "mean_abs_error": 0.25,
        "largest_abs_value": 1.5,
    }
    environment = {"environment": "FrozenLake-v1", "optimal_return": 0.744, "sarsa": [sarsa]}
    config = {
        "quick": True,
        "seed": 0,
        "scale": {"transitions": 1000, "passes": 4, "dpus": 2000},
        "settings": {"rule": "q_learning"},
        "measured_seconds": 3.0,
        **MADE,
    }
    run_folder.begin_run(tmp_path, "demo", "accel-rl demo", [0], {})
    write(tmp_path / "config.json", config)
    write(tmp_path / "results.json", [record])
    write(tmp_path / "details.json", {"environments": [environment]})
    Figure((1, 1)).savefig(tmp_path / "strong_scaling.png")
    shown = page(tmp_path)
    assert "Q-learning and SARSA on 1 environments, 1,000 transitions, 4 passes" in shown.text
    assert "a check, not a result" in shown.text
    assert "0.736 1 62.5 2 3" in shown.text
    assert "FrozenLake-v1 0.744 random 20 0.5 0.25 1.5" in shown.text
    assert "PIM kernel, ms modelled" in shown.text
    assert badges(shown, "modelled") == 5  # four columns and the picture
    (image,) = shown.all("img")
    assert image["src"].startswith("data:image/png;base64,")
    assert image["alt"] == "Strong scaling: speed-up by number of DPUs."
    (tmp_path / "time_parts.png").write_bytes(b"nothing")
    result = invoke("report", tmp_path)
    assert result.exit_code == 2
    assert "time_parts.png is no PNG file" in result.output


APEX = {
    "environment": {"name": "CartPole-v1"},
    "agent": {"hidden": [8, 8]},
    "training": {"steps": 2_000},
}


def test_an_apex_page_draws_what_rows_hold(tmp_path):
    results = {
        "steps": 800,
        "acted_steps": 900,
        "updates": 70,
        "seconds": 4.0,
        "actor_restarts": 1,
        "evaluation": 20.5,
        "evaluation_returns": [20.0, 21.0],
        **MADE,
    }
    rows = [
        {"steps": 400, "episode_return": None, "loss": 0.5},
        {"steps": 800, "episode_return": None, "loss": 0.25},
    ]
    run_folder.begin_run(tmp_path, "apex", "accel-rl apex", [0], {})
    write(tmp_path / "config.json", APEX)
    write(tmp_path / "results.json", results)
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    shown = page(tmp_path)
    assert "Mean greedy return 20.5 measured" in shown.text
    assert "Environment steps per second 200 measured" in shown.text
    assert "agent.hidden 8, 8" in shown.text
    assert len(shown.all("img")) == 1  # of the loss; no episode ended


def test_an_apex_run_that_has_not_ended(tmp_path):
    run_folder.begin_run(tmp_path, "apex", "accel-rl apex", [0], {})
    (tmp_path / "metrics.jsonl").write_text('{"steps": 400, "loss": 0.5}\n{"steps": 8')
    assert "It has not ended: 400 steps are recorded." in page(tmp_path).text
    write(tmp_path / "config.json", APEX)
    shown = page(tmp_path)
    assert "Ape-X on CartPole-v1" in shown.text
    assert "It has not ended: 400 of 2,000 steps are recorded." in shown.text
    assert "agent.hidden 8, 8" in shown.text
    assert len(shown.all("img")) == 1
    for command in ("evaluate", "plot"):
        result = invoke(command, tmp_path)
        assert result.exit_code == 2
        assert "is a run of accel-rl apex" in " ".join(result.output.replace("│", " ").split())


def test_a_composed_page_keeps_predicted_and_measured_apart(tmp_path):
    estimate = {
        "mapping": {},
        "name": "whole on cpu:0",
        "predicted_iteration_seconds": 0.00025,
        "predicted_samples_per_second": 40_000.0,
        "modelled_samples_per_joule": None,
        "stretch": 1.25,
        "costs": "measured",
    }
    plan = {
        "objective": "throughput",
        "estimates": [estimate],
        "refused": {"actor": {"am": "no way"}},
        "slowdowns": [],
        "handoff_seconds": 1e-5,
        "bookkeeping_seconds": 1e-6,
        "stretch": {},
        "links": {},
        "group": None,
        **MADE,
    }
    run = {
        "name": "whole on cpu:0",
        "steps": 4000,
        "ended": "done",
        "simulated": False,
        "predicted_iteration_seconds": 0.00025,
        "measured_iteration_seconds": 0.0005,
        "measured_joules": [],
        "joules_unreadable": [],
        "episode_return": 16.5,
    }
    run_folder.begin_run(tmp_path, "plan", "accel-rl compose plan", (), {})
    write(tmp_path / "config.json", {"agent": {"name": "dqn", "hidden": [8]}})
    write(tmp_path / "plan.json", plan)
    shown = page(tmp_path)
    assert "Its iteration 250 us modelled" in shown.text
    assert "It was not run" in shown.text
    assert "agent.hidden 8" in shown.text
    assert "no way" in shown.text
    write(tmp_path / "measured.json", run)
    (tmp_path / "metrics.jsonl").write_text('{"steps": 4000, "loss": 0.5}\n')
    shown = page(tmp_path)
    assert "Iteration of the run 500 us measured" in shown.text
    assert "predicted iteration 250 us modelled" in shown.text
    assert len(shown.all("img")) == 1  # of the loss


def test_a_datasets_page_lies_beside_it(dataset, tmp_path):
    path = tmp_path / "lake.npz"
    shutil.copy(dataset, path)
    assert "Transitions 4,000" in page(path).text
    assert sorted(os.listdir(tmp_path)) == ["lake.html", "lake.npz"]


def test_a_benchmarks_page_lies_beside_its_file(tmp_path):
    name = "in_network-2026-11-28"
    shutil.copy(RESULTS / f"{name}.json", tmp_path)
    assert succeed("report", tmp_path / f"{name}.json").strip() == str(tmp_path / f"{name}.html")
    assert "in_network" in page(tmp_path).text  # a folder of them
    assert sorted(os.listdir(tmp_path)) == [f"{name}.html", f"{name}.json", "report.html"]


def test_what_cannot_be_shown_or_written_is_named(tmp_path, run):
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.json").write_text('{"schema": ')
    (tmp_path / "other.json").write_text('{"a": 1}')
    damaged = tmp_path / "damaged"
    shutil.copytree(run[0], damaged)
    write(damaged / "results.json", {"environment": "FrozenLake-v1"})
    unknown = tmp_path / "unknown"
    shutil.copytree(run[0], unknown)
    write(unknown / "run.json", {"kind": "other"})
    good = RESULTS / "in_network-2026-11-28.json"
    for words, told in (
        ((tmp_path / "absent",), "absent: No such file or directory"),
        ((tmp_path / "empty",), "empty is no run's folder"),
        ((tmp_path / "broken.json",), "broken.json holds no benchmark results: Expecting value"),
        ((tmp_path / "other.json",), "other.json holds no benchmark results: schema is missing"),
        ((damaged,), "damaged holds a damaged run: KeyError"),
        ((unknown,), "run.json is damaged: kind must be 'training', 'sweep'"),
        ((good, "--out", tmp_path / "no" / "x.html"), "no does not exist"),
        ((good, "--out", tmp_path / "empty"), "empty is a directory"),
        ((good, "--out", "/proc/x.html"), "/proc"),
    ):
        result = invoke("report", *words)
        assert result.exit_code == 2, (words, result.output)
        assert told in " ".join(result.output.split()), (words, result.output)
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".html", ".tmp")]


@pytest.mark.long  # starts a browser
@needs_chromium
def test_a_browser_shows_a_runs_page(run, tmp_path):
    told = as_json("report", run[0], "--out", tmp_path / "page.html")
    seen = opened(pathlib.Path(told["report"]), tmp_path)
    assert len(seen["images"]) == 3
    assert all(complete and min(size) > 50 for complete, *size in seen["images"])
    assert seen["requests"] == [name for name in seen["requests"] if name.startswith("data:")]
    assert {"q_learning on FrozenLake-v1", "Results", "Configuration", "Versions"} <= set(
        seen["headings"]
    )
