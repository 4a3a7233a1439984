"""Training in segments, which change nothing."""

import numpy as np
import pytest
from commands import as_json, invoke
from hypothesis import given
from hypothesis import strategies as st
from sdk_present import needs

from accel_rl import datasets, envs, tabular
from accel_rl.experiment import tabular_run


@given(st.integers(1, 3000), st.integers(1, 60))
def test_segments_are_whole_periods_and_nearly_equal(passes, period):
    lengths = tabular_run.segments(passes, period)
    assert sum(lengths) == passes
    assert all(length > 0 for length in lengths)
    assert len(set(lengths[:-1])) <= 1
    assert all(length % period == 0 for length in lengths[:-1])
    assert len(lengths) <= 21
    merges = []
    for start, length in zip(np.cumsum([0, *lengths]), lengths, strict=False):
        merges += list(start + tabular_run.merge_passes(length, period))
    assert merges == list(tabular_run.merge_passes(passes, period))


def test_common_lengths_compile_once():
    for passes, period in ((100, 1), (2000, 50), (50, 10)):
        assert len(set(tabular_run.segments(passes, period))) == 1


@pytest.mark.long  # compiles three trainings
def test_segments_change_nothing():
    """Bit for bit, with a last segment that is shorter and a last period that is cut."""
    settings = tabular_run.TabularSettings(
        rule="sarsa_epsilon_greedy",
        numerics="int32_scaled",
        dpus=8,
        passes=23,
        period=4,
        seed=5,
    )
    mdp = envs.make_mdp("FrozenLake-v1")
    chunks = tabular_run.chunks_of(datasets.collect(mdp, "random", 4000, seed=3), 8)
    probe, told = tabular_run.return_probe(mdp, 100), []
    cut = tabular_run.train(chunks, settings, probe, told.append)
    whole = tabular_run.train(chunks, settings, probe, segmented=False)
    assert told == [4, 4, 4, 4, 4, 3]
    np.testing.assert_array_equal(cut.tables, whole.tables)
    np.testing.assert_array_equal(cut.returns, whole.returns)
    np.testing.assert_array_equal(cut.passes, [4, 8, 12, 16, 20, 23])
    assert cut.effective == whole.effective


def test_cliff_walking_has_a_horizon_of_its_own():
    assert tabular_run.horizon_of(envs.make_mdp("CliffWalking-v1")) == tabular_run.LONGEST_EPISODE
    assert tabular_run.horizon_of(envs.make_mdp("Taxi-v3")) == 200
    assert (
        tabular.optimal_return(envs.make_mdp("CliffWalking-v1"), tabular_run.LONGEST_EPISODE) == -13
    )


def test_a_partition_by_owner(tmp_path):
    log = tmp_path / "log.npz"
    datasets.save(log, datasets.collect(envs.make_mdp("FrozenLake-v1"), "random", 2_000, seed=3))
    words = ("train", log, "--dpus", 8, "--passes", 2, "--env", "FrozenLake-v1", "--by", "owner")
    found = as_json(*words, "--out", tmp_path / "owner")
    assert found["by"] == "owner"
    rotated = as_json(*words, "--order", "RAN", "--out", tmp_path / "rotated")
    assert (rotated["by"], rotated["order"]) == ("owner", "RAN")
    other = invoke(*words, "--order", "STR", "--out", tmp_path / "other")
    assert other.exit_code == 2
    assert "order must be SEQ or RAN by owner" in " ".join(other.output.split())


def test_groups_take_turns_to_the_same_result(tmp_path):
    log = tmp_path / "log.npz"
    datasets.save(log, datasets.collect(envs.make_mdp("FrozenLake-v1"), "random", 2_001, seed=3))
    words = ("train", log, "--dpus", 8, "--passes", 2, "--numerics", "int32_scaled")
    found, expected = (
        as_json(*words, *more, "--out", tmp_path / folder)
        for folder, more in (("groups", ("--group-size", 3)), ("all", ()))
    )
    for same in ("episode_return", "modelled_seconds"):
        assert found[same] == expected[same]
    folders = tmp_path / "groups", tmp_path / "all"
    np.testing.assert_array_equal(*(np.load(each / "table.npz")["tables"] for each in folders))
    assert len({(each / "history.json").read_text() for each in folders}) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--by", "owner"), "take turns only by time, got by owner"),
        (("--backend", "upmem"), "got backend upmem"),
        (("--order", "RAN"), "take turns only in order SEQ or STR"),
        (("--rule", "double_q_learning"), "take turns only in order SEQ or STR"),
    ],
)
def test_groups_that_cannot_take_turns_are_refused_before_the_log_is_read(words, message):
    refused = invoke("train", "absent.npz", *words, "--group-size", 3)
    assert refused.exit_code == 2
    assert refused.stderr.startswith("accel-rl: Invalid value for --group-size: groups of DPUs")
    assert message in refused.stderr


def test_a_training_that_fails_leaves_the_older_run(tmp_path):
    words = ("train", "FrozenLake-v1", "--num", 100, "--dpus", 4, "--passes", 1, "--out", tmp_path)
    as_json(*words)
    older = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    refused = invoke(*words, "--overwrite", "--alpha", 2)
    assert refused.exit_code == 2
    assert "alpha must be in [0, 1]" in refused.stderr
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == older


@pytest.mark.long  # builds programs of DPUs
@needs("gcc", "g++")
def test_training_on_dpus_is_modelled_from_their_counters(tmp_path):
    log = tmp_path / "log.npz"
    datasets.save(log, datasets.collect(envs.make_mdp("Taxi-v3"), "random", 2_000, seed=3))
    words = (
        "train",
        log,
        "--dpus",
        8,
        "--passes",
        4,
        "--numerics",
        "int32_pow2",
        "--env",
        "Taxi-v3",
    )
    found = {
        backend: as_json(*words, "--backend", backend, "--out", tmp_path / backend)
        for backend in ("cpu", "upmem")
    }
    assert found["upmem"]["modelled_from"] == "counters of the DPUs"
    assert found["cpu"]["modelled_from"] == "cost model"
    assert found["upmem"]["episode_return"] == found["cpu"]["episode_return"]
    kernel = {name: each["modelled_seconds"]["pim_kernel"] for name, each in found.items()}
    assert 0.5 < kernel["cpu"] / kernel["upmem"] < 2
