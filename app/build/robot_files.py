"""What MuJoCo is shown of URDF and MJCF files, which come from strangers.

Links, joints, shapes and masses alone, in one text without entities; meshes are read here, from the file's
own folder, so that MuJoCo opens nothing.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any
from xml.etree import ElementTree

from palpo.config.words import Refusal
from palpo.physics.numerics.errors import InputError

Element = ElementTree.Element

LARGEST, MOST_INCLUDES, MOST_SHAPES = 2**24, 100, 2000
"""Bytes of a file's text, files that it includes, and shapes."""
MESHES = (".stl", ".obj", ".msh")
MESH_KEYS = ("name", "class", "file", "vertex", "face", "scale", "refpos", "refquat", "inertia")
FOLDERS = ("meshdir", "assetdir", "texturedir", "strippath")
IN_BODY = ("body", "frame", "geom", "joint", "freejoint", "inertial")
READ = {
    "mujoco": ("compiler", "default", "asset", "worldbody", "equality"),
    "equality": ("joint",),
    "default": ("default", "geom", "joint", "mesh"),
    "asset": ("mesh",),
    **dict.fromkeys(("worldbody", "body", "frame"), IN_BODY),
    "robot": ("link", "joint"),
    "link": ("inertial", "collision"),
}  # fmt: skip
"""What is read in elements of these names; the rest is neither shape nor mass nor joint."""
MAKES = ("replicate", "composite", "flexcomp", "attach")
"""What makes more bodies, which is refused and not left out."""
LEAST_MASS = 1e-9
"""[kg] and [kg m^2]; MuJoCo wants some."""


def mujoco_here() -> Any:
    try:
        import mujoco
    except ImportError:
        raise Refusal(
            "URDF and MJCF files are read by MuJoCo, which is not here: pip install 'palpo[urdf]'"
        ) from None
    return mujoco


def read_robot(path: str | Path) -> Any:
    """MuJoCo's model of a file; InputError for one that it cannot read."""
    mujoco, path = mujoco_here(), Path(path)
    try:
        root = _parsed(path)
        if root.tag not in ("robot", "mujoco"):
            raise ValueError(f"its root is <{root.tag[:40]}>; URDF has <robot>, MJCF <mujoco>")
        folders = {key: _compiler(root, key) for key in FOLDERS}
        _keep_shapes(root)
        assets = _with_meshes(root, path.resolve().parent, folders)
        with _no_log(mujoco):
            spec = mujoco.MjSpec.from_string(ElementTree.tostring(root, "unicode"), assets=assets)
            spec.compiler.fusestatic = False
            # a link that says no mass has hardly any
            spec.compiler.boundmass = spec.compiler.boundinertia = LEAST_MASS
            model = spec.compile()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}).") from None
    # MuJoCo, and broken XML, are wrong in many ways
    except (ValueError, SyntaxError, RuntimeError, mujoco.FatalError) as error:
        reason = " ".join(str(error).split())[:300].rstrip(".")
        raise InputError(f"{path}: no robot that can be read: {reason}.") from None
    if model.ngeom > MOST_SHAPES:
        raise InputError(f"{path}: has {model.ngeom} shapes, where {MOST_SHAPES} are read.")
    return model


