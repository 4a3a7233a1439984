"""accel_rl: reinforcement learning in JAX for when memory is the bottleneck."""

__version__ = "0.1.0"
