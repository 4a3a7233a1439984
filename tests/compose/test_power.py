"""Default watts: figures of data sheets, when they are read, and how plans show them."""

from types import SimpleNamespace

import pytest
from tables import devices_of, loaded, made_up

from accel_rl import compose
from accel_rl.cli.composing import planning, reporting
from accel_rl.compose import power
from accel_rl.compose.devices import JaxDevice, NativeDevice
from accel_rl.compose.power import power_of, sheet_power

EPYC = "AMD EPYC 7763 64-Core Processor"
HOSTS = {"devices": ["cpu:0", "cpu:1"], "objective": "efficiency"}


@pytest.fixture
def cpu(monkeypatch):
    """A machine with 16 threads of an EPYC 7763; JAX has eight host devices."""

    def model(name):
        monkeypatch.setattr(power, "cpu_name", lambda: name)

    monkeypatch.setattr(power, "core_count", lambda: 16)
    model(EPYC)
    return model


def gpu(name):
    return JaxDevice("gpu:0", SimpleNamespace(platform="gpu", device_kind=name))


def test_every_sheet_names_devices_watts_and_source():
    sheets = power._sheets()
    for kind, each in ((kind, each) for kind, every in sheets.items() for each in every):
        assert each["names"]
        assert 0 < each["watts"] <= 1000
        assert each["source"]
        assert each["figure"]
        assert (each.get("threads", 0) > 0) == (kind == "cpu")
    for every in sheets.values():
        names = [name for each in every for name in each["names"]]
        assert len(set(names)) == len(names)


def test_a_gpu_is_known_by_its_whole_name():
    found = sheet_power(gpu("NVIDIA H200"))
    assert (found.idle, found.active, found.status) == (0, 700, "declared")
    assert found.source.startswith("NVIDIA, MLPerf")
    for other in ("NVIDIA H200 NVL", "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "cuda"):
        assert sheet_power(gpu(other)) is None


def test_the_threads_of_a_cpu_share_its_watts(cpu):
    host = devices_of(loaded(compose=HOSTS))["cpu:0"]
    assert sheet_power(host).active == pytest.approx(280 * 2 / 128)
    assert sheet_power(NativeDevice(host.jax_device)).active == pytest.approx(280 / 128)
    assert "default TDP 280 W, 2 of 128 threads, idle not given" in sheet_power(host).source
    cpu("Intel(R) Xeon(R) Platinum 8480+")
    assert sheet_power(host).active == pytest.approx(350 * 2 / 112)
    for other in ("AMD EPYC", "AMD EPYC 7763X 64-Core Processor", "x86_64"):
        cpu(other)
        assert sheet_power(host) is None


def test_devices_that_are_not_jaxs_have_no_sheet():
    wanted = loaded(replay={"sampler": "amper_fr"}, compose={"devices": ["upmem"]})
    assert sheet_power(devices_of(wanted)["upmem"]) is None


def test_sheets_are_read_only_where_joules_are_needed_and_no_watts_are_given(cpu):
    def found(**section):
        wanted = loaded(compose={**HOSTS, **section})
        return power_of(wanted.configuration.compose, devices_of(wanted))

    assert found(objective="throughput") is None
    assert {each.idle for each in found().values()} == {0}
    assert found(objective="weighted").keys() == {"cpu:0", "cpu:1"}
    both = found(power={"cpu:0": [1, 9], "cpu:1": [2, 8]})
    assert [(each.idle, each.active) for each in both.values()] == [(1, 9), (2, 8)]
    with pytest.raises(ValueError, match=r"compose\.power must give watts of cpu:1 for"):
        found(power={"cpu:0": [1, 9]})
    cpu("AMD EPYC")
    with pytest.raises(ValueError, match="watts of cpu:0, cpu:1 for the objective efficiency"):
        found()


@pytest.mark.usefixtures("cpu")
def test_a_plan_counts_busy_joules_and_says_that_they_are_declared(tmp_path, capsys):
    wanted = loaded(compose=HOSTS)
    plan = compose.plan(wanted, costs=made_up(wanted))
    for each in plan.estimates:
        busy = sum(each.busy[name] * plan.power[name].active for name in each.busy)
        assert each.joules == pytest.approx(busy)
    joules = [each.joules for each in plan.estimates]
    assert joules[0] <= 1.01 * min(joules)
    planning.write_plan(tmp_path, plan, "")
    reporting.show(reporting.read(tmp_path))
    shown = " ".join(capsys.readouterr().out.split())
    assert "samples/J, declared watts" in shown
    assert "Watts behind the joules, declared" in shown
    assert "AMD, Server Processor Specifications: default TDP 280 W" in shown
