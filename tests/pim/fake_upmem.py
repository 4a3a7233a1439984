"""Folders that look like UPMEM's SDK, or like the device nodes of its ranks."""

import re

from pim_emu.sdk import sdk_path

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


def make_working_sdk(home):
    """An SDK that builds and runs: the emulator's, in the form of the vendor's.

    Nothing marks it as the emulator's, and its headers are in C alone, as UPMEM's are.
    """
    emulator = sdk_path()
    for name in ("bin/dpu-upmem-dpurte-clang", "lib/libdpu.so"):
        (home / name).parent.mkdir(parents=True)
        (home / name).symlink_to(emulator / name)
    answers = {
        "--cflags dpu": f"-I{home}/include/dpu",
        "--libs dpu": f"-L{home}/lib -Wl,-rpath,{home}/lib -ldpu",
        "--modversion dpu": VERSION,
    }
    cases = "".join(f'"{query}") echo "{answer}";; ' for query, answer in answers.items())
    make_command(home / "bin", "dpu-pkg-config", f'case "$*" in {cases}*) exit 1;; esac')
    headers = home / "include" / "dpu"
    headers.mkdir(parents=True)
    for path in (emulator / "include" / "dpu").glob("*.h"):
        text = re.sub(r"#ifdef __cplusplus\n.*?#endif\n", "", path.read_text(), flags=re.DOTALL)
        if path.name != "pim_emu.h":
            (headers / path.name).write_text(text)
    return home


def make_devices(folder, *names):
    """Nodes that lead nowhere: whoever opens one fails."""
    folder.mkdir()
    for name in names:
        (folder / name).symlink_to(folder / "nowhere" / name)
    return folder
