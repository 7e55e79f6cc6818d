"""What an operator may change of the quasi-static servo, which computes everything itself."""

import numpy as np

from palpo.physics.exchange.gains import GAINS

VALUES = np.dtype(
    [("friction", np.float64), ("tolerance", np.float64), ("sweeps", np.int64), ("time_cap", np.float64),
     ("collision", np.float64), ("modulus", np.float64, (2,)), ("renewed", np.float64, (2,)),
     ("hold", GAINS), ("stylus_weight", np.float64), ("stylus_friction", np.float64),
     ("zoom_scale", np.float64), ("zoom_range", np.float64),
     ("solver", np.int64), ("rho", np.float64), ("rho_factor", np.float64), ("error_kind", np.int64),
     ("gauss_seidel_error", np.float64), ("uzawa_error", np.float64)]
)  # fmt: skip
"""What may change: mu of all contacts [-]; of the contact solver, natural-map residual, most sweeps and most
time [s] (0 for no limit); gap below which a vertex is a contact [m], inf for all of them; Young's modulus of
the mobile and of the fixed body over the one that they were built with, and the share in each of the boundary
that was made for another Poisson's ratio (0: none); the hold's gains; force upward, and force along the
hand's velocity, that make up for the stylus's own [N]; share of the hand's motion that is left at contact (1:
no zoom), and the gap where that begins [m]; one of ANDERSON to UZAWA_LOCAL. Then of Uzawa's method: rho
[N/m], 0 for rho_min of W, and what multiplies either [-]; the stop of its sweeps, RESIDUAL, RELATIVE or
PHYSICAL of physics.contact.solvers.relaxation, and the error of the last two [-] (the residual's is the
tolerance); and the stop of the local method at a contact, in shares of the largest free gap or slip [-]."""

ANDERSON, UZAWA_GLOBAL, NEWTON, GAUSS_SEIDEL, MAXIMAL_DISSIPATION, UZAWA_LOCAL = range(6)
"""Values of VALUES' solver: accelerated sweeps; Uzawa's method, one step a visit; Newton's between sweeps;
sweeps as they are; maximal dissipation; or Uzawa's with steps to a stop. All but the last are a solver's
place in the engine's list."""
