"""PEARL's model against its own demonstration table and against sums made by hand."""

import itertools
import math

import numpy as np
import pytest

from accel_rl.hardware_models.pearl import (
    PearlLink,
    PearlRow,
    PearlWorkload,
    TaskSeconds,
    modelled_iteration_seconds,
    modelled_traffic_seconds,
    pearl_mapping,
)

# The artifact's SysConfig/PT.csv, ms: insert, sample, update, learn; then the co-located ones.
DEMONSTRATION = {
    "CPU": ("cpu", (0.0013, 0.03, 0.002, 0.6), (0.0001, 0.3, 0.002, 0.6)),
    "GPU1": ("gpu", (0.0006, 0.5, 0.001, 0.2), (0.0006, 0.6, 0.002, 0.6)),
    "GPU2": ("gpu", (0.0008, 0.4, 0.001, 0.3), (0.0012, 0.53, 0.001, 0.53)),
    "FPGA": ("fpga", (0.00102, 0.1, 0.0015, 0.5), (0.0013, 0.2, 0.0015, 0.5)),
}
# The artifact's SysConfig/BW.csv: ms and GB per ms.
LINKS = {
    ("CPU", "CPU"): (0.002, 0.032),
    ("CPU", "GPU1"): (1, 0.016),
    ("CPU", "GPU2"): (1, 0.008),
    ("CPU", "FPGA"): (1, 0.016),
    ("GPU1", "GPU1"): (0.0002, 0.61),
    ("GPU2", "GPU2"): (0.0002, 0.32),
    ("FPGA", "FPGA"): (1.6e-7, 0.064),
}
CARTPOLE = PearlWorkload(train_batch=512, insert_batch=256, state_size=4, action_size=2)


def milliseconds(values):
    return TaskSeconds(*(value * 1e-3 for value in values))


def demonstration(stated):
    return {
        device: PearlRow(kind, milliseconds(alone), milliseconds(together) if stated else None)
        for device, (kind, alone, together) in DEMONSTRATION.items()
    }


@pytest.fixture
def links():
    return {pair: PearlLink(ms * 1e-3, gb_per_ms * 1e12) for pair, (ms, gb_per_ms) in LINKS.items()}


@pytest.mark.parametrize("stated", [True, False], ids=["stated", "by_rule"])
def test_the_demonstration_table_gives_what_the_artifact_prints(stated, links):
    found = pearl_mapping(demonstration(stated), links, CARTPOLE)
    assert (found.replay_manager, found.learner, found.data_storage) == ("CPU", "GPU1", "CPU")
    assert found.modelled_iteration_seconds == pytest.approx(0.23e-3, rel=1e-12)
    # The artifact's README shows 2226 "samples/sec" for 512 / 0.23 ms: those of a millisecond.
    assert found.modelled_samples_per_second == pytest.approx(2226.086956e3, rel=1e-9)


def test_every_pair_of_the_demonstration_table_as_worked_out_by_hand():
    table = demonstration(stated=True)
    expected = {  # ms: sample + max(update + insert, learn)
        ("CPU", "CPU"): 0.3 + 0.6,
        ("CPU", "GPU1"): 0.03 + 0.2,
        ("CPU", "GPU2"): 0.03 + 0.3,
        ("CPU", "FPGA"): 0.03 + 0.5,
        ("GPU1", "CPU"): 0.5 + 0.6,
        ("GPU1", "GPU1"): 0.6 + 0.6,
        ("GPU1", "GPU2"): 0.5 + 0.3,
        ("GPU1", "FPGA"): 0.5 + 0.5,
        ("GPU2", "CPU"): 0.4 + 0.6,
        ("GPU2", "GPU1"): 0.4 + 0.2,
        ("GPU2", "GPU2"): 0.53 + 0.53,
        ("GPU2", "FPGA"): 0.4 + 0.5,
        ("FPGA", "CPU"): 0.1 + 0.6,
        ("FPGA", "GPU1"): 0.1 + 0.2,
        ("FPGA", "GPU2"): 0.1 + 0.3,
        ("FPGA", "FPGA"): 0.2 + 0.5,
    }
    for pair, ms in expected.items():
        assert modelled_iteration_seconds(table, *pair) == pytest.approx(ms * 1e-3, rel=1e-12)


