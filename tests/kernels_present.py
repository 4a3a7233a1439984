"""A mark for tests of the native kernels."""

import pytest

from accel_rl import native

needs_kernels = pytest.mark.skipif(
    native.why_absent() is not None, reason=f"no native kernels: {native.why_absent()}"
)
