"""The rates of the loops."""

from typing import Annotated

from pydantic import Field, model_validator

from palpo.config.schema.base import Default, Flag, Spec, refuse
from palpo.config.schema.units import Frequency
from palpo.config.words import in_words


class Rates(Spec):
    """The servo's rate is a whole multiple of the slow rate."""

    servo_hz: Frequency = Field(1000.0, ge=100, le=4000, description="Rate of the servo and of the tool.")
    low_hz: Annotated[Frequency, Default(suction=100.0)] = Field(
        50.0,
        ge=1,
        description="Rate of the soft bodies, unless one has its own, and of cavities and pressures.",
    )
    adapt: Flag | None = Field(
        None,
        description="Lower the slow rate, down to 10 Hz, then the effort in a step, while this machine "
        "cannot keep it; without it, unless `--set` gave `low_hz`. Where bodies shut air in, both stay.",
    )
    render_hz: Frequency = Field(
        60.0,
        gt=0,
        le=240,
        description="Pictures a second at most, 30 where the processor draws; needs no ratio.",
    )

    @model_validator(mode="after")
    def _whole_ratio(self) -> "Rates":
        if said := self.refusal(self.low_hz):
            raise refuse(said, "low_hz")
        return self

    def refusal(self, hz: float) -> str:
        """Why a slow loop cannot have this rate, and what would be right; empty if it can."""
        ratio = self.servo_hz / hz
        if ratio < 1:
            return f"the slow rate is at most servo_hz = {self.servo_hz:g}"
        if abs(ratio - round(ratio)) > 1e-9 * ratio:
            said = f"{self.servo_hz:g}/{hz:g} is no integer"
            return f"{said}; use {in_words([f'{rate:g}' for rate in self._near(hz)])}"
        return ""

    def _near(self, hz: float) -> list[float]:
        """The nearest admissible slow rate below, and two above, in whole hertz where that can be."""
        ratios = range(1, int(self.servo_hz) + 1)
        rates = sorted(self.servo_hz / n for n in ratios if self.servo_hz % n == 0) or [self.servo_hz]
        below = [rate for rate in rates if rate < hz][-1:]
        return below + [rate for rate in rates if rate > hz][:2]

    def ratio_of(self, hz: float | None) -> int:
        """Servo steps in one step of a loop of that rate, of the slow rate where it has none of its own."""
        return round(self.servo_hz / (self.low_hz if hz is None else hz))

    @property
    def ratio(self) -> int:
        """Servo steps in one slow step."""
        return self.ratio_of(None)

    @property
    def dt(self) -> float:
        """Servo period [s]."""
        return 1.0 / self.servo_hz

    @property
    def low_dt(self) -> float:
        """Slow period [s], exactly `ratio` servo periods."""
        return self.ratio * self.dt
