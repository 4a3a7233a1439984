"""What tasks can be placed on; one file for each kind of device."""

from collections.abc import Callable, Mapping

import jax

from accel_rl.am import hardware
from accel_rl.arguments import instance
from accel_rl.compose import fpga
from accel_rl.compose.devices.associative import AssociativeMemory
from accel_rl.compose.devices.device import Device, Executable, Link, Modelled, Status
from accel_rl.compose.devices.fpga_device import FpgaDevice
from accel_rl.compose.devices.jax_device import JaxDevice
from accel_rl.compose.devices.native import NativeDevice
from accel_rl.compose.devices.upmem_device import UpmemDevice

__all__ = [
    "AssociativeMemory",
    "Device",
    "Executable",
    "FpgaDevice",
    "JaxDevice",
    "Link",
    "Modelled",
    "NativeDevice",
    "Status",
    "UpmemDevice",
    "available",
    "find",
]

PCIE = Link(latency=5e-6, bandwidth=12e9, status="declared")
"""Of modelled devices unless they are made with another: what we assume of PCIe 3.0 with 16 lanes,
not a figure of any board."""


def _associative() -> AssociativeMemory:
    """Our TCAM in RTL at the clock of the FPGA: of no published array all figures are known."""
    period = 1e9 / fpga.load_fpga().clock
    components = hardware.load_components(tcam="rtl_tcam").given(clock_period=period, assumed=True)
    return AssociativeMemory(PCIE, components)


MODELLED: Mapping[str, Callable[[], Device]] = {
    "am": _associative,
    "upmem": UpmemDevice,
    "fpga": lambda: FpgaDevice(PCIE, fpga.load_fpga()),
}


def available() -> dict[str, Device]:
    """The executable devices of this machine by name: `cpu:0`, `gpu:0`, ..., and `native`.

    Raises:
      ValueError: if JAX has no CPU devices, as with JAX_PLATFORMS=cuda.
    """
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
    """Devices by name; without names the executable ones of this machine.

    Raises:
      TypeError: if it is no tuple of names.
      ValueError: if there is none of a name; the message tells which there are.
    """
    if isinstance(names, str):
        raise TypeError(f"names must be a tuple of names, got {names!r}")
    for name in names:
        instance("each of names", name, str)
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
