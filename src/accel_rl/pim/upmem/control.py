"""Control of the DPUs that this process holds: release, recordings and typed errors."""

import contextlib
import dataclasses
from collections.abc import Iterator

from accel_rl.pim.upmem import build
from accel_rl.pim.upmem.errors import SdkMissing, translated
from accel_rl.pim.upmem.host import NOTHING, LaunchReport, loaded_host
from accel_rl.pim.upmem.toolkit import which_toolkit


def release() -> None:
    """Free the DPUs that this process holds; the next launch allocates them again."""
    host = loaded_host()
    if host is not None:
        host.release()


def held() -> int:
    """Return the number of DPUs that this process holds."""
    host = loaded_host()
    return 0 if host is None else host.held()


@dataclasses.dataclass
class Recording:
    """Recording of DPU work; `report` is None until the recording ends."""

    report: LaunchReport | None = None


@contextlib.contextmanager
def recording() -> Iterator[Recording]:
    """Record DPU work inside a `with` block, in which results must also be awaited.

    `accel_rl.pim.modelled.parts_of_run` converts the report to the four parts of a run's time.
    """
    made, before = Recording(), _report()
    try:
        yield made
    finally:
        made.report = _report().since(before)


def _report() -> LaunchReport:
    host = loaded_host()
    return NOTHING if host is None else host.report()


@contextlib.contextmanager
def typed_errors() -> Iterator[None]:
    """Raise DPU errors as exceptions of `accel_rl.pim.upmem`, for training under your own `jit`.

    jax itself raises `jax.errors.JaxRuntimeError`. Results must be awaited inside the `with` block.
    """

    def translate(error: Exception) -> Exception | None:
        host = loaded_host()
        return None if host is None else host.translate(error)

    with translated(translate):
        yield


def why_absent() -> str | None:
    """Return why backend "upmem" is absent, or None if it is present; build nothing."""
    try:
        which_toolkit()
    except SdkMissing as error:
        return str(error)
    return build.why_absent()
