"""The limit of `training.py`: products of matrices at the rate of the processor's BLAS."""

import itertools
import time

import numpy as np
from common import Report
from training_settings import ENVIRONMENT, Setting

from accel_rl import envs

BLAS, PEAK, SHARE = "NumPy's BLAS", "FLOP per second, products of 1,024 x 1,024", "share of BLAS"
SIZE = 1024


def flops(setting: Setting) -> float:
    """Return the FLOP in products of matrices for one environment step of one seed.

    Actions are chosen for all environments; an update evaluates the target and the online network
    and propagates gradients, to inputs of all layers but the first.
    """
    env = envs.environment(ENVIRONMENT)
    widths = (*env.observation_space.shape, *setting.hidden, env.action_space.n)
    layers = [rows * columns for rows, columns in itertools.pairwise(widths)]
    act = setting.num_envs * sum(layers)
    learn = setting.batch_size * (4 * sum(layers) - layers[0])
    return 2 * (act + learn) / setting.num_envs


def peak(report: Report, rounds: int) -> float:
    """Measure and record the most FLOP per second of BLAS, on all cores, in products of float32."""
    left = np.random.default_rng(0).random((SIZE, SIZE), np.float32)
    out, found = np.empty_like(left), []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        for _ in range(20):
            np.matmul(left, left, out=out)
        found.append(20 * 2 * SIZE**3 / (time.perf_counter() - began))
    report.add("products of matrices", BLAS, PEAK, "1/s", found[1:])
    return max(found[1:])
