"""Sharded pmap over the DPU axis: `shard_map` over devices, `vmap` within each device.

`jax.pmap` needs as many devices as the mapped axis is long, so it cannot map over 2,000 DPUs. Here
the DPU axis is padded to a multiple of the device count, split over a one-dimensional mesh by
`jax.shard_map`, and vectorised inside each shard.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, PartitionSpec

from pim_emu.arguments import instance, shown

AXIS = "dpu"


def dpu_mesh(devices: Sequence[jax.Device] | None = None) -> Mesh:
    """Make a mesh with the single axis "dpu" over `devices`, all local devices by default.

    Raises:
      TypeError: if an element is not a device.
      ValueError: if `devices` is empty.
    """
    if devices is not None:
        instance("devices", devices, (Sequence, np.ndarray), "devices of JAX")
    chosen = jax.local_devices() if devices is None else list(devices)
    for device in chosen:
        instance("each of devices", device, jax.Device, "as jax.devices() lists")
    if not chosen:
        raise ValueError("devices must name at least one device, got none")
    return Mesh(np.asarray(chosen), (AXIS,), axis_types=(AxisType.Auto,))


def dpu_map(
    f: Callable[..., Any], in_axes: int | Sequence[int | None] | None = 0, mesh: Mesh | None = None
) -> Callable[..., Any]:
    """Map `f` over the DPU axis: `jax.vmap` whose mapped axis is split over devices.

    Any number of DPUs works on any number of devices, and the result does not depend on the number
    of devices. Padding DPUs run on zeros, and their results are dropped.

    Args:
      f: function of one DPU's arguments.
      in_axes: for each argument, 0 if its leaves have a leading DPU axis, None if all DPUs share
        it; a single value applies to all arguments.
      mesh: from `dpu_mesh`; all local devices if None.

    Returns:
      A function whose results have a leading DPU axis.

    Raises:
      TypeError: if `f` is not a function, or `mesh` not a mesh.
      ValueError: at the call, if no argument is mapped, if axis lengths differ, or if `in_axes`
        has an entry other than 0 and None or the wrong length.
    """
    mesh = dpu_mesh() if mesh is None else mesh
    _check(f, mesh)

    def mapped(*args: Any) -> Any:
        axes = _axes(in_axes, len(args))
        if any(axis not in (0, None) for axis in axes):
            raise ValueError(f"in_axes entries must be 0 or None, got {in_axes}")
        num_dpus = _axis_length(args, axes)
        padded = tuple(
            arg if axis is None else pad_axis(arg, mesh)
            for arg, axis in zip(args, axes, strict=True)
        )
        out = device_map(jax.vmap(f, in_axes=axes), axes, mesh)(*padded)
        return jax.tree.map(lambda x: x[:num_dpus], out)

    return mapped


def device_map(
    f: Callable[..., Any], in_axes: int | Sequence[int | None] | None, mesh: Mesh
) -> Callable[..., Any]:
    """Run `f` once on each device, on that device's block of the split axes.

    Use it for functions that handle many DPUs at once better than `vmap` does.

    Args:
      f: function of one device's blocks.
      in_axes: for each argument, the axis of its leaves that is split, or None if every device
        gets the whole; a single value applies to all arguments. The length of a split axis must be
        a multiple of the number of devices (see `pad_axis`).
      mesh: from `dpu_mesh`.

    Returns:
      A function whose outputs are the devices' outputs, concatenated along the leading axis.

    Raises:
      TypeError: if `f` is not a function, or `mesh` not a mesh.
      ValueError: at the call, if `in_axes` has the wrong length.
    """
    _check(f, mesh)

    def mapped(*args: Any) -> Any:
        specs = tuple(
            PartitionSpec() if axis is None else PartitionSpec(*(None,) * axis, AXIS)
            for axis in _axes(in_axes, len(args))
        )
        # Loop carries that start as constants would fail the varying-axes check.
        return jax.shard_map(
            f, mesh=mesh, in_specs=specs, out_specs=PartitionSpec(AXIS), check_vma=False
        )(*args)

    return mapped


def pad_axis(tree: Any, mesh: Mesh, axis: int = 0) -> Any:
    """Pad one axis of each leaf with zeros to a multiple of the number of devices.

    Args:
      tree: a pytree of arrays.
      mesh: the devices, from `dpu_mesh`.
      axis: axis of each leaf to pad.

    Raises:
      TypeError: if `mesh` is not a mesh.
      ValueError: if a leaf has no such axis.
    """
    instance("mesh", mesh, Mesh, "dpu_mesh makes one")

    def pad(x: Any) -> jax.Array:
        x = jnp.asarray(x)
        if not -x.ndim <= axis < x.ndim:
            raise ValueError(f"axis must be one of the leaf's, of shape {x.shape}, got {axis}")
        widths = [(0, 0)] * x.ndim
        widths[axis] = (0, -x.shape[axis] % mesh.size)
        return jnp.pad(x, widths)

    return jax.tree.map(pad, tree)


def _check(f: Callable[..., Any], mesh: Mesh) -> None:
    if not callable(f):
        raise TypeError(f"f must be a function, got {shown(f)}")
    instance("mesh", mesh, Mesh, "dpu_mesh makes one")


def _axes(in_axes: int | Sequence[int | None] | None, count: int) -> tuple[int | None, ...]:
    axes = (in_axes,) * count if in_axes is None or isinstance(in_axes, int) else tuple(in_axes)
    if len(axes) != count:
        raise ValueError(f"in_axes has {len(axes)} entries for {count} arguments")
    return axes


def _axis_length(args: Sequence[Any], axes: Sequence[int | None]) -> int:
    leaves = [
        leaf
        for arg, axis in zip(args, axes, strict=True)
        if axis is not None
        for leaf in jax.tree.leaves(arg)
    ]
    if any(np.ndim(leaf) == 0 for leaf in leaves):
        raise ValueError("mapped arguments must have a leading DPU axis, got a scalar")
    lengths = {int(np.shape(leaf)[0]) for leaf in leaves}
    if len(lengths) != 1:
        raise ValueError(f"mapped arguments must share one DPU axis, got lengths {sorted(lengths)}")
    return lengths.pop()
