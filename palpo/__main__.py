"""`python -m palpo`: the command `palpo`."""

import sys

from palpo.app.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
