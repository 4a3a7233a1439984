"""The energy model against sums made by hand, and the meter against counters that are not real."""

import math
import os
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_rl.hardware_models.energy import Meter, Power, iteration_joules, power_status

CPU = Power(idle=10.0, active=60.0, status="declared", source="a made-up data sheet")
GPU = Power(idle=30.0, active=300.0, status="declared", source="a made-up data sheet")
SEEN = Power(idle=12.0, active=55.0, status="measured", source="CPU package 0, RAPL")


def test_an_iteration_as_worked_out_by_hand():
    busy = {"cpu": 0.5, "gpu": 1.5}
    found = iteration_joules({"cpu": CPU, "gpu": GPU}, busy, 2.0)
    assert found == pytest.approx(60 * 0.5 + 10 * 1.5 + 300 * 1.5 + 30 * 0.5)


def test_a_device_left_out_of_busy_idles():
    assert iteration_joules({"cpu": CPU, "gpu": GPU}, {}, 2.0) == pytest.approx(2 * (10 + 30))


def test_tasks_that_overlap_on_one_device_count_once():
    assert iteration_joules({"cpu": CPU}, {"cpu": 5.0}, 2.0) == pytest.approx(60 * 2)


@given(st.floats(0, 1e3), st.floats(0, 1e3))
def test_work_never_saves_energy_at_the_same_duration(busy, more):
    seconds = busy + more
    least, most = seconds * CPU.idle, seconds * CPU.active
    found = iteration_joules({"cpu": CPU}, {"cpu": busy}, seconds)
    assert least * (1 - 1e-12) <= found <= most * (1 + 1e-12)


def test_measured_and_declared_watts_are_not_added():
    assert power_status({"cpu": CPU, "gpu": GPU}) == "declared"
    assert power_status({"cpu": SEEN}) == "measured"
    with pytest.raises(ValueError, match=r"measured and declared.*'measured': \['cpu'\]"):
        iteration_joules({"cpu": SEEN, "gpu": GPU}, {}, 1.0)
    with pytest.raises(ValueError, match="power must have one status"):
        power_status({})


def test_what_is_wrong_is_named():
    for idle, active in ((-1, 5), (6, 5), (0, math.inf), (math.nan, 5)):
        with pytest.raises(ValueError, match="0 <= idle <= active must hold in watts"):
            Power(idle, active, "declared", "somewhere")
    with pytest.raises(ValueError, match="status must be one of"):
        Power(1, 2, "guessed", "somewhere")
    with pytest.raises(ValueError, match=r"busy\['cpu'\] must be finite and"):
        iteration_joules({"cpu": CPU}, {"cpu": -1.0}, 1.0)
    with pytest.raises(ValueError, match="seconds must be finite and"):
        iteration_joules({"cpu": CPU}, {}, math.nan)
    with pytest.raises(ValueError, match="busy device must be one of cpu, got 'gpu'"):
        iteration_joules({"cpu": CPU}, {"gpu": 0.0}, 1.0)
    with pytest.raises(ValueError, match="period must be above 0"):
        Meter(period=0)


# RAPL, from a tree of files like the kernel's


def zone(root, folder, name, energy, limit=262_143_328_850):
    path = root / folder
    path.mkdir()
    (path / "name").write_text(f"{name}\n")
    (path / "energy_uj").write_text(f"{energy}\n")
    (path / "max_energy_range_uj").write_text(f"{limit}\n")
    return path / "energy_uj"


class NoGpu:
    """NVML as it answers where its driver is absent."""

    class NVMLError(Exception):
        pass

    def nvmlInit(self):
        raise self.NVMLError("NVML Shared Library Not Found")


def meter(powercap, nvml=None, period=60.0):
    return Meter(powercap, nvml or NoGpu(), period)


def test_rapl_counts_microjoules_at_every_boundary(tmp_path):
    (tmp_path / "intel-rapl").mkdir()  # the control type: it counts nothing
    package = zone(tmp_path, "intel-rapl:0", "package-0", 1_000_000)
    memory = zone(tmp_path, "intel-rapl:0:1", "dram", 5)
    die = zone(tmp_path, "intel-rapl:1", "package-1-die-0", 7)
    platform = zone(tmp_path, "intel-rapl:2", "psys", 0)
    with meter(tmp_path) as found:
        package.write_text("3500000")
        memory.write_text("1000005")
        die.write_text("7")
        platform.write_text("9000000")
    joules = {reading.boundary: reading.measured_joules for reading in found.readings}
    assert joules == pytest.approx(
        {
            "CPU package 0, RAPL": 2.5,
            "CPU package 0 dram, RAPL": 1.0,
            "CPU package 1-die-0, RAPL": 0.0,
            "psys, RAPL": 9.0,
        }
    )
    assert all(0 < reading.seconds < 60 for reading in found.readings)
    assert [(each.boundary, each.reason) for each in found.unreadable] == [
        ("GPU, NVML", "absent: NVML Shared Library Not Found")
    ]


