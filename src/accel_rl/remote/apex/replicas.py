"""Processes that form one learner, with `jax.distributed`."""

import socket

import jax

HEARTBEAT_SECONDS = 10  # silence of a process after which the others end
JOIN_SECONDS = 120  # wait of processes for each other at the beginning


def join(coordinator: str, number: int, count: int, *, bind: str | None = None) -> None:
    """Join this process to a group of learners; call it before any JAX computation.

    Traffic between the processes is neither authenticated nor encrypted: use trusted networks only.

    Args:
      coordinator: "host:port" of the first process, which listens at this address only.
      number: index of this process, 0 to count - 1.
      count: number of processes.
      bind: "host:port" where the first process listens, if it differs from `coordinator`.

    Raises:
      RuntimeError: if a process does not join in time, or JAX has computed already.
    """
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(
        coordinator,
        count,
        number,
        initialization_timeout=JOIN_SECONDS,
        heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
        # By default JAX listens on all interfaces of the machine.
        coordinator_bind_address=bind or coordinator,
    )


def devices() -> list[jax.Device]:
    """Return the devices of all processes: every accelerator, or one CPU device per process.

    More CPU devices would only share the same cores.
    """
    found = jax.devices()
    if found[0].platform != "cpu":
        return found
    return [next(d for d in found if d.process_index == n) for n in range(jax.process_count())]


def free_port() -> int:
    """Return a port of the loopback interface that is free at present."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])