def test_memory_work_longer_than_learning_is_what_counts():
    times = TaskSeconds(insert=2.0, sample=1.0, update=3.0, learn=4.0)
    table = {"a": PearlRow("cpu", times), "b": PearlRow("cpu", times)}
    assert modelled_iteration_seconds(table, "a", "b") == 1 + max(3 + 2, 4)


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_a_serial_device_pays_for_learning_in_every_task(kind):
    row = PearlRow(kind, TaskSeconds(insert=2.0, sample=1.0, update=3.0, learn=4.0))
    assert row.co_located == TaskSeconds(insert=6.0, sample=5.0, update=7.0, learn=8.0)
    assert modelled_iteration_seconds({"d": row}, "d", "d") == 5 + 7 + 6


def test_an_fpga_pays_nothing_for_sharing():
    times = TaskSeconds(insert=2.0, sample=1.0, update=3.0, learn=4.0)
    assert PearlRow("fpga", times).co_located == times


def test_the_two_readings_of_the_rule_agree_on_every_iteration_time():
    for insert, sample, update, learn in np.random.default_rng(0).exponential(size=(200, 4)):
        by_rule = PearlRow("cpu", TaskSeconds(insert, sample, update, learn))
        other = TaskSeconds(insert + learn, sample + learn, update + learn, learn)
        times = [
            modelled_iteration_seconds({"d": row}, "d", "d")
            for row in (by_rule, PearlRow("cpu", by_rule.alone, other))
        ]
        assert times[0] == times[1]


def test_bytes_of_cartpole():
    assert CARTPOLE.learner_bytes == 512 * (2 * 4 + 2 + 3) * 4 == 26_624
    assert CARTPOLE.actors_bytes == 256 * (2 * 4 + 2 + 2) * 4 == 12_288
    assert CARTPOLE.replay_manager_bytes == 512 * 4 == 2_048


def test_traffic_of_the_demonstration_as_worked_out_by_hand(links):
    found = pearl_mapping(demonstration(stated=True), links, CARTPOLE)
    learner, actors, manager = 26_624, 12_288, 2_048
    near, far, far2 = 32e9, 16e9, 8e9  # bytes per second within the CPU, to GPU1 or FPGA, to GPU2
    expected = {
        "CPU": (1e-3 + learner / far) + (2e-6 + actors / near) + (2e-6 + manager / near),
        "GPU1": (2e-7 + learner / 610e9) + (1e-3 + actors / far) + (1e-3 + manager / far),
        "GPU2": (1e-3 + learner / far2)
        + (1e-3 + learner / far)
        + (1e-3 + actors / far2)
        + (1e-3 + manager / far2),
        "FPGA": (1e-3 + learner / far)
        + (1e-3 + learner / far)
        + (1e-3 + actors / far)
        + (1e-3 + manager / far),
    }
    assert found.modelled_traffic_seconds == pytest.approx(expected, rel=1e-12)


def test_with_the_slip_of_units_traffic_is_what_the_artifact_prints(links):
    printed = {  # ms, in its README
        "CPU": 16001.006048000001,
        "GPU1": 32002.0010116459,
        "GPU2": 64004.006528,
        "FPGA": 32004.004096,
    }
    parts = [
        ("GPU1", CARTPOLE.learner_bytes),
        ("CPU", CARTPOLE.actors_bytes),
        ("CPU", CARTPOLE.train_batch * 1e9),  # the slip: words, taken for GB
    ]
    for device, ms in printed.items():
        found = sum(modelled_traffic_seconds(links, device, *part, "CPU") for part in parts)
        assert found == pytest.approx(ms * 1e-3, rel=1e-12)


def test_two_accelerators_pay_both_hops_and_all_else_pays_one(links):
    def seconds(storage, other, amount=16e9):
        return modelled_traffic_seconds(links, storage, other, amount, "CPU")

    assert seconds("GPU1", "GPU2") == pytest.approx((1e-3 + 1) + (1e-3 + 2))
    assert seconds("GPU2", "GPU1") == pytest.approx(seconds("GPU1", "GPU2"))
    assert seconds("GPU1", "CPU") == seconds("CPU", "GPU1") == pytest.approx(1e-3 + 1)
    assert seconds("GPU1", "GPU1") == pytest.approx(2e-7 + 16 / 610)


