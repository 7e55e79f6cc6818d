"""A Poisson's ratio that is asked for while a run goes on, and cannot be had."""

from types import SimpleNamespace

import pytest

from palpo.app.systems.hapco.renewal import RatioRenewal


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError("no space left on device"), "no space left"),
        (MemoryError(), "not enough memory"),
        (RuntimeError("the factor is singular"), "singular"),
    ],
    ids=["disk", "memory", "factor"],
)
def test_what_keeps_a_ratio_from_being_made_is_said_and_not_waited_for(error, said):
    def fail(*_given):
        raise error

    body = SimpleNamespace(
        name="tissue", material=SimpleNamespace(poisson_ratio=0.3), with_poisson_ratio=fail
    )
    renewal = RatioRenewal([body], background=True, say=lambda _words: None)
    assert not renewal.ready([0.2])
    renewal._making.join(10.0)
    with pytest.raises(RuntimeError, match=f"K\\^-1 of tissue for nu = 0.2.*{said}"):
        renewal.ready([0.2])
