"""Profiles of devices: files that an examination writes and a run uses, checked as all that is not ours."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from palpo.app.cli.log import state_folder
from palpo.config.load import read_toml
from palpo.config.schema.profile import DeviceProfile
from palpo.config.toml import write_toml
from palpo.config.words import ConfigError, sentence
from palpo.haptics.device_spec import DeviceSpec

HEADING = "# What palpo doctor --exercise found of this device; runs with it use these figures. SI units.\n"


def profile_file(named: str) -> Path:
    """The profile of what `--device` calls so."""
    return state_folder() / "devices" / (re.sub(r"[^A-Za-z0-9_.-]+", "_", named) + ".toml")


def write_profile(profile: DeviceProfile, path: Path) -> None:
    """Write it whole, or not at all; raises OSError where that cannot be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(HEADING + write_toml(profile.model_dump()), "utf-8")
    fresh.replace(path)


def read_profile(path: Path) -> DeviceProfile | None:
    """The profile in this file, None where there is none; raises ConfigError for one that cannot be used."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path} cannot be read ({error}); remove it, or examine the device again"
        ) from None
    data = read_toml(text, str(path))
    try:
        return DeviceProfile.model_validate(data)
    except ValidationError as error:
        raise ConfigError(f"{path}: {sentence(error, data, whole='the profile')}") from None


def profiled(named: str, serial: str, found: DeviceSpec) -> DeviceSpec:
    """The figures of a device that has been opened, by its profile if it has one.

    Never stiffer or stronger than it states itself. Raises ConfigError for a profile that cannot be used.
    """
    try:
        profile = read_profile(profile_file(named))
    except RuntimeError:
        return found  # a user without a home has none
    if profile is None or profile.model != found.name or (serial and profile.serial not in ("", serial)):
        return found
    return replace(
        found,
        max_stiffness=min(profile.max_stiffness, found.max_stiffness),
        max_force=min(profile.max_force, found.max_force),
        resolution=profile.resolution,
        friction=profile.friction,
        mass=profile.mass,
        delay=profile.delay,
    )
