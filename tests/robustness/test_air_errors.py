"""A table of air that cannot be used is refused in one sentence: file, key, value, what would be right."""

import pytest

from palpo.config.load import load_scene
from palpo.config.words import ConfigError

REFUSED = [
    ("air.cup=cop", 'air.cup = "cop": no such body; did you mean "cup"?'),
    ("air.partner=cup", 'air.partner = "cup": a cup is set on another body; name two'),
    (
        "air.partner=ground",
        'air.partner = "ground": this body is kind = "plane"; only soft ones, "tets", shut in',
    ),
    ("air.cup=handle", 'air.cup = "handle": this body is kind = "rigid"; only soft ones'),
    ("bodies.cup.solver=multigrid", 'a wall of a cavity takes solver = "direct"'),
    ("bodies.cylinder.rate_hz=50", "with shut-in air all soft bodies have one loop; write rates.low_hz"),
    (
        "rates.low_hz=40",
        "rates.low_hz = 40: with shut-in air give 50 Hz or more: longer frames can tear off a hanging cup",
    ),
    ("interface.kind=paper", 'interface.kind = "paper": shut-in air takes kind = "krylov"'),
    ("air.sealing=3 mm", "it must not exceed alarm = 0.002 m, beyond which no gap is known"),
    ("air.sealing=0.05 mm", "it must not be below contact.distance = 0.0001 m, or nothing seals"),
    ("air.max_pressure=100 kPa", "air would leave by itself; give more than atmosphere = 101325 Pa"),
    ("air.most=9", "air.most = 9 is too large; it must be at most 4"),
    ("air.valve_button=9", "air.valve_button = 9 is too large; it must be at most 8"),
    ("air.valve_open=[[2, 1]]", "it must open at 0 or later and shut after that"),
    ("air.valve_open=[[-1, 1]]", "it must open at 0 or later and shut after that"),
    ("air.leak=1", "air.leak = 1: unknown key"),
]


@pytest.mark.parametrize(("override", "said"), REFUSED, ids=[override for override, _ in REFUSED])
def test_air_that_cannot_be_is_refused_with_what_would_be_right(override, said):
    with pytest.raises(ConfigError) as refusal:
        load_scene("mixed-cup", [override])
    sentence = str(refusal.value)
    assert said in sentence and "mixed-cup" in sentence and "\n" not in sentence
