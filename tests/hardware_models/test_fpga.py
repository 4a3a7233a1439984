"""The FPGA models: PEARL's formulas worked here, what does not fit, and our RTL's cycles."""

import dataclasses
import math
import tomllib
from importlib import resources

import pytest

from accel_rl.hardware_models import associative_memory as hardware
from accel_rl.hardware_models import fpga

SMALL = fpga.Fpga(
    "small",
    m20k_blocks=100,
    m20k_bits=20_480,
    mlab_blocks=50,
    mlab_bits=640,
    dsps=70,
    clock=1e6,
    ddr_bandwidth=24e6,
)


@pytest.fixture
def agilex():
    return fpga.load_fpga()


def test_constants_of_the_artifact(agilex):
    assert agilex == fpga.Fpga("agilex_agf014", 7110, 20_480, 24_360, 640, 4510, 250e6, 77e9)


def test_every_constant_has_unit_source_status_and_condition():
    file = resources.files("accel_rl.hardware_models") / "fpga.toml"
    tables = tomllib.loads(file.read_text(encoding="utf-8"))
    assert set(tables) == {"sources", "fpga"}
    names = {field.name for field in dataclasses.fields(fpga.Fpga)} - {"name"}
    units = {"block", "bit", "Hz", "B/s"}
    for figures in tables["fpga"].values():
        assert set(figures) == names
        for figure in figures.values():
            assert set(figure) == {"value", "unit", "source", "status", "condition"}
            assert all(figure.values())
            assert figure["unit"] in units
            assert figure["status"] == "published artifact code"
            assert figure["source"] in tables["sources"]
    for source in tables["sources"].values():
        assert "DOI" in source["cite"]
        assert source["where_read"]


def test_results_say_that_they_are_modelled():
    for result in (fpga.PearlReplay, fpga.PearlLearner, fpga.RtlSumTree):
        assert all(field.name.startswith("modelled_") for field in dataclasses.fields(result))


def test_replay_manager_by_hand():
    """K = 16, D = 3, B = 10: 1, 16 and 256 nodes of 64 bits, all under one M20K."""
    found = fpga.pearl_replay(SMALL, fanout=16, depth=3, batch_size=10)
    assert found.modelled_sample_cycles == 2 * 16 * (10 + 3)
    assert found.modelled_update_cycles == 2 * 3
    assert found.modelled_transfer_seconds == pytest.approx(10 * 24 / 24e6)
    assert found.modelled_sample_seconds == pytest.approx(416e-6 + 10e-6)
    assert found.modelled_update_seconds == pytest.approx(6e-6 + 10e-6)
    assert found.modelled_insert_seconds == found.modelled_update_seconds
    assert found.modelled_dsps == 6
    assert found.modelled_mlab_blocks == 1 + 2 + 26  # of 64, 1,024 and 16,384 bits
    assert found.modelled_m20k_blocks == 0


def test_replay_manager_of_the_artifact(agilex):
    """What its program gives for depth 4, fanout 16 and a batch of 128, in ms."""
    found = fpga.pearl_replay(agilex, fanout=16, depth=4, batch_size=128)
    assert found.modelled_sample_seconds * 1e3 == pytest.approx(0.016896 + 3.9896e-5, rel=1e-6)
    assert found.modelled_update_seconds * 1e3 == pytest.approx(3.2e-5 + 3.9896e-5, rel=1e-5)
    assert found.modelled_m20k_blocks == 13


def test_large_levels_take_m20k(agilex):
    """A level of 640 nodes is the first that one M20K does not hold."""
    for nodes, blocks in ((639, (64, 0)), (640, (0, 2)), (641, (0, 3))):
        found = fpga.pearl_replay(agilex, fanout=nodes, depth=2, batch_size=1)
        assert (found.modelled_mlab_blocks - 1, found.modelled_m20k_blocks) == blocks


def test_learner_by_hand():
    """Layers 4-8-2, B = 3: FW0, WA0 96 operations each, FW1, BW1, WA1 48; 70 DSPs for 336."""
    found = fpga.pearl_learner(SMALL, (4, 8, 2), batch_size=3)
    # 20 of 70 DSPs for 96 operations, 10 for 48; FW1 has 2 outputs to compute at once.
    assert found.modelled_dsps == {"FW0": 8, "WA0": 16, "FW1": 2, "WA1": 8, "BW1": 8}
    assert found.modelled_cycles == pytest.approx(96 / 8 + 48 / 2 + 48 / 8 + 96 / 16)
    assert found.modelled_seconds == pytest.approx(48e-6)
    assert found.modelled_memory_bits == 32 * (3 * (4 + 8) + 4 * 8 + 8 * 2)
    assert found.modelled_available_bits == 50 * 640 + 100 * 20_480


