"""Performance portability of a composer over a set of platforms.

Source: S. J. Pennycook, J. D. Sewall and V. W. Lee, "A Metric for Performance Portability", PMBS
2016, arXiv 1611.07409. For an application on the platforms H, with efficiency e_i on platform i,

    PP = |H| / sum over i in H of 1 / e_i,  or 0 where some platform of H is unsupported.

Here e_i is application efficiency: achieved performance over the best known on that platform.
"""

import math
from collections.abc import Mapping

from accel_rl.arguments import within


def application_efficiency(achieved: float, best: float) -> float:
    """Return achieved performance over the best known on the same platform.

    Args:
      achieved: a rate, such as samples per second or per joule; never a time.
      best: the best known rate, in the same unit, `achieved` included; finite and above 0.
    """
    within("best", best, "(0, inf)")
    within("achieved", achieved, f"[0, {best}]")
    return achieved / best


def performance_portability(efficiencies: Mapping[str, float | None]) -> float | None:
    """Return PP, the harmonic mean of the efficiencies, within 0 and 1.

    Args:
      efficiencies: by platform, each within 0 and 1; None where the platform is unsupported.

    Returns:
      PP: 0 if a platform is unsupported or its efficiency is 0. None for fewer than two platforms,
      where portability is undefined.
    """
    for platform, efficiency in efficiencies.items():
        if efficiency is not None:
            within(f"efficiencies[{platform!r}]", efficiency, "[0, 1]")
    if len(efficiencies) < 2:
        return None
    supported = [efficiency for efficiency in efficiencies.values() if efficiency]
    if len(supported) < len(efficiencies):
        return 0.0
    return len(supported) / math.fsum(1 / efficiency for efficiency in supported)
