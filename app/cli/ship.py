"""What a wheel takes along: `python -m palpo.app.cli.ship FILE` packs the machine code in the cache.

It is for a cache that `palpo compile` has just filled and nothing else has, for a level of processors:
`make wheel` (scripts/release.py) sets both.
"""

import sys
from pathlib import Path

from palpo.app.cli.compile_ahead import generation_of
from palpo.config.systems import all_systems
from palpo.physics.numerics.kernels import kept_wholes
from palpo.physics.numerics.shipped import ship

if __name__ == "__main__":
    ship(Path(sys.argv[1]), [*kept_wholes(), *((generation_of(system), b"") for system in all_systems())])
