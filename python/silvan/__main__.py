"""Run the command line with ``python -m silvan``."""

import sys

from silvan.cli import main

if __name__ == "__main__":
    sys.exit(main())
