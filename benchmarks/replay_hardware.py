"""AMPER's hardware as modelled, beside prioritised replay as measured in the same run."""

from collections.abc import Sequence

from common import Report
from replay_cases import LEAST_WALL, sampling_case
from replay_memories import AUTO

from accel_rl.hardware_models import associative_memory as hardware

MODELLED = "AMPER-fr on TCAM arrays, modelled"
LAW = "heavy"  # of priorities: PER's time does not depend on it


def beside(report: Report, platform: str, capacities: Sequence[int], batch_size: int) -> None:
    """Record the modelled time of a sampling, and PER's measured time over it.

    Arrays, components and their sources are the defaults of `hardware_models.associative_memory`,
    with as many ports to the candidate buffer as a batch has items; nothing ran on such hardware.
    """
    components = hardware.load_components()
    for capacity in capacities:
        case = sampling_case(capacity, batch_size, LAW)
        measured = report.find(case, AUTO, f"{LEAST_WALL} for a batch")
        design = hardware.Design(capacity, batch_size=batch_size, csp_ports=batch_size)
        modelled = hardware.modelled_sample(design, components)
        nanoseconds = modelled.modelled_latency_ns
        report.add(case, MODELLED, "modelled time for a batch", "us", [nanoseconds / 1000])
        if measured is not None:
            compared = hardware.compare_with_measured(modelled, measured.value * 1e-6, platform)
            report.add(
                case,
                compared.label,
                "measured over modelled",
                "",
                [compared.measured_over_modelled],
            )
