"""What a step of cups remembers of its contacts, of which some come, some go and some no longer bear."""

import numpy as np

from palpo.physics.engine.contacts import append, make_contacts
from palpo.physics.engine.memory import make_memory
from palpo.physics.exchange.handle import Handle
from palpo.physics.kernels import kernel
from palpo.physics.suction.contacts import WORLD, recall_all, remember_all

UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])
CUPS, H = 2, 0.01


@kernel
def _append(contacts, identity, first, second):
    return append(contacts, identity, first, second)


def laid(numbers, ground):
    """Contacts of those numbers, below 100 of cup 0 and below 200 of cup 1, and of the ground."""
    contacts = make_contacts(64)
    contacts.frame[:] = np.eye(3)
    for number in sorted(numbers):
        _append(contacts, number, number // 100, CUPS)
    for number in ground:
        _append(contacts, number, CUPS, WORLD)
    return contacts, np.array([*sorted(numbers), *ground])


def test_what_bore_has_its_own_force_again_and_what_is_new_has_none():
    rng = np.random.default_rng(3)
    memory = Handle(make_memory(64))
    before, numbers = laid(rng.choice(200, 30, replace=False), 200 + rng.permutation(9))
    force = np.where(rng.random(len(numbers))[:, None] < 0.6, rng.standard_normal((len(numbers), 3)), 0.0)
    before.force[: len(numbers)] = force
    solved = np.arange(len(numbers))
    remember_all(memory, Handle(before), solved, np.zeros(3 * len(solved)), UPRIGHT)

    kept = numbers[numbers < 200][rng.random((numbers < 200).sum()) < 0.7]
    now, after = laid({*kept.tolist(), *range(5, 195, 7)}, 200 + rng.permutation(12))
    recall_all(memory, Handle(now), UPRIGHT, H)
    known = dict(zip(numbers.tolist(), force, strict=True))
    expected = np.array([known.get(number, np.zeros(3)) for number in after.tolist()])
    # UPRIGHT turns nothing: to the bit
    np.testing.assert_array_equal(now.force[: len(after)], expected)
    assert (expected != 0.0).any() and len(after) > len(kept), "or the test shows nothing"
