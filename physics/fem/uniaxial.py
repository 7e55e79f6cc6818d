"""A straight bar of any law that is pulled or pressed and free across: its stress by the stretch alone."""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem.law import IsotropicLaw
from palpo.physics.fem.laws import LAWS, LINEAR
from palpo.physics.fem.material import Material

Floats = NDArray[np.float64]

STEPS = 40
"""Of Newton's method for the stretch across, each at most halving or doubling it."""
SETTLED = 1e-12


def nominal_stress(material: Material, stretches: Floats) -> Floats:
    """Force over the area at rest [Pa], (k,), at stretches (k,) above 0; NaN where nothing is in balance.

    F = diag(a, b, b) with b such that nothing pulls across. Of the linear law, whose small strain is that of
    turned axes, it is E (a - 1).
    """
    if material.law == LINEAR:
        return material.youngs_modulus * (stretches - 1.0)
    return _free_across(
        LAWS[material.law](*material.lame(), material.shape), stretches, material.poisson_ratio
    )


def _free_across(law: IsotropicLaw, stretches: Floats, ratio: float) -> Floats:
    across = stretches**-ratio
    f = np.zeros((len(stretches), 3, 3))
    change = np.ones_like(stretches)
    for _ in range(STEPS):
        f[:, 0, 0], f[:, 1, 1], f[:, 2, 2] = stretches, across, across
        d = law.tangent(f)
        change = -law.stress(f)[:, 1, 1] / (d[:, 4, 4] + d[:, 4, 8])
        across = across + np.clip(change, -0.5 * across, across)
        if np.abs(change).max(initial=0.0) < SETTLED:
            break
    f[:, 1, 1], f[:, 2, 2] = across, across
    return np.where(np.abs(change) < 1e-6, law.stress(f)[:, 0, 0], np.nan)
