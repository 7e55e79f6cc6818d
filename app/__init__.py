"""The composer: commands, builder, threads, reports, and what `import palpo` offers.

One thing must be settled before NumPy is imported, which is why it stands here: one thread for BLAS, without
which two runs would not be bit-equal. `import palpo` alone does not come here; the first use of a name of it
does. Where NumPy was imported before, `palpo.app.library.blas` limits its threads while Palpo works.
"""

import os
import sys

NUMPY_WAS_FIRST = "numpy" in sys.modules
"""Whether NumPy may have started its threads already."""

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ[_threads] = "1"
