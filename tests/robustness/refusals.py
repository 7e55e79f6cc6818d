"""How a scene file is refused."""

import pytest

from palpo.config.load import parse_scene
from palpo.config.words import ConfigError


def refused(scene: str, file: str, override: str) -> str:
    """The sentence, one line that begins with the file, with which a key of a scene is refused."""
    with pytest.raises(ConfigError) as refusal:
        parse_scene(scene, file, [override])
    sentence = str(refusal.value)
    assert sentence.startswith(f"{file}: ") and "\n" not in sentence
    return sentence
