"""`testing.check_device` passes the devices here, and finds what is broken in one."""

import dataclasses

import pytest
from tables import loaded

from accel_rl import compose, native, testing
from accel_rl.compose import workload_of


def workload(sampler):
    held = {"sampler": sampler, "batch_size": 32, "capacity": 1024}
    late = {"learning_starts": 100}
    return workload_of(loaded(replay=held, agent={"hidden": [32]}, schedule=late))


@pytest.mark.parametrize(
    ("name", "sampler"),
    [("cpu:0", "uniform"), ("native", "prioritised"), ("fpga", "prioritised"), ("am", "amper_fr")],
)
def test_sound_devices_pass(name, sampler):
    if name == "native" and native.why_absent() is not None:
        pytest.skip(native.why_absent())
    testing.check_device(compose.find((name,))[name], workload(sampler))


LINK = compose.DeviceLink(1e-6, 1e9, "declared")


@dataclasses.dataclass(frozen=True)
class Device:
    """A learner whose answers are given."""

    link: compose.DeviceLink | None = LINK
    seconds: object = 1e-3
    refusal: object = "it learns"
    most: float = 1e9
    name: str = "ours"
    kind: str = "ours"
    status: str = "modelled"
    power: compose.Power | None = None

    def refuses(self, role, workload):
        if role == "learner" and workload.parameters > self.most:
            return "its networks are too large"
        return None if role == "learner" else self.refusal

    def modelled_seconds(self, step, workload):
        return self.seconds(workload) if callable(self.seconds) else self.seconds


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        ({"name": "a+b"}, "name must be without"),
        ({"status": "fast"}, "status must be"),
        ({"refusal": False}, "must say why it is no actor"),
        ({"most": 0}, "must take a role"),
        ({"link": None}, "link must be"),
        ({"seconds": -1.0}, "must be 0 or above"),
        ({"seconds": float("nan")}, "must be 0 or above"),
        ({"seconds": None}, "must be a float"),
        ({"status": "executable"}, "jax_device must be"),
        ({"most": 1e30, "seconds": lambda w: float(w.parameters)}, "what does not fit"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_broken_devices_are_found(broken, found):
    testing.check_device(Device(), workload("uniform"))
    with pytest.raises(AssertionError, match=found):
        testing.check_device(Device(**broken), workload("uniform"))
