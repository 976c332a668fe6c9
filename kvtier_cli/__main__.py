"""`python -m kvtier_cli` is `kvtier`."""

import sys

from kvtier_cli.main import program

sys.exit(program())
