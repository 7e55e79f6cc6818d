"""What pyproject.toml cannot say: the packages of `palpo`, a README whose links hold elsewhere, too, and
which machines a wheel with compiled code is for.

The folders at the top level are packages under one name, with all that lies in them.
"""

import ast
import platform
import re
import tomllib
from pathlib import Path

from setuptools import Distribution, find_namespace_packages, setup

ROOT = Path(__file__).parent
ROOMS = ("app", "benchmarks", "config", "haptics", "physics", "render", "studies")
MACHINES = f"manylinux_2_28_{platform.machine()}"
"""Where compiled code runs: it asks for no more of the system than numba's own wheels do."""
FOLDERS = {"palpo": "palpo"} | {f"palpo.{room}": room for room in ROOMS}


def version() -> str:
    """`__version__` of palpo/__init__.py, read without importing it."""
    tree = ast.parse((ROOT / "palpo" / "__init__.py").read_text(encoding="utf-8"))
    return next(
        ast.literal_eval(line.value)
        for line in tree.body
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "__version__"
    )


def description() -> str:
    """The README with absolute links to this version's files and pictures."""
    about = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    repository = about["urls"]["Repository"]

    def absolute(link: re.Match[str]) -> str:
        kind = "raw" if link["picture"] else "blob"
        return f"{link['picture']}[{link['text']}]({repository}/{kind}/v{version()}/{link['target']})"

    relative = r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?!https?:|#)(?P<target>[^)]+)\)"
    return re.sub(relative, absolute, (ROOT / "README.md").read_text(encoding="utf-8"))


class Compiled(Distribution):
    """With code for one kind of machine, that `make wheel` has put there."""

    def has_ext_modules(self) -> bool:
        """So that the wheel is named after the machine and the Python that it is for."""
        return True


if __name__ == "__main__":
    shipped = any((ROOT / "physics" / "numerics" / "shipped").glob("*.zip"))
    setup(
        distclass=Compiled if shipped else Distribution,
        options={"bdist_wheel": {"plat_name": MACHINES}} if shipped else {},
        package_dir=FOLDERS,
        packages=[
            *FOLDERS,
            *(
                f"{package}.{name}"
                for package, folder in FOLDERS.items()
                if package != "palpo"
                for name in find_namespace_packages(folder)
            ),
        ],
        version=version(),
        long_description=description(),
        long_description_content_type="text/markdown",
    )
