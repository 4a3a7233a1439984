"""Processes that are one learner, by `jax.distributed`."""

import socket

import jax

HEARTBEAT_SECONDS = 10  # without a sign of a process after which the others end
JOIN_SECONDS = 120  # for which processes wait for one another at the beginning


def join(coordinator: str, number: int, count: int, *, bind: str | None = None) -> None:
    """Makes this process one of the learners; before anything is computed.

    Nothing there is authenticated or encrypted: for networks where everybody may be trusted.

    Args:
      coordinator: "host:port" of the first of them, where it listens, and nowhere else.
      number: of this one, 0 to count - 1.
      count: of all.
      bind: "host:port" where the first listens, if the others reach it by another address.

    Raises:
      RuntimeError: if others did not come in time, or JAX has computed already.
    """
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(
        coordinator,
        count,
        number,
        initialization_timeout=JOIN_SECONDS,
        heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
        # JAX itself would listen on all interfaces of the machine.
        coordinator_bind_address=bind or coordinator,
    )


def devices() -> list[jax.Device]:
    """Of all the processes: every accelerator, or one device for each process of CPUs.

    More devices of a CPU would only share its cores.
    """
    found = jax.devices()
    if found[0].platform != "cpu":
        return found
    return [next(d for d in found if d.process_index == n) for n in range(jax.process_count())]


def free_port() -> int:
    """One of the loopback on which nobody listens now."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])
