"""Devices that roles can be placed on."""

from collections.abc import Callable, Mapping

import jax

from accel_rl.compose.devices.device import Device, DeviceLink, Executable, Modelled, Status
from accel_rl.compose.devices.executable import JaxDevice, NativeDevice
from accel_rl.compose.devices.modelled import AssociativeMemory, FpgaDevice, UpmemDevice
from accel_rl.hardware_models import associative_memory as hardware
from accel_rl.hardware_models import fpga

__all__ = [
    "AssociativeMemory",
    "Device",
    "DeviceLink",
    "Executable",
    "FpgaDevice",
    "JaxDevice",
    "Modelled",
    "NativeDevice",
    "Status",
    "UpmemDevice",
    "available",
    "find",
]

PCIE = DeviceLink(latency=5e-6, bandwidth=12e9, status="declared")
"""Default link of modelled devices: assumed figures of PCIe 3.0 with 16 lanes, not those of any
board."""


def _associative() -> AssociativeMemory:
    """Make the TCAM of our RTL, at the FPGA's clock; no published array has all figures known."""
    period = 1e9 / fpga.load_fpga().clock
    components = hardware.load_components(tcam="rtl_tcam").given(clock_period=period, assumed=True)
    return AssociativeMemory(PCIE, components)


MODELLED: Mapping[str, Callable[[], Device]] = {
    "am": _associative,
    "upmem": UpmemDevice,
    "fpga": lambda: FpgaDevice(PCIE, fpga.load_fpga()),
}


def available() -> dict[str, Device]:
    """Return this machine's executable devices by name: `cpu:0`, `gpu:0`, ..., and `native`."""
    try:
        hosts = jax.local_devices(backend="cpu")
    except RuntimeError as error:
        raise ValueError(
            "compose needs JAX's CPU devices beside others, which JAX_PLATFORMS leaves out: make "
            'it "cuda,cpu", say'
        ) from error
    found: dict[str, Device] = {}
    for device in dict.fromkeys([*hosts, *jax.local_devices()]):
        number = sum(name.startswith(f"{device.platform}:") for name in found)
        name = f"{device.platform}:{number}"
        found[name] = JaxDevice(name, device)
    found["native"] = NativeDevice(hosts[0])
    return found


def find(names: tuple[str, ...] = ()) -> dict[str, Device]:
    """Return devices by name; without names, the executable ones of this machine."""
    here = available()
    if not names:
        return here
    found = {}
    for name in names:
        if name in here:
            found[name] = here[name]
        elif name in MODELLED:
            found[name] = MODELLED[name]()
        else:
            raise ValueError(
                f"devices must be of {', '.join((*here, *MODELLED))}, got {name!r}"
                + (": give JAX more host devices with jax_num_cpu_devices" if "cpu" in name else "")
            )
    return found
