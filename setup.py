"""The packages of `palpo`: the folders at the top level under one name, with all that lies in them."""

from setuptools import find_packages, setup

ROOMS = ("app", "benchmarks", "config", "haptics", "physics", "render", "studies")
FOLDERS = {"palpo": "palpo"} | {f"palpo.{room}": room for room in ROOMS}

setup(
    package_dir=FOLDERS,
    packages=[
        *FOLDERS,
        *(f"{package}.{name}" for package, folder in FOLDERS.items() for name in find_packages(folder)),
    ],
)
