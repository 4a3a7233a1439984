"""The DPUs that this process holds: freeing them, recording what they do, their errors."""

import contextlib
import dataclasses
from collections.abc import Iterator

from accel_rl.pim.upmem import build
from accel_rl.pim.upmem.errors import SdkMissing, translated
from accel_rl.pim.upmem.host import NOTHING, Report, loaded_host
from accel_rl.pim.upmem.toolkit import which_toolkit


def release() -> None:
    """Free the DPUs that this process holds; the next launch takes them again."""
    host = loaded_host()
    if host is not None:
        host.release()


def held() -> int:
    """How many DPUs this process holds."""
    host = loaded_host()
    return 0 if host is None else host.held()


@dataclasses.dataclass
class Recording:
    """What was done on the DPUs; `report` is None until the recording ends."""

    report: Report | None = None


@contextlib.contextmanager
def recording() -> Iterator[Recording]:
    """Records what DPUs do for the statements within; results must be waited for within, too.

    `accel_rl.pim.modelled.parts_of_run` makes the four parts of a run's time of the report.
    """
    made, before = Recording(), _report()
    try:
        yield made
    finally:
        made.report = _report().since(before)


def _report() -> Report:
    host = loaded_host()
    return NOTHING if host is None else host.report()


@contextlib.contextmanager
def typed_errors() -> Iterator[None]:
    """Raises errors of DPUs as those of `accel_rl.pim.upmem`, for training under a `jit` of yours.

    jax raises them as `jax.errors.JaxRuntimeError`. Results must be waited for within.
    """

    def translate(error: Exception) -> Exception | None:
        host = loaded_host()
        return None if host is None else host.translate(error)

    with translated(translate):
        yield


def why_absent() -> str | None:
    """Why backend "upmem" is absent, by a look that builds nothing; None where it is present."""
    try:
        which_toolkit()
    except SdkMissing as error:
        return str(error)
    return build.why_absent()
