"""A scene of parts in Python is the scene of a file: the same words, checks, sentences and forces."""

import numpy as np
import pytest

import palpo
from palpo.app.library.scene import Scene
from palpo.config import parts
from palpo.config.schema.base import Spec
from palpo.config.schema.scene import BaseScene
from palpo.config.systems import SYSTEMS

NO_PARTS = {"GridGeometry", "Place", "SealedGas", "DeviceProfile"}
"""What parts have in common, and the file that tells of a device."""


def of_parts(scene):
    """The scene, made of the parts that it was found to have."""
    spec = scene.spec
    return Scene(
        **{key: getattr(spec, key) for key in type(spec).model_fields if key in spec.model_fields_set}
    )


@pytest.mark.parametrize("name", palpo.scenes())
def test_a_scene_that_is_saved_is_loaded_as_it_was_also_from_another_folder(name, tmp_path):
    scene = palpo.load(name)
    scene.save(tmp_path / "saved.toml")
    assert palpo.Scene.load(tmp_path / "saved.toml") == scene


@pytest.mark.parametrize("name", palpo.scenes())
def test_a_scene_of_the_parts_of_a_file_is_that_of_the_file_and_survives_being_saved(name, tmp_path):
    loaded, made = palpo.load(name), of_parts(palpo.load(name))
    assert made == loaded
    made.save(tmp_path / "saved.toml")
    assert palpo.load(tmp_path / "saved.toml") == loaded


# ticks until the hand feels something
@pytest.mark.parametrize(
    ("name", "ticks"), [("beams", 650), ("hapco-soft", 1000), ("snap", 900), ("suction-cube", 100)]
)
def test_a_scene_of_parts_has_the_forces_of_the_file_bit_for_bit(name, ticks, tmp_path):
    loaded = palpo.load(name)
    of_parts(loaded).save(tmp_path / "saved.toml")
    forces = []
    for scene in (loaded, palpo.load(tmp_path / "saved.toml")):
        forces.append(scene.build().start().step(ticks=ticks).force)
    assert np.any(forces[0]) and np.array_equal(*forces)


def test_a_scene_saved_elsewhere_still_finds_its_meshes_and_nothing_is_changed_in_its_own_folder(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "organ.msh").touch()
    organ = palpo.Soft(
        name="organ", material="liver", geometry=palpo.VolumeFile(path=tmp_path / "organ.msh", scale=0.001)
    )
    ball = palpo.Rigid(name="ball", rate="high", mass=0.1, geometry=palpo.Sphere(radius=0.01))
    made = palpo.Scene(title="An organ", bodies=[organ, ball], tool=palpo.Tool(body="ball"))
    text = made.to_toml().replace(str(tmp_path / "organ.msh"), "organ.msh")
    (tmp_path / "beside.toml").write_text(text, "utf-8")
    beside = palpo.load(tmp_path / "beside.toml")
    for folder in (tmp_path, tmp_path / "there"):
        beside.save(folder / "saved.toml")
        assert palpo.load(folder / "saved.toml") == made
    assert (tmp_path / "saved.toml").read_text("utf-8") == text


def test_every_part_of_a_scene_and_every_key_of_one_has_its_name_in_python():
    def below(model):
        return [found for child in model.__subclasses__() for found in (child, *below(child))]

    # a test may have loaded systems from outside
    known = {
        model.__name__
        for model in below(Spec)
        if model.__module__.startswith("palpo.") and not issubclass(model, BaseScene)
    }
    assert {name for name in known if not name.startswith("_")} - NO_PARTS == set(parts.__all__)
    assert set(parts.__all__) < set(palpo.__all__)
    keys = set().union(*(scene.model_fields for scene in SYSTEMS.values()))
    assert set(parts.SceneKeys.__annotations__) == keys


def test_values_are_numbers_of_numpy_texts_with_units_tables_and_parts_alike():
    written = palpo.Capsule(radius="2 mm", length=np.float64(0.1))
    assert written == palpo.Capsule(radius=0.002, length=0.1)
    place = palpo.Placement(position=np.array([0.0, 1.0, 0.0]))
    one = palpo.Rigid(name="one", mass=1.0, geometry=written, placement=place, density=None)
    assert one == palpo.Rigid(
        name="one", mass=1.0, geometry={"kind": "capsule", "radius": 0.002, "length": 0.1},
        placement={"position": [0, 1, 0]},
    )  # fmt: skip
    assert palpo.Elastic.named("liver", density=900.0) == palpo.Elastic(name="liver", density=900.0)
    assert palpo.Elastic.named("liver").tables() == {"name": "liver"}


BALL = palpo.Rigid(name="ball", rate="high", mass=0.1, geometry=palpo.Sphere(radius=0.01))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: palpo.Sphere(radius=-1), "Sphere: radius = -1 is too small; it must be above 0"),
        (lambda: palpo.Sphere(radis=1), 'Sphere: radis = 1: unknown key; did you mean "radius"?'),
        (lambda: palpo.Sphere(radius={1, 2}), "Sphere: a set is no value of a scene: give a number, text"),
        (lambda: palpo.Soft(name="a", geometry=palpo.Sphere(radius=1)), "Soft: material: the key is missing"),
        (lambda: palpo.Elastic.named("livr"), 'Elastic: no such material; did you mean "liver"?'),
        (
            lambda: palpo.Region(box=((0, 0, 0), (1, 1, 1)), nodes=(1,)),
            "Region: box and nodes exclude each other",
        ),
        (
            lambda: palpo.Scene(title="x", bodies=[BALL], tool=palpo.Tool(body="bal")),
            'scene: tool.body = "bal": no such body; did you mean "ball"?',
        ),
        (
            lambda: palpo.Scene(
                title="x", bodies=[BALL], tool=palpo.Tool(body="ball"), contact=palpo.Contact(edges=True)
            ),
            "scene: contact.edges = true: unknown key",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_the_sentences_of_files(call, said):
    with pytest.raises(palpo.Refusal) as refusal:
        call()
    assert str(refusal.value).startswith(said) and "\n" not in str(refusal.value)
