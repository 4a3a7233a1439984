"""Instructions that native code executes in its tests, against kept values: no noise moves them.

    python benchmarks/instructions.py FOLDER [--keep]

FOLDER holds the native tests as they are shipped, such as `build/native-shipped` of `make native`.
Their inputs come from fixed seeds. Valgrind counts the instructions within some functions alone;
whether results are right is not looked at, as it knows no mode without subnormal numbers. A
count may be 5 % more than that in `instructions.json`, which `--keep` writes anew: an increase that
is meant, or a test of more cases, goes there, with its reason in the commit. The counts are of one
compiler and C library; of others nothing is compared. Processors differ in nothing that was found,
an Intel Xeon and an AMD EPYC: of tabular kernels the form that every one runs is counted.
"""

import argparse
import platform
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import kept_counts

KEPT = Path(__file__).resolve().parent / "instructions.json"


class Counted(NamedTuple):
    """Test, by its path in the folder, and the functions whose instructions count."""

    test: str
    functions: tuple[str, ...]  # Valgrind's patterns; none of them calls another
    arguments: tuple[str, ...] = ()


TABLE = tuple(f"accel_rl::replay::Table::{name}(*" for name in ("push", "sample", "update"))
TREE = tuple(f"accel_rl::replay::SumTree::{name}(*" for name in ("refresh", "find"))
CORE = "replay_server/tests/replay_test_"
PROGRAMS = {
    "PER's sum tree": Counted("tests/test_sum_tree", ("accel_rl_sum_tree_*",), ("alone",)),
    "tabular passes": Counted("tests/test_passes", ("arl_run_*_base",)),
    "replay server, sum tree": Counted(f"{CORE}tree", TREE),
    "replay server, table": Counted(f"{CORE}table", TABLE),
    "replay server, AMPER": Counted(f"{CORE}amper", TABLE),
    "replay server, parser": Counted(f"{CORE}protocol", ("accel_rl::replay::parse_*",)),
}


def count(folder: Path, counted: Counted) -> int:
    """Return the instructions of a test within its functions."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    command += [f"--toggle-collect={each}" for each in counted.functions]
    command += [str(folder / counted.test), *counted.arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if found is None or int(found[1]) == 0:
        raise RuntimeError(f"{counted.test}: nothing was counted in {counted.functions}: "
                           f"{done.stdout}{done.stderr}")  # fmt: skip
    return int(found[1])


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="build of the native tests as shipped")
    parser.add_argument("--keep", action="store_true", help="write the counts to instructions.json")
    options = parser.parse_args()
    found = {name: {"instructions": count(options.folder, each)} for name, each in PROGRAMS.items()}
    compiler = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True).stdout
    made_by = f"g++ {compiler.strip()}, {' '.join(platform.libc_ver())}, {platform.machine()}"
    kept_counts.check(KEPT, made_by, found, options.keep)


if __name__ == "__main__":
    main()
