"""Implementation of the commands of `accel-rl compose`."""