def test_storage_moves_to_the_learner_when_its_traffic_outweighs_the_rest():
    links = {("CPU", "CPU"): PearlLink(0, 100e9), ("CPU", "GPU"): PearlLink(0, 1e9)}
    links["GPU", "GPU"] = PearlLink(0, 100e9)
    slow, fast = TaskSeconds(1, 1, 1, 9), TaskSeconds(1, 5, 1, 1)
    table = {"CPU": PearlRow("cpu", slow), "GPU": PearlRow("gpu", fast)}

    def storage(insert_batch):
        found = pearl_mapping(table, links, PearlWorkload(512, insert_batch, 4, 2))
        assert (found.replay_manager, found.learner) == ("CPU", "GPU")
        return found.data_storage

    # The slow link carries 26,624 bytes if the CPU stores, 48 per insertion and 2,048 if the GPU
    # does: equal at 512 insertions.
    assert storage(511) == "GPU"
    assert storage(513) == "CPU"


def test_of_equals_the_first_in_the_table_wins(links):
    same = TaskSeconds(1.0, 1.0, 1.0, 1.0)
    for names in itertools.permutations(["CPU", "GPU1", "FPGA"]):
        table = {name: PearlRow("fpga", same) for name in names}
        found = pearl_mapping(table, links, CARTPOLE)
        assert (found.replay_manager, found.learner) == (names[0], names[0])


def test_random_tables_agree_with_a_second_formulation_in_numpy(links):
    rng = np.random.default_rng(1)
    names = ["CPU", "GPU1", "GPU2", "FPGA"]
    for _ in range(100):
        insert, sample, update, learn = rng.integers(1, 4, size=(4, 4)).astype(float)
        kinds = rng.choice(["cpu", "gpu", "fpga"], size=4)
        table = {
            name: PearlRow(kinds[i], TaskSeconds(insert[i], sample[i], update[i], learn[i]))
            for i, name in enumerate(names)
        }
        times = sample[:, None] + np.maximum((update + insert)[:, None], learn[None])
        shared = np.where(kinds == "fpga", 0.0, learn)
        np.fill_diagonal(
            times, sample + shared + np.maximum(update + insert + 2 * shared, learn + shared)
        )
        found = pearl_mapping(table, links, CARTPOLE)
        row, column = np.unravel_index(np.argmin(times), times.shape)
        assert found.modelled_iteration_seconds == times.min()
        assert (found.replay_manager, found.learner) == (names[row], names[column])


def test_what_is_wrong_is_named(links):
    times = TaskSeconds(1.0, 1.0, 1.0, 1.0)
    table = {"CPU": PearlRow("cpu", times), "TPU": PearlRow("gpu", TaskSeconds(1.0, 1.0, 1.0, 0.1))}
    with pytest.raises(ValueError, match="learn must be finite and at least 0, got -1"):
        TaskSeconds(1.0, 1.0, 1.0, -1.0)
    with pytest.raises(ValueError, match="kind must be one of"):
        PearlRow("tpu", times)
    with pytest.raises(ValueError, match="latency must be"):
        PearlLink(math.inf, 1.0)
    with pytest.raises(ValueError, match="bandwidth must be above 0"):
        PearlLink(0.0, 0.0)
    with pytest.raises(ValueError, match="state_size must be at least 1, got 0"):
        PearlWorkload(1, 1, 0, 1)
    with pytest.raises(ValueError, match="host must be one of"):
        pearl_mapping(table, links, CARTPOLE, host="host")
    with pytest.raises(KeyError, match="'TPU', 'CPU'"):
        pearl_mapping(table, links, CARTPOLE)


def test_an_iteration_of_no_time_has_no_finite_throughput():
    table = {"CPU": PearlRow("cpu", TaskSeconds(0.0, 0.0, 0.0, 0.0))}
    found = pearl_mapping(table, {("CPU", "CPU"): PearlLink(0.0, 1.0)}, CARTPOLE)
    assert found.modelled_samples_per_second == math.inf
