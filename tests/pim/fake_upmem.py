"""Folders that look like UPMEM's SDK, or like the device nodes of its ranks."""

VERSION = "2025.1.0"


def make_command(folder, name, body="exit 0"):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def make_sdk(home):
    """An SDK whose dpu-pkg-config knows the version of the library dpu, and nothing else."""
    make_command(home / "bin", "dpu-upmem-dpurte-clang")
    body = f'[ "$*" = "--modversion dpu" ] || exit 1; echo {VERSION}'
    make_command(home / "bin", "dpu-pkg-config", body)
    return home


def make_devices(folder, *names):
    """Nodes that lead nowhere: whoever opens one fails."""
    folder.mkdir()
    for name in names:
        (folder / name).symlink_to(folder / "nowhere" / name)
    return folder
