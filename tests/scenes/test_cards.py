"""The launcher's cards: one for each shipped scene, under a heading, with a picture that shows something."""

import numpy as np
import pytest

from palpo.app.runtime.cards import cards
from palpo.app.systems.system import find_system
from palpo.config.load import CARDS, list_scenes
from palpo.config.systems import SYSTEMS

HEADINGS = [find_system(name).heading for name in SYSTEMS]
ALL = cards()


def test_every_shipped_scene_has_a_card_and_no_picture_is_left_over():
    assert sorted(card.name for card in ALL) == sorted(list_scenes())
    assert {path.stem for path in CARDS.iterdir()} == set(list_scenes())


def test_cards_of_a_heading_stand_together_in_the_order_of_the_headings():
    order = [HEADINGS.index(card.group) for card in ALL]
    assert order == sorted(order)
    assert len(set(HEADINGS)) == len(SYSTEMS)


@pytest.mark.parametrize("card", ALL, ids=lambda card: card.name)
def test_a_card_has_a_title_a_sentence_and_a_picture_of_its_own(card):
    assert card.title and card.words[0].isupper() and card.words.endswith(".")
    assert card.picture.shape == (200, 300, 3)
    # bodies before the sky, not an empty ground
    middle = card.picture[40:-20, 60:-60].reshape(-1, 3)
    assert middle.std(axis=0).max() > 15.0
    alike = [o.name for o in ALL if o is not card and np.array_equal(o.picture, card.picture)]
    assert not alike
