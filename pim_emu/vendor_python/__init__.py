"""The vendor's Python interface to DPUs, which host programs import as `dpu`.

The SDK folder has a module `dpu` that consists of these names; `pim-emu env` puts it in PYTHONPATH.
`docs/pim-emu.md` says which calls are documented, and where. Only the standard library is used.
"""

from pim_emu.host_library import ALLOCATE_ALL, DpuError
from pim_emu.vendor_python.program import DpuSymbol, DpuVariable, VendorProgram
from pim_emu.vendor_python.sets import VendorDpuSet

__all__ = [
    "ALLOCATE_ALL",
    "DpuError",
    "DpuSymbol",
    "DpuVariable",
    "VendorDpuSet",
    "VendorProgram",
]
