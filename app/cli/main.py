"""The command `palpo`. Each command imports what it needs, so that `palpo scenes` starts at once."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from palpo import __version__
from palpo.app.cli.computing import add_computing
from palpo.app.cli.log import LOG, begin_log, end_log
from palpo.app.cli.progress import Progress
from palpo.app.cli.refusal import BAD_INPUT, FAILED, account, check_file, chosen_of, is_refusal
from palpo.app.cli.running import add_camera, add_running, launch
from palpo.app.runtime.memory import require_start
from palpo.config.words import Refusal


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; status 0, 1 for what does not hold, 2 for bad input, 3 for a failed run or program."""
    options = _parser().parse_args(arguments)
    begin_log(sys.argv[1:] if arguments is None else arguments)
    try:
        if options.command is not _scenes:
            require_start()
        status = int(options.command(options))
        LOG.info("status %d", status)
        return status
    except KeyboardInterrupt:
        print("palpo: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # what reads our output has seen enough; Python would complain when it flushes at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        refused = is_refusal(error)
        LOG.error("%s", error, exc_info=not refused)
        print(f"palpo: {account(error)}", file=sys.stderr)
        return BAD_INPUT if refused else FAILED
    finally:
        end_log()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="palpo",
        description="Feel simulated soft objects through a haptic device or a mouse.",
    )
    parser.add_argument("--version", action="version", version=f"palpo {__version__}")
    parser.set_defaults(command=_launch, headless=False, lock_step=False)
    add_camera(parser)
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", description="without a command: choose a scene in a window"
    )
    add_running(commands)
    scenes = commands.add_parser("scenes", help="list the scenes that come with Palpo")
    scenes.add_argument("--schema", action="store_true", help="print the JSON schema of a scene file")
    scenes.set_defaults(command=_scenes)

    materials = commands.add_parser("materials", help="list the materials that scenes can name")
    materials.add_argument("name", nargs="?", metavar="NAME", help="one of them: its constants and source")
    materials.set_defaults(command=_materials)

    mesh = commands.add_parser("mesh", help="look at a mesh file; fill a surface with tetrahedra")
    mesh.add_argument(
        "file", metavar="FILE", help="STL, OBJ, PLY, glTF, Gmsh, VTK, VTU, NRRD, NIfTI, URDF or MJCF"
    )
    mesh.add_argument("--size", type=float, metavar="M", help="edge of the tetrahedra in a surface [m]")
    mesh.add_argument("--scale", type=float, default=1.0, metavar="M", help="metres per unit of the file")
    mesh.add_argument(
        "--label", type=int, metavar="N", help="of a segmented volume, the part to fill; without it, all"
    )
    mesh.add_argument("--out", metavar="FILE", help="write the tetrahedra, in metres: .vtu, .vtk or .msh")
    mesh.add_argument("--picture", metavar="PNG", help="draw the mesh with its edges")
    mesh.set_defaults(command=_mesh)

    new = commands.add_parser("new", help="make a scene of your own part, by three questions")
    new.add_argument("file", metavar="FILE", help="STL, OBJ, PLY, glTF, Gmsh, VTK, VTU, NRRD or NIfTI")
    new.add_argument("--out", metavar="FILE", help="name of the scene's file (FILE's, with .toml)")
    new.add_argument("--material", metavar="NAME", help="a name of `palpo materials`, or rigid")
    new.add_argument("--unit", choices=("mm", "cm", "m"), help="of the file's lengths")
    new.add_argument("--label", type=int, metavar="N", help="of a segmented volume, the part")
    new.add_argument("--held", choices=("bottom", "ends", "nothing"), help="what never moves")
    new.add_argument(
        "--size", type=float, metavar="M", help="edge of the tetrahedra [m] (a 14th of its length)"
    )
    new.add_argument("--up", choices=("y", "z"), help="the file's axis that points up (y; of a volume z)")
    new.set_defaults(command=_new)

    ahead = commands.add_parser(
        "compile", help="compile everything now, so that the first run starts at once"
    )
    ahead.add_argument(
        "system", nargs="*", metavar="SYSTEM", help="multirate, hapco, snap or suction (default: all)"
    )
    ahead.set_defaults(command=_compile)

    commands.add_parser("devices", help="list the devices and say which can be used").set_defaults(
        command=_devices
    )

    doctor = commands.add_parser("doctor", help="check this machine, and say how to fix what is missing")
    doctor.add_argument("--device", metavar="DEVICE", help="check this device step by step")
    doctor.add_argument(
        "--exercise",
        action="store_true",
        help="some minutes with that device: measure it, and write its profile",
    )
    doctor.add_argument(
        "--report", type=Path, metavar="DIR", help="where its page goes, below out if left out"
    )
    doctor.add_argument("--json", type=Path, metavar="FILE", help="write the results to this file")
    doctor.set_defaults(command=_doctor)

    add_computing(commands)
    return parser


def _launch(options: argparse.Namespace) -> int:
    status = launch(options)
    if status is None:
        _parser().print_help()
        return 0
    return status


def _scenes(options: argparse.Namespace) -> int:
    from palpo.config.load import json_schema, list_scenes

    if options.schema:
        print(json.dumps(json_schema(), indent=2))
        return 0
    scenes = list_scenes()
    width = max(map(len, scenes))
    for name, line in scenes.items():
        print(f"{name:<{width}}  {line}")
    return 0


def _materials(options: argparse.Namespace) -> int:
    from palpo.app.cli.materials import print_materials

    print_materials(options.name)
    return 0


def _mesh(options: argparse.Namespace) -> int:
    from palpo.app.cli.meshing import look_at

    look_at(options.file, options.size, options.scale, options.label, options.out, options.picture)
    return 0


def _new(options: argparse.Namespace) -> int:
    from palpo.app.cli.new_scene import make_scene

    made = make_scene(
        options.file, options.out, options.material, options.unit, options.held, options.label, options.size,
        options.up,
    )  # fmt: skip
    print(f"{made} is written; palpo run {made} lets you feel it")
    return 0


def _compile(options: argparse.Namespace) -> int:
    from palpo.app.cli.compile_ahead import fill_cache
    from palpo.config.systems import all_systems

    chosen = options.system or list(all_systems())
    for system in chosen:
        chosen_of(system, all_systems(), "system")
    progress = Progress()
    for system in chosen:
        fill_cache(system, progress)
    return 0


def _devices(options: argparse.Namespace) -> int:
    from palpo.app.cli.doctor import print_devices

    return print_devices()


def _doctor(options: argparse.Namespace) -> int:
    from palpo.app.cli.doctor import print_device, print_doctor, print_exercise

    if options.json is not None:
        check_file(options.json, "--json")
    if options.exercise:
        if options.device is None:
            raise Refusal("--exercise: say which device, as --device touch")
        return print_exercise(options.device, options.report)
    if options.device is not None:
        return print_device(options.device, options.json)
    return print_doctor(options.json)


if __name__ == "__main__":
    sys.exit(main())
