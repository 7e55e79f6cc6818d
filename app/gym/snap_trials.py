"""Episodes of snap connections side by side: what is drawn, where targets go, what is seen and worth."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.app.gym.drawn import known_only
from palpo.app.gym.snap_plant import BACK, BOUND, BREAKING, COST, LATCHED, TICKS, Plant, VariantRig
from palpo.config.words import Refusal
from palpo.physics.numerics.math3 import quat_from_rotvec, quat_multiply
from palpo.physics.systems.snap.episode import SEEN, SENSED, advance_all, advance_one, claims

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Observation = NDArray[np.float32]


class StepOutcome(NamedTuple):
    """Of a step, in each of m episodes."""

    observation: Observation  # (m, 18)
    reward: Floats  # (m,)
    over: Flags  # (m,)
    told: dict[str, Any]  # arrays (m,): how the plug stands, without error or delay


class Trials:
    """n episodes at once, one after the other in each place; threads: that make a step."""

    def __init__(self, plant: Plant, n: int = 1, threads: int = 1) -> None:
        self.plant = plant
        self.rigs: list[VariantRig | None] = [None] * n
        self._addresses, self._stroke, self._best = np.zeros(n, np.int64), np.ones(n), np.zeros(n)
        self._seen, self._noise, self._claims = np.zeros((n, SEEN)), np.zeros((n, SENSED)), claims(n)
        self._helpers = threads - 1
        self._pool = ThreadPoolExecutor(threads - 1, "snap") if threads > 1 else None

    def begin(
        self, i: int, rng: np.random.Generator, options: dict[str, Any] | None
    ) -> tuple[Observation, dict[str, Any]]:
        """Draw an episode for place i, but for what `options` give, and lead its first tick.

        What is seen (18,), how the plug stands and what was drawn. Raises Refusal for an unknown option, a
        variant or a delay that there is not.
        """
        plant, e = self.plant, self.plant.errors
        push = plant.nominal.push
        across = np.eye(3) - np.outer(push, push)
        drawn, variant, late = (
            rng.uniform(-1.0, 1.0, 7),
            rng.integers(plant.variants),
            rng.integers(plant.latest + 1),
        )
        drew: dict[str, Any] = {
            "position": e.position * across @ drawn[:3], "tilt": e.tilt * drawn[3:6],
            "friction": plant.nominal.friction * (1.0 + e.friction * drawn[6]),
            "delay": late * plant.scene.rates.dt, "variant": int(variant),
        }  # fmt: skip
        drew |= known_only(options, list(drew), "reset")
        rig = self._take(i, int(drew["variant"]), float(drew["delay"]))
        side, own = rig.side, plant.scene.misalignment
        side.grip.offset[:] = own.position + np.array(drew["position"], float)
        quat_multiply(_quaternion(drew["tilt"]), np.array(own.quaternion), side.grip.rest)
        side.snap.search.settings["friction"] = drew["friction"]
        rig.episode.command[:3] = -BACK * push
        self._best[i] = 0.0
        advance_one(rig.handle, rig.episode.command.copy(), 1, self._seen[i])
        drew["modulus"] = rig.model.connector.material.youngs_modulus
        who = np.array([i])
        told = {name: value[0].item() for name, value in self._told(who).items()}
        return self._observe(who, [rng])[0], {**told, **drew}

    def _take(self, i: int, variant: int, delay: float) -> VariantRig:
        """The variant's rig to place i, its sensors that late."""
        plant = self.plant
        late = round(delay / plant.scene.rates.dt)
        if not (0 <= variant < plant.variants and 0 <= late <= plant.latest):
            raise Refusal(
                f"reset: variant {variant} at a delay of {delay:g} s; there are {plant.variants} variants, "
                f"and delays up to {plant.latest * plant.scene.rates.dt:g} s"
            )
        before = self.rigs[i]
        if before is not None:
            plant.give(before)
        rig = self.rigs[i] = plant.take(variant)
        rig.episode.told["late"], rig.episode.told["well"] = late, 1
        self._addresses[i], self._stroke[i] = rig.handle.address, rig.model.connector.stroke
        return rig

    def step(
        self, who: NDArray[np.intp], actions: ArrayLike, rngs: Sequence[np.random.Generator]
    ) -> StepOutcome:
        """The next step of the episodes in m places, all of which have begun; actions (m, 6)."""
        plant = self.plant
        wanted = self._seen[who, :6] + plant.rate * np.clip(np.asarray(actions, float), -1.0, 1.0)
        self._advance(who, np.clip(wanted, plant.low, plant.high))
        told = self._told(who)
        share, force = told["travel_m"] / self._stroke[who], told["force_N"] / plant.unit_force
        broken = (self._seen[who, -1] == 0.0) | (force > BREAKING)
        reward = np.fmax(0.0, share - self._best[who]) - COST * np.fmin(force, BOUND)
        self._best[who] = np.fmax(self._best[who], share)
        return StepOutcome(
            self._observe(who, rngs), reward + told["latched"] - broken, told["latched"] | broken, told
        )

    def _advance(self, who: NDArray[np.intp], goals: Floats) -> None:
        """Those episodes, by all threads."""
        if not len(who):
            return
        first = self.rigs[who[0]]
        assert first is not None
        seen, self._claims[:] = np.zeros((len(who), SEEN)), 0
        work: Any = first.handle, self._addresses[who], goals, TICKS, seen, self._claims
        helpers = min(self._helpers, len(who) - 1)
        helping = [self._pool.submit(advance_all, *work) for _ in range(helpers)] if self._pool else []
        advance_all(*work)
        for one in helping:
            one.result()
        self._seen[who] = seen

    def _told(self, who: NDArray[np.intp]) -> dict[str, Any]:
        travel = self._seen[who, 6 + SENSED]
        latched = travel >= LATCHED * self._stroke[who]
        return {"travel_m": travel, "force_N": self._seen[who, 7 + SENSED], "latched": latched}

    def _observe(self, who: NDArray[np.intp], rngs: Sequence[np.random.Generator]) -> Observation:
        """What the agents see, (m, 18)."""
        noise = self._noise[: len(who)]
        for row, rng in zip(noise, rngs, strict=True):
            rng.standard_normal(out=row)
        seen = self._seen[who, : 6 + SENSED] / self.plant.unit
        seen[:, 6:] += self.plant.errors.noise * noise
        seen[np.isnan(seen)] = 0.0
        return np.clip(seen, -BOUND, BOUND).astype(np.float32)

    def close(self) -> None:
        """Give threads back."""
        if self._pool is not None:
            self._pool.shutdown()


def _quaternion(turn: ArrayLike) -> Floats:
    """(w, x, y, z) of a rotation vector (3,) [rad]."""
    q = np.empty(4)
    quat_from_rotvec(np.asarray(turn, float), q)
    return q
