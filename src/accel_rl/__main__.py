"""`python -m accel_rl` is `accel-rl`."""

from accel_rl.cli import main

if __name__ == "__main__":
    main()
