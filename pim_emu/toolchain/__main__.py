"""Entry point of the SDK's commands: arguments are the command's name and the SDK folder first."""

import sys
from pathlib import Path

from pim_emu.toolchain import driver, pkg_config, tools
from pim_emu.toolchain.layout import SdkLayout

COMMANDS = {
    driver.NAME: driver.main,
    pkg_config.NAME: pkg_config.main,
    tools.DIAGNOSE: tools.diagnose,
    tools.DEBUG: tools.debug,
}

if __name__ == "__main__":
    name, root, *arguments = sys.argv[1:]
    sys.exit(COMMANDS[name](SdkLayout(Path(root)), arguments))
