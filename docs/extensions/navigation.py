"""Navigation of the site: five groups of pages, and which pages lie under which.

Kept here and not in the pages, which a forge shows too, where a table of contents is no block.
"""

from collections.abc import Mapping

from sphinx.application import Sphinx

ROOT = "docs/index"
# Of each group: titles and pages.
GROUPS: dict[str, dict[str, str]] = {
    "Start": {
        "Overview": "README",
        "Notebooks": "docs/course",
        "Tutorials": "docs/tutorials/index",
        "Coming from another library": "docs/coming-from",
        "The four papers": "docs/papers/index",
        "Results": "docs/benchmarks",
    },
    "Train": {
        "Command line": "docs/cli",
        "Configuration": "docs/configuration",
        "Environments": "docs/environments",
        "Logs of experience": "docs/datasets",
        "Checkpoints and metrics": "docs/checkpoints",
        "Actors and learners in threads": "docs/pipelined",
        "From one core to a pod": "docs/scaling",
    },
    "Replay": {
        "Replay buffers": "docs/replay",
        "AMPER": "docs/amper",
        "Associative memory": "docs/associative-memory",
        "Replay over a network": "docs/apex",
    },
    "Hardware": {
        "Training on DPUs": "docs/upmem-backend",
        "pim_emu": "docs/pim-emu",
        "Cost model of DPUs": "docs/cost-model",
        "Composing over devices": "docs/compose",
        "Models of AM hardware": "docs/am-hardware",
    },
    "Extend": {
        "Parts of your own": "docs/extending/index",
        "Architecture": "docs/architecture",
        "Reference": "docs/reference/index",
        "Contributing": "CONTRIBUTING",
    },
}
# Pages under a page; their titles are their own.
UNDER: dict[str, list[str]] = {
    "docs/course": [
        "notebooks/01_tabular_on_pim",
        "notebooks/02_a_dpu_program",
        "notebooks/03_native_upmem",
        "notebooks/04_replay_and_amper",
        "notebooks/05_dqn_in_one_jit",
        "notebooks/06_compose",
        "notebooks/07_replay_over_the_network",
    ],
    "docs/tutorials/index": [
        "docs/tutorials/first-hour",
        "docs/tutorials/compose-a-loop",
        "docs/tutorials/vmap-seeds-and-sweep",
        "docs/tutorials/swap-the-replay",
        "docs/tutorials/train-on-pim",
        "docs/tutorials/write-a-dpu-kernel",
        "docs/tutorials/plan-over-devices",
        "docs/tutorials/many-machines",
    ],
    "docs/coming-from": [
        "docs/coming-from-flashbax",
        "docs/coming-from-purejaxrl",
        "docs/coming-from-sb3",
        "docs/coming-from-reverb",
    ],
    "docs/papers/index": [
        "docs/papers/swiftrl",
        "docs/papers/amper",
        "docs/papers/pearl",
        "docs/papers/in-network",
    ],
    "docs/benchmarks": ["benchmarks/README", "docs/learning-results", "docs/scoreboard"],
    "docs/apex": [
        "docs/replay-server",
        "docs/replay-transports",
        "docs/deployment",
        "docs/replay-dpdk",
        "docs/replay-protocol",
    ],
    "docs/compose": ["docs/compose-model", "docs/compose-device"],
    "docs/am-hardware": ["docs/rtl"],
    "docs/upmem-backend": ["docs/tabular-semantics", "docs/native-kernels"],
    "docs/extending/index": [
        "docs/extending/algorithm",
        "docs/extending/environment",
        "docs/extending/replay",
        "docs/extending/device",
        "docs/extending/transport",
        "docs/agent",
        "docs/training-program",
        "docs/replay-sampler",
        "docs/tabular-rule",
        "docs/pim-backend",
    ],
    "CONTRIBUTING": ["kernels/README", "docs/releasing", "CHANGELOG"],
}


def _block(pages: Mapping[str, str] | list[str], caption: str = "") -> str:
    """Return a hidden table of contents in MyST."""
    named = pages.items() if isinstance(pages, Mapping) else (("", page) for page in pages)
    lines = [f"{title} </{page}>" if title else f"/{page}" for title, page in named]
    options = [":hidden:", ":maxdepth: 1", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["", "```{toctree}", *options, "", *lines, "```", ""])


def _add(app: Sphinx, page: str, source: list[str]) -> None:
    if page == ROOT:
        source[0] += "".join(_block(pages, group) for group, pages in GROUPS.items())
    elif page in UNDER:
        source[0] += _block(UNDER[page])


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the navigation to pages as they are read.

    Args:
      app: Sphinx.
    """
    app.connect("source-read", _add)
    return {"parallel_read_safe": True}
