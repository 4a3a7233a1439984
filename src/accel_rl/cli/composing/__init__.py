"""What `accel-rl compose` does behind its commands."""
