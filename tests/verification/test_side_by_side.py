"""Work shared by two threads: each number once, results in order, and what a call raises is raised."""

from threading import Barrier, get_ident

import pytest

from palpo.physics.systems.suction.side_by_side import SideBySide


@pytest.fixture
def each():
    two = SideBySide()
    yield two
    two.close()


@pytest.mark.parametrize("n", [0, 1, 2, 17])
def test_every_number_is_taken_once_and_results_stand_in_their_order(each, n):
    taken = []
    assert each(lambda i: taken.append(i) or i * i, n) == [i * i for i in range(n)]
    assert sorted(taken) == list(range(n))


def test_two_numbers_are_in_work_at_once(each):
    # neither call ends before the other has begun
    both = Barrier(2, timeout=10)

    def meet(_: int) -> int:
        both.wait()
        return get_ident()

    assert len(set(each(meet, 2))) == 2


@pytest.mark.parametrize("bad", [0, 1, 5])
def test_what_a_call_raises_is_raised_and_the_next_use_works(each, bad):
    def work(i: int) -> int:
        if i == bad:
            raise FloatingPointError("no longer finite")
        return i

    with pytest.raises(FloatingPointError, match="no longer finite"):
        each(work, 6)
    assert each(lambda i: i, 6) == list(range(6))
