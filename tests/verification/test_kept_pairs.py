"""When a pair of candidates is looked at again: what the servo saw itself outlives the frame it saw it in."""

import numpy as np

from palpo.physics.collision.proximity_contacts import Pairs
from palpo.physics.engine.pairs import keep_due

ROOM, JUMP = 400, 0.25


def some_pairs(rng: np.random.Generator, n: int) -> list[tuple[int, int, int]]:
    """n different ones, sorted as frames have them."""
    whole = np.stack(np.unravel_index(rng.permutation(3 * 12 * 12)[:n], (3, 12, 12)), axis=1)
    return sorted(map(tuple, whole.tolist()))


def columns(pairs: list[tuple[int, int, int]]) -> Pairs:
    room = np.zeros((3, ROOM), np.int32)
    room[:, : len(pairs)] = np.array(pairs).reshape(-1, 3).T
    return Pairs(*room)


def test_what_was_seen_of_a_pair_holds_in_the_next_frame_but_for_the_jump_of_the_model() -> None:
    """Over frames with more pairs, fewer and other ones, against a table by the pairs themselves."""
    rng = np.random.default_rng(3)
    last, count, due, out = columns([]), np.zeros(1, np.int64), np.zeros(ROOM), np.zeros(ROOM)
    seen: dict[tuple[int, int, int], float] = {}
    for n in (0, 150, 300, 40, 0, 220):
        pairs, told = some_pairs(rng, n), rng.random(n)
        keep_due(last, count, due, columns(pairs), told, JUMP, out)
        expected = [max(t, seen.get(pair, -1.0) - JUMP) for pair, t in zip(pairs, told, strict=True)]
        assert count[0] == n
        assert due[:n].tolist() == expected
        # some are looked at while the frame is in force
        due[:n:3] += 2.0 * rng.random(len(due[:n:3]))
        seen = dict(zip(pairs, due[:n].tolist(), strict=True))
