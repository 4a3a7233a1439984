"""The benchmarks, in the order in which all are run."""

# With the options that name interpreters of rivals' environments, if they have one.
BENCHMARKS: dict[str, tuple[str, ...]] = {
    "tabular": (),
    "emulator": (),
    "dpu_kernels": (),
    "replay": ("--rivals",),
    "replay_core": (),
    "amper_study": (),
    "cliffwalk": (),
    "training": ("--rivals",),
    "compose": ("--rivals",),
    "replay_server": ("--ray", "--reverb"),
    "transports": (),
    "neighbour": (),
    "durability": (),
    "access_latency": (),
    "in_network": (),
    "apex_learning": (),
    "host_environments": ("--rivals",),
    "host_training": ("--rivals",),
    "learning": (),
    "amper_learning": (),
    "amper_tuned": (),
    "compile_time": (),
    "lowering": (),
    "growth": (),
}
