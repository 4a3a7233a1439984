"""Compiler driver of DPU programs and its helpers.

Only the standard library is used, because these modules are copied into the SDK folder and run from
there. `dpu-upmem-dpurte-clang` runs `driver`.
"""
