"""Entry point of `python -m accel_rl`, the same as `accel-rl`."""

from accel_rl.cli import main

if __name__ == "__main__":
    main()