@contextmanager
def _no_log(mujoco: Any) -> Iterator[None]:
    """Without the file that MuJoCo writes its warnings into, where the program was started."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda _: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


def _parsed(path: Path, budget: list[int] | None = None) -> Element:
    """The XML of a file, what it includes in its place; ValueError for what can expand or lies elsewhere."""
    budget = [MOST_INCLUDES] if budget is None else budget
    budget[0] -= 1
    if budget[0] < 0:
        raise ValueError(f"it includes more than {MOST_INCLUDES} files, or itself")
    if path.stat().st_size > LARGEST:
        raise ValueError(f"{path.name} has more than {LARGEST} bytes")
    text = path.read_bytes().decode("utf-8-sig")
    if "<!" in re.sub(r"<!--.*?-->|<!\[CDATA\[.*?\]\]>", "", text, flags=re.DOTALL):
        raise ValueError(f"{path.name} declares entities or a document type (<!), which is not read")
    root = ElementTree.fromstring(text)
    if root.tag == "mujoco" or root.tag == "mujocoinclude":
        for parent in list(root.iter()):
            for child in [child for child in parent if child.tag == "include"]:
                put = list(_parsed(_inside(path.parent.resolve(), child.get("file", "")), budget))
                at = list(parent).index(child)
                parent[at : at + 1] = put
    return root


def _inside(folder: Path, name: str) -> Path:
    """A file in a folder; ValueError for one that is not there, or lies elsewhere."""
    pure = PurePosixPath(name.replace("\\", "/"))
    full = (folder / pure).resolve()
    if "://" in name or pure.is_absolute() or not full.is_relative_to(folder):
        raise ValueError(f'"{name}" does not lie in the folder of the file')
    if not full.is_file():
        raise ValueError(f'"{name}" is not there; it is looked for in {folder}')
    return full


def _compiler(root: Element, key: str) -> str:
    """What MJCF says of folders, which is then taken out of it."""
    said = [child.attrib.pop(key) for child in root.iter("compiler") if key in child.attrib]
    return said[-1] if said else ""


def _keep_shapes(root: Element) -> None:
    """Leave links, joints, shapes and masses of a file; a link without a shape to touch has what is seen."""
    for link in root.findall("link") if root.tag == "robot" else ():
        if link.find("collision") is None:
            for seen in link.findall("visual"):
                seen.tag = "collision"
    for parent in list(root.iter()):
        parent.attrib.pop("material", None)
        if parent.tag not in READ:
            continue
        for child in list(parent):
            if child.tag in MAKES:
                raise ValueError(f"it has <{child.tag}>, which is not read; write the bodies out")
            if child.tag not in READ[parent.tag]:
                parent.remove(child)
    for mesh in root.iter("mesh"):
        if root.tag == "mujoco":
            mesh[:] = []
            for key in [key for key in mesh.attrib if key not in MESH_KEYS]:
                del mesh.attrib[key]


def _with_meshes(root: Element, folder: Path, folders: dict[str, str]) -> dict[str, bytes]:
    """The meshes' bytes, by the names that the elements of a file get for them."""
    assets: dict[str, bytes] = {}
    names: dict[Path, str] = {}
    for element, key in _mesh_files(root):
        told = element.attrib[key]
        if root.tag == "mujoco":
            if folders["strippath"] == "true":
                told = PurePosixPath(told.replace("\\", "/")).name
            element.attrib.setdefault("name", PurePosixPath(told.replace("\\", "/")).stem)
            told = str(PurePosixPath(folders["meshdir"] or folders["assetdir"]) / told)
        path = _of_package(folder, told)
        if path.suffix.lower() not in MESHES:
            raise ValueError(f'the mesh "{told}" is none of {", ".join(MESHES)}; convert it')
        if path not in names:
            names[path] = f"{len(names)}{path.suffix.lower()}"
            assets[names[path]] = path.read_bytes()
        element.attrib[key] = names[path]
    return assets


def _mesh_files(root: Element) -> Iterator[tuple[Element, str]]:
    key = "filename" if root.tag == "robot" else "file"
    return ((mesh, key) for mesh in root.iter("mesh") if key in mesh.attrib)


def _of_package(folder: Path, name: str) -> Path:
    """A mesh's file, in the robot's folder; or in the folder around it, where that is the package."""
    found = re.fullmatch(r"package://([^/]+)/(.*)", name)
    if found is None:
        return _inside(folder, name)
    package, rest = found.groups()
    home = folder.parent if folder.parent.name == package and folder.name != package else folder
    return _inside(home, rest)
