"""MuJoCo's step of the slow-step benchmark's block and ball, where the package `mujoco` is there."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    import mujoco as mujoco
except ImportError:
    mujoco: Any = None  # type: ignore[no-redef]

MODEL = """
<mujoco>
  <option timestep="{h}" gravity="0 -9.81 0" integrator="{integrator}"/>
  <size memory="200M"/>
  <worldbody>
    <flexcomp name="block" type="grid" dim="3" count="{count}" spacing="{spacing}" pos="{centre}"
        mass="{mass}" radius="0.0005">
      <contact selfcollide="none" condim="3" friction="{mu} 0.005 0.0001"/>
      <elasticity young="{young}" poisson="{poisson}" damping="{beta}"/>
      <pin gridrange="0 0 0 {last} 0 {last}"/>
    </flexcomp>
    <body name="hand" mocap="true" pos="{ball}"/>
    <body name="ball" pos="{ball}">
      <freejoint/>
      <geom type="sphere" size="{radius}" mass="{ball_mass}" condim="3" friction="{mu} 0.005 0.0001"/>
    </body>
  </worldbody>
  <equality><weld body1="hand" body2="ball" solref="-{stiffness} -{damping}"/></equality>
</mujoco>
"""
"""Solver, cone and tolerances are MuJoCo's own defaults. Weld and contacts are as soft as it makes them, so
that the forces are not ours: what is compared is the cost of a step of as many elements and freedoms."""


class MujocoBlock:
    """The same grid of nodes under the same ball, led by a hand; `values` fill in MODEL.

    Raises ImportError without mujoco.
    """

    def __init__(self, h: float, ball: NDArray[np.float64], **values: Any) -> None:
        if mujoco is None:
            raise ImportError("mujoco is not installed")
        # it would write a file where the user happens to be; `sound` asks for what matters
        mujoco.set_mju_user_warning(lambda _: None)
        # elastic bodies are integrated implicitly by this one only since it exists
        implicit = "discrete" if hasattr(mujoco.mjtIntegrator, "mjINT_DISCRETE") else "implicitfast"
        place = " ".join(str(x) for x in ball)
        self._model = mujoco.MjModel.from_xml_string(
            MODEL.format(h=h, integrator=implicit, ball=place, **values)
        )
        self._data = mujoco.MjData(self._model)

    def step(self, hand: NDArray[np.float64]) -> float:
        """A step with the hand there [m]; its CPU time [s]."""
        self._data.mocap_pos[0] = hand
        start = time.process_time()
        mujoco.mj_step(self._model, self._data)
        return time.process_time() - start

    def size(self) -> dict[str, int]:
        """Of the model, and contacts of the last step."""
        return {
            "freedoms": int(self._model.nv),
            "tetrahedra": int(self._model.nflexelem),
            "contacts": int(self._data.ncon),
        }

    def sound(self) -> bool:
        """Whether it has come this far without an instability."""
        bad = mujoco.mjtWarning.mjWARN_BADQACC, mujoco.mjtWarning.mjWARN_BADQPOS
        return not any(self._data.warning[int(kind)].number for kind in bad)
