"""Command `dpu-pkg-config`: compiler and linker flags of host programs."""

import sys

from pim_emu.toolchain.layout import VERSION, SdkLayout

NAME = "dpu-pkg-config"
_IGNORED = {"--static", "--shared", "--print-errors", "--silence-errors", "--short-errors"}
_PACKAGES = {"dpu"}


def main(sdk: SdkLayout, arguments: list[str]) -> int:
    """Answer a query as pkg-config does; return the exit status."""
    # Makefiles name the library before the objects that need it; some linkers would then drop it.
    link = f"-Wl,--no-as-needed -Wl,-rpath,{sdk.library}"
    answers = {
        "--cflags": f"-I{sdk.host_include}",
        "--cflags-only-I": f"-I{sdk.host_include}",
        "--cflags-only-other": "",
        "--libs": f"-L{sdk.library} {link} -ldpu",
        "--libs-only-L": f"-L{sdk.library}",
        "--libs-only-l": "-ldpu",
        "--libs-only-other": link,
        "--modversion": VERSION,
        "--exists": "",
        "--variable=prefix": str(sdk.root),
        "--variable=libdir": str(sdk.library),
        "--variable=includedir": str(sdk.host_include),
    }
    if "--version" in arguments:
        print(VERSION)
        return 0
    said = []
    for word in arguments:
        if word in answers:
            said.append(answers[word])
        elif word.startswith("--atleast-version="):
            if _parts(word.partition("=")[2]) > _parts(VERSION):
                return 1
        elif word.startswith("-") and word not in _IGNORED:
            return _fail(f"unknown option {word}")
        elif not word.startswith("-") and word not in _PACKAGES:
            return _fail(f"package '{word}' not found; there is only 'dpu'")
    if any(said) and " " in str(sdk.root):  # Makefiles would take it apart
        return _fail(f"the path {sdk.root} has a space; name another folder in PIM_EMU_CACHE")
    text = " ".join(part for part in said if part)
    if text:
        print(text)
    return 0


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdigit()]


def _fail(message: str) -> int:
    print(f"{NAME}: {message}", file=sys.stderr)
    return 1
