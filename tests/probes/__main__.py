"""`kvtier` with the probes in the place of its commands."""

import sys

from kvtier_cli import main

main.COMMANDS = {
    "probe": ("tests.probes.probe", "Does what it is told."),
    "pair": ("tests.probes.pair", "Two of them."),
}
sys.exit(main.main())
