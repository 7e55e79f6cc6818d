"""docs/scenes.md says what the specifications say."""

from pathlib import Path

from pydantic import BaseModel

from palpo.config.load import list_scenes
from palpo.config.reference import gallery_markdown, schema_markdown
from palpo.config.schema.base import Spec, is_tagged
from palpo.config.schema.profile import DeviceProfile

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_what_the_specifications_write():
    assert (ROOT / "docs" / "scenes.md").read_text("utf-8") == schema_markdown(), "run: make docs"


def test_the_gallery_shows_each_scene_once():
    page = gallery_markdown()
    assert (ROOT / "docs" / "gallery.md").read_text("utf-8") == page, "run: make docs"
    for name in list_scenes():
        assert page.count(f"### {name}\n") == 1 and page.count(f"palpo run {name}\n") == 1


def test_every_key_of_every_specification_is_explained_on_the_page():
    page = schema_markdown()
    # a test may have loaded systems from outside
    for model in (model for model in _below(Spec) if model.__module__.startswith("palpo.")):
        if model is DeviceProfile:  # no part of a scene, and written by the program itself
            continue
        for key, field in model.model_fields.items():
            if key != "kind" or not is_tagged(model):
                assert field.description, f"{model.__name__}.{key} has no description"
                assert f"| `{key}` |" in page


def _below(model: type[BaseModel]) -> list[type[BaseModel]]:
    return [found for child in model.__subclasses__() for found in (child, *_below(child))]