def test_powers_of_two_are_kept():
    """64 DSPs for two passes of one layer: 32 each."""
    device = dataclasses.replace(SMALL, dsps=64)
    found = fpga.pearl_learner(device, (64, 64), batch_size=1)
    assert found.modelled_dsps == {"FW0": 32, "WA0": 32}


def test_the_replay_manager_leaves_less():
    replay = fpga.pearl_replay(SMALL, fanout=16, depth=3, batch_size=10)
    alone = fpga.pearl_learner(SMALL, (4, 8, 2), batch_size=3)
    beside = fpga.pearl_learner(SMALL, (4, 8, 2), batch_size=3, replay=replay)
    assert beside.modelled_available_bits == alone.modelled_available_bits - 29 * 640
    tight = dataclasses.replace(SMALL, dsps=10)
    with pytest.raises(ValueError, match=r"\(4, 8, 2\) .* needs 5 DSPs, small has 4"):
        fpga.pearl_learner(tight, (4, 8, 2), batch_size=3, replay=replay)


def test_what_does_not_fit_is_refused(agilex):
    with pytest.raises(
        ValueError,
        match=r"layers \(4, 250, 250\) with batch_size 3 needs 2056384 bits of memory for "
        r"activations and weights, small has 2000000",
    ):
        fpga.pearl_learner(
            dataclasses.replace(SMALL, m20k_blocks=96, mlab_blocks=53),
            (4, 250, 250),
            batch_size=3,
        )
    assert fpga.pearl_learner(agilex, (4, 250, 250), batch_size=3).modelled_cycles > 0
    with pytest.raises(ValueError, match=r"depth 8 with fanout 16 needs \d+ M20K blocks"):
        fpga.pearl_replay(agilex, fanout=16, depth=8, batch_size=1)
    with pytest.raises(ValueError, match="depth 3 with fanout 2 needs 6 DSPs, small has 5"):
        fpga.pearl_replay(dataclasses.replace(SMALL, dsps=5), fanout=2, depth=3, batch_size=1)


def test_our_sum_tree():
    found = fpga.rtl_sum_tree(fanout=4, depth=3, batch_size=64, value_bits=10)
    assert found.modelled_sample_cycles == found.modelled_update_cycles == 64 + 6 + 2
    assert found.modelled_clear_cycles == 16
    # Levels of 4, 16 and 64 values, the last of 10 bits, and the leaves once more.
    assert found.modelled_memory_bits == 4 * 14 + 16 * 12 + 64 * 10 + 64 * 10


def test_our_tcam_by_hand():
    """20 searches, 1,500 candidates and 64 draws at 4 ns a clock."""
    components = hardware.load_components(tcam="rtl_tcam").given(clock_period=4.0)
    modelled = hardware.modelled_sample(hardware.Design(10_000), components, energy=False)
    assert modelled.modelled_latency_ns == pytest.approx(4 * (22 + 1_503 + 65))


@pytest.mark.parametrize(
    ("function", "fields", "message"),
    [
        ("pearl_replay", {"fanout": 1}, "fanout must be at least 2, got 1"),
        ("pearl_replay", {"depth": 0}, "depth must be at least 1, got 0"),
        ("pearl_replay", {"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ("rtl_sum_tree", {"fanout": 3}, "fanout must be a power of two, got 3"),
        ("rtl_sum_tree", {"depth": 7}, "depth must be from 1 to 6, got 7"),
        ("rtl_sum_tree", {"value_bits": 33}, "value_bits must be from 1 to 32, got 33"),
        ("pearl_learner", {"layers": (4,)}, "number of layers must be at least 2, got 1"),
        ("pearl_learner", {"layers": (4, 0)}, r"layers\[1\] must be at least 1, got 0"),
        ("pearl_learner", {"batch_size": -1}, "batch_size must be at least 1, got -1"),
    ],
)
def test_arguments_refused(function, fields, message):
    known = {
        "pearl_replay": {"fpga": SMALL, "fanout": 4, "depth": 2, "batch_size": 8},
        "rtl_sum_tree": {"fanout": 16, "depth": 2, "batch_size": 8},
        "pearl_learner": {"fpga": SMALL, "layers": (4, 2), "batch_size": 8},
    }
    with pytest.raises(ValueError, match=message):
        getattr(fpga, function)(**known[function] | fields)


def test_parts_refused():
    with pytest.raises(ValueError, match="name must be one of agilex_agf014, got 'stratix'"):
        fpga.load_fpga("stratix")
    for value in (0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="clock must be finite and above 0"):
            dataclasses.replace(SMALL, clock=value)