def test_rapl_starts_again_at_its_range(tmp_path):
    counter = zone(tmp_path, "intel-rapl:0", "package-0", 9_000_000, limit=10_000_000)
    with meter(tmp_path) as found:
        counter.write_text("500000")
    assert found.readings[0].measured_joules == pytest.approx(1.5)


class Gpu:
    """NVML with one GPU, whose counter shows these millijoules in turn."""

    def __init__(self, *values):
        self.values = list(values)

    def nvmlDeviceGetTotalEnergyConsumption(self, handle):
        return self.values.pop(0)

    NVMLError = NoGpu.NVMLError
    nvmlInit = staticmethod(lambda: None)
    nvmlDeviceGetCount = staticmethod(lambda: 1)
    nvmlDeviceGetHandleByIndex = staticmethod(lambda index: index)


def test_rapl_that_starts_again_twice_is_followed(tmp_path):
    counter = zone(tmp_path, "intel-rapl:0", "package-0", 9, limit=10)
    looked = [threading.Event(), threading.Event()]

    class Writer(Gpu):
        looks = 0

        def nvmlDeviceGetTotalEnergyConsumption(self, handle):
            # RAPL is looked at first, so here the look before last at RAPL is over.
            if 1 <= self.looks <= len(looked):
                looked[self.looks - 1].set()
                counter.with_suffix(".next").write_text("5" if self.looks == 1 else "1")
                os.replace(counter.with_suffix(".next"), counter)
            self.looks += 1
            return 0

    with meter(tmp_path, Writer(), period=0.01) as found:
        for event in looked:
            assert event.wait(10)
    # 9 -> 5 and 5 -> 1 past 10: two rounds, of which the ends alone (9 -> 1) show one.
    assert found.readings[0].measured_joules == pytest.approx(12e-6)


def test_rapl_absent_and_denied_say_why(tmp_path, monkeypatch):
    with meter(tmp_path) as found:
        pass
    assert found.readings == ()
    assert found.unreadable[0].reason == f"absent: {tmp_path} has no intel-rapl zone"

    counter = zone(tmp_path, "intel-rapl:0", "package-0", 1)
    whole = type(counter).read_text

    def guarded(path, *arguments, **keywords):  # root, as tests may be, reads whatever the mode
        if path == counter:
            raise PermissionError(13, "Permission denied", str(path))
        return whole(path, *arguments, **keywords)

    monkeypatch.setattr(type(counter), "read_text", guarded)
    with meter(tmp_path) as found:
        pass
    assert found.readings == ()
    denied = found.unreadable[0]
    assert denied.boundary == "CPU package 0, RAPL"
    assert denied.reason.startswith("permission: ")
    assert str(counter) in denied.reason


def test_a_damaged_zone_says_why_and_leaves_the_others(tmp_path):
    zone(tmp_path, "intel-rapl:0", "package-0", "not a number")
    zone(tmp_path, "intel-rapl:1", "package-1", 0)
    with meter(tmp_path) as found:
        pass
    assert [reading.boundary for reading in found.readings] == ["CPU package 1, RAPL"]
    assert "not a number" in found.unreadable[0].reason


def test_a_counter_lost_on_the_way_gives_no_reading(tmp_path):
    counter = zone(tmp_path, "intel-rapl:0", "package-0", 1)
    with meter(tmp_path) as found:
        counter.unlink()
    assert found.readings == ()
    assert found.unreadable[-1].boundary == "CPU package 0, RAPL"
    assert found.unreadable[-1].reason.startswith("lost during the run")


# NVML, from a module like pynvml


def test_nvml_counts_millijoules(tmp_path):
    with meter(tmp_path, Gpu(1_000, 3_500)) as found:
        pass
    (reading,) = found.readings
    assert reading.boundary == "GPU 0, NVML"
    assert reading.measured_joules == pytest.approx(2.5)


def test_a_gpu_without_the_counter_says_so(tmp_path):
    class Old(Gpu):
        def nvmlDeviceGetTotalEnergyConsumption(self, handle):
            raise self.NVMLError("Not Supported")

    with meter(tmp_path, Old()) as found:
        pass
    assert found.readings == ()
    assert found.unreadable[-1].reason.endswith("Not Supported")


def test_without_pynvml_the_meter_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with Meter(tmp_path) as found:
        pass
    assert "pynvml is not installed" in found.unreadable[-1].reason


def test_a_meter_can_be_used_again(tmp_path):
    counter = zone(tmp_path, "intel-rapl:0", "package-0", 0)
    found = meter(tmp_path)
    for joules in (1, 2):
        with found:
            counter.write_text(str(int(counter.read_text()) + joules * 1_000_000))
        assert [reading.measured_joules for reading in found.readings] == pytest.approx([joules])
        assert len(found.unreadable) == 1


def test_this_machine_gives_joules_or_a_reason():
    with Meter() as found:
        pass
    assert found.readings or found.unreadable
    assert all(each.reason for each in found.unreadable)
