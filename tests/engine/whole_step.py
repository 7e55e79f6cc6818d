"""A whole step of an engine as a C function, for scenes that need nothing beside it."""

import numpy as np
from numba import typeof, types

from palpo.physics.compliance.fixed import FIXED, make_fixed
from palpo.physics.engine.build import make_engine
from palpo.physics.engine.tick import step
from palpo.physics.exchange.handle import HandleType
from palpo.physics.numerics.kernels import callback

ENGINE = typeof(make_engine([FIXED.bind(make_fixed(np.zeros((1, 3))))], [], 1, 1e-3).engine)


@callback(types.int32(HandleType(ENGINE)))
def engine_step(e):
    """`int32 f(void *)`: one step of the engine behind the handle; DONE or NOT_FINITE."""
    return step(e)
