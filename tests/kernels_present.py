"""A mark for tests of the native kernels."""

from optional import needs

needs_kernels = needs("native kernels")
