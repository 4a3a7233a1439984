"""Counts of what programs cost, against those that a file keeps."""

import json
import sys
from pathlib import Path

from accel_rl.io import atomic_write

SLACK = 1.05
Counts = dict[str, dict[str, int]]  # by program, and by what is counted


def check(path: Path, made_by: str, found: Counts, keep: bool) -> None:
    """Keep counts, or exit with 1 where one is more than 5 % above the file's.

    Args:
      path: JSON, beside the script that counts.
      made_by: what the counts are of, such as a compiler. Under another nothing is compared.
      found: the counts.
      keep: write them.
    """
    if keep:
        with atomic_write(path, "w") as file:
            file.write(json.dumps({"made_by": made_by, "costs": found}, indent=1) + "\n")
        return
    kept = json.loads(path.read_text())
    if kept["made_by"] != made_by:
        print(f"kept counts are of {kept['made_by']}, this is {made_by}")
        return
    failures = compare(kept["costs"], found)
    print("\n".join(failures) or f"{len(found)} programs cost what they did")
    sys.exit(bool(failures))


def compare(kept: Counts, found: Counts) -> list[str]:
    """Return what is missing, new, or costs more than it did."""
    names = kept.keys() ^ found.keys()
    failures = [f"{name}: kept or found, but not both: --keep" for name in sorted(names)]
    for name in kept.keys() & found.keys():
        for what, before in kept[name].items():
            now = found[name][what]
            if now > before * SLACK:
                failures.append(f"{name}: {what}: {now:,}, not {before:,}")
    return failures
