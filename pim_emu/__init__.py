"""pim_emu: the UPMEM emulator. Machine description, sharded pmap over DPUs, and cost model."""

from pim_emu.dpu_map import device_map, dpu_map, dpu_mesh, pad_axis

__all__ = ["device_map", "dpu_map", "dpu_mesh", "pad_axis"]
