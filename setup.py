"""What pyproject.toml cannot say: the packages of `palpo`, and a README whose links hold elsewhere, too.

The folders at the top level are packages under one name, with all that lies in them.
"""

import ast
import re
import tomllib
from pathlib import Path

from setuptools import find_namespace_packages, setup

ROOT = Path(__file__).parent
ROOMS = ("app", "benchmarks", "config", "haptics", "physics", "render", "studies")
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


if __name__ == "__main__":
    setup(
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
