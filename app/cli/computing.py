"""The commands that compute: studies, benchmarks, contact problems, sweeps and designs."""

import argparse
import math
from pathlib import Path
from typing import Any

from palpo.app.cli.lift import add_lift
from palpo.app.cli.progress import Progress
from palpo.app.cli.refusal import FAILED, check_file, check_folder, chosen_of
from palpo.config.words import Refusal


def add_computing(commands: Any) -> None:
    """The commands and their options."""
    study = commands.add_parser("study", help="recompute a table or figure of a paper")
    study.add_argument("name", nargs="?", metavar="NAME", help="name of a study (default: list them)")
    study.add_argument("--out", type=Path, metavar="DIR", help="folder for the results (out/study-NAME)")
    study.add_argument("--quick", action="store_true", help="use coarser meshes and shorter runs")
    study.set_defaults(command=_study)

    add_lift(
        commands.add_parser(
            "lift", help="find what a suction cup can hold; export its law to other simulators"
        )
    )

    solve = commands.add_parser("solve", help="solve a contact problem from a file")
    solve.add_argument("file", type=Path, metavar="FILE",
                       help="FCLIB (.hdf5, .h5) or .npz with W, q, mu; a folder for --profile")  # fmt: skip
    solve.add_argument("--profile", action="store_true", help="all solvers over all problems of a folder")
    solve.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="options",
                       help="an option of the solver; may be repeated")  # fmt: skip
    solve.add_argument("--guess", type=Path, metavar="FILE",
                       help="start from this force: FCLIB's `solution`, or r of an .npz file")  # fmt: skip
    solve.add_argument("--solver", action="append", default=[], metavar="NAME",
                       help="a solver's name, or all; may be repeated (default: the best one)")  # fmt: skip
    solve.add_argument("--tol", type=float, default=1e-8, metavar="T",
                       help="relative natural-map residual (default 1e-8)")  # fmt: skip
    solve.add_argument("--each", action="store_true",
                       help="until each contact's error over its own force is within it, too")  # fmt: skip
    solve.add_argument("--least-violation", action="store_true",
                       help="where no forces solve it, let normals give by the least needed")  # fmt: skip
    solve.add_argument("--max-iterations", type=int, default=20_000, metavar="N",
                       help="in each solver's own unit (default 20000)")  # fmt: skip
    solve.add_argument(
        "--time-cap", type=float, default=math.inf, metavar="S", help="seconds a solve may take"
    )
    solve.add_argument("--json", type=Path, metavar="FILE", help="write the result to this file")
    solve.add_argument("--out", type=Path, metavar="FILE",
                       help="forces by solver, velocities, statuses and history in an .npz file; the first"
                       " solver's in FCLIB's group `solution` if it ends in .hdf5; with --profile a folder"
                       " (default: out/profile)")  # fmt: skip
    solve.set_defaults(command=_solve)

    sweep = commands.add_parser("sweep", help="run a scene for many values of its keys, in parallel")
    sweep.add_argument("scene", metavar="SCENE", help="a name that `palpo scenes` lists, or a TOML file")
    sweep.add_argument("--param", action="append", required=True, metavar="KEY=A:B:N", dest="params",
                       help="values of a key: N from A to B, or a,b,c; may be repeated")  # fmt: skip
    sweep.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
                       help="set a key of the scene in all runs; may be repeated")  # fmt: skip
    sweep.add_argument("--device", default="mock", help="mock or replay:FILE")
    sweep.add_argument("--duration", type=float, metavar="S", help="length of each run in seconds")
    where = sweep.add_mutually_exclusive_group()
    where.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="number of processes on this computer (1)"
    )
    where.add_argument(
        "--scheduler", metavar="ADDRESS", help="address of a Dask scheduler, such as tcp://host:8786"
    )
    sweep.add_argument("--out", type=Path, metavar="FILE",
                       help="table of results, .parquet or .csv (out/sweep-SCENE.parquet)")  # fmt: skip
    sweep.set_defaults(command=_sweep)

    converge = commands.add_parser(
        "converge", help="how far a scene's mesh is from converged, by its press on two finer ones"
    )
    converge.add_argument("scene", metavar="SCENE", help="a name that `palpo scenes` lists, or a TOML file")
    converge.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
                          help="change a key of the scene; may be repeated")  # fmt: skip
    converge.add_argument("--duration", type=float, default=math.inf, metavar="S",
                          help="seconds of the scene's own path (default: all)")  # fmt: skip
    converge.add_argument("--time-cap", type=float, default=3600.0, metavar="S",
                          help="seconds that a finer run may take (3600)")  # fmt: skip
    converge.add_argument(
        "--out", type=Path, metavar="FILE", help="picture of the forces (out/converge-SCENE.png)"
    )
    converge.set_defaults(command=_converge)

    needle = commands.add_parser(
        "needle", help="push a scene's needle straight in and draw it out: force over depth"
    )
    needle.add_argument("scene", metavar="SCENE", help="a name that `palpo scenes` lists, or a TOML file")
    needle.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
                        help="change a key of the scene; may be repeated")  # fmt: skip
    needle.add_argument("--depth", type=float, default=20.0, metavar="MM", help="how deep [mm] (20)")
    needle.add_argument("--speed", type=float, default=10.0, metavar="MM/S", help="of the hand [mm/s] (10)")
    needle.add_argument("--out", type=Path, metavar="FOLDER",
                        help="numbers and picture (out/needle-SCENE)")  # fmt: skip
    needle.set_defaults(command=_needle)

    snap = commands.add_parser("snap", help="design a snap connector: forces, strains, tolerances")
    snap.add_argument("scene", metavar="SCENE", nargs="+",
                      help="a snap scene; several are compared")  # fmt: skip
    snap.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
                      help="change a key of the scene; may be repeated")  # fmt: skip
    snap.add_argument("--param", action="append", default=[], metavar="KEY=A:B:N", dest="params",
                      help="values of a key, N from A to B, or a,b,c; two keys make a map")  # fmt: skip
    snap.add_argument("--tolerance", action="append", default=[], metavar="KEY=W", dest="tolerances",
                      help="a key that varies between parts, by 3 standard deviations or 10%%")  # fmt: skip
    snap.add_argument("--runs", type=int, default=100, metavar="N", help="number of random parts (100)")
    snap.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the random parts (0)")
    snap.add_argument("--back", type=float, metavar="M", help="how far the plug is pulled back [m]")
    for name, unit in (("insertion-below", "N"), ("retention-above", "N"), ("strain-below", "X"),
                       ("stress-below", "PA")):  # fmt: skip
        snap.add_argument(f"--{name}", type=float, metavar=unit, help="a limit that a good part keeps")
    snap.add_argument(
        "--out", type=Path, metavar="DIR", help="folder for page, pictures and tables (out/design-SCENE)"
    )
    snap.add_argument("--export", type=Path, metavar="DIR",
                      help="only write the parts as STL files with a scene that reads them, and the"
                      " connector as a joint for MuJoCo, Drake and USD")  # fmt: skip
    snap.set_defaults(command=_snap)

    identify = commands.add_parser(
        "identify", help="find a material from a measured force, or modulus and friction of a connector"
    )
    identify.add_argument("measured_on", metavar="FILE or SCENE",
                          help="CSV of a force over depth: columns depth_m or depth_mm, force_N or force_mN;"
                          " or a snap scene of the measured connector")  # fmt: skip
    identify.add_argument("--ball", metavar="R", help='a ball of this radius was pressed in, such as "10 mm"')
    identify.add_argument(
        "--cylinder",
        nargs=2,
        metavar=("D", "H"),
        help="a cylinder was pressed between plates: diameter, height",
    )
    identify.add_argument(
        "--strip", nargs=3, metavar=("W", "T", "L"), help="a strip was pulled: width, thickness, length"
    )
    identify.add_argument("--law", action="append", default=[], metavar="LAW", dest="laws",
                          help="a material.law to fit; may be repeated (default: all)")  # fmt: skip
    identify.add_argument(
        "--poisson-ratio", type=float, default=0.49, metavar="NU", help="of the material (0.49)"
    )
    identify.add_argument("--out", type=Path, metavar="FILE",
                          help="picture of the fits (out/identify-FILE.png)")  # fmt: skip
    identify.add_argument("--measured", type=Path, metavar="FILE",
                          help="CSV of one insertion: columns travel_m (or time_s) and force_N")  # fmt: skip
    identify.add_argument(
        "--speed", type=float, metavar="V", help="speed of the push, if the file has time_s [m/s]"
    )
    identify.add_argument(
        "--beside", metavar="SCENE", help="the same connector on another mesh, to estimate the mesh error"
    )
    identify.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
                          help="change a key of the scene; may be repeated")  # fmt: skip
    identify.set_defaults(command=_identify)

    bench = commands.add_parser("bench", help="measure how long steps take")
    bench.add_argument("name", nargs="?", metavar="NAME", help="name of a benchmark (default: all)")
    bench.add_argument(
        "--duration", type=float, metavar="S", help="length of the benchmark `soak` in seconds"
    )
    bench.add_argument("--json", type=Path, metavar="FILE", help="write the results to this file")
    bench.set_defaults(command=_bench)


def _study(options: argparse.Namespace) -> int:
    from palpo.app.cli.registry import registry

    studies = registry("studies")
    if studies is None or options.name is None:
        _list("studies", getattr(studies, "ABOUT", {}))
        return 0
    chosen_of(options.name, studies.STUDIES, "study")
    out = options.out or Path("out") / f"study-{options.name}"
    check_folder(out, "--out")
    claims = studies.run_study(options.name, out, options.quick)
    return 0 if all(claim.holds for claim in claims) else 1


def _solve(options: argparse.Namespace) -> int:
    if options.json is not None:
        check_file(options.json, "--json")
    if options.out is not None and not options.profile:
        if options.out.suffix not in (".npz", ".hdf5", ".h5"):
            raise Refusal(f"--out {options.out}: solutions are written to a file that ends in .npz or .hdf5")
        check_file(options.out, "--out")
    progress = Progress()
    with progress.stage("loading the solvers"):
        from palpo.app.cli.solve import print_solves, profile, read_options, solve_file, write_solutions
        from palpo.app.report.outcome import write_json
        from palpo.physics.contact.problem import Stop

    stop, chosen = (
        Stop(options.tol, options.max_iterations, options.time_cap, options.each),
        read_options(options.options),
    )
    if options.profile:
        return profile(options, stop, chosen, progress)
    summary, solved = solve_file(
        options.file, options.solver, stop, progress, chosen, options.guess, options.least_violation
    )
    write_json(options.json, summary)
    if options.out is not None:
        write_solutions(options.out, solved)
    print_solves(summary)
    return int(summary["exit_status"])


def _sweep(options: argparse.Namespace) -> int:
    from palpo.app.cli.sweep import Sweep, axis_of, run_sweep

    if options.jobs < 1:
        raise Refusal(f"--jobs {options.jobs}: give at least one process")
    axes = tuple(axis_of(text) for text in options.params)
    sweep = Sweep(options.scene, axes, tuple(options.overrides), options.device, options.duration)
    out = options.out or Path("out") / f"sweep-{Path(options.scene).stem}.parquet"
    rows = run_sweep(sweep, out, options.jobs, options.scheduler)
    failed = [row for row in rows if row["exit_status"]]
    print(f"{len(rows)} runs, {len(failed)} of them failed: {out}")
    for row in failed[:10]:
        print("  " + ", ".join(f"{axis.key}={row[axis.key]}" for axis in axes) + f": {row['exit_reason']}")
    return FAILED if failed else 0


def _converge(options: argparse.Namespace) -> int:
    out = options.out or Path("out") / f"converge-{Path(options.scene).stem}.png"
    check_folder(out.parent, "--out")
    check_file(out, "--out")
    if not options.duration > 0.0:
        raise Refusal(f"--duration {options.duration:g}: give seconds above 0")
    progress = Progress()
    with progress.stage("loading"):
        from palpo.app.cli.converge import converge, draw_converged, print_converged
    cap = options.time_cap
    presses, found = converge(options.scene, options.overrides, options.duration, cap, progress)
    print_converged(presses, found)
    draw_converged(out, presses, found)
    print(f"wrote {out}")
    return 0


def _needle(options: argparse.Namespace) -> int:
    out = options.out or Path("out") / f"needle-{Path(options.scene).stem}"
    check_folder(out, "--out")
    for key, most in (("depth", 500.0), ("speed", 500.0)):
        value = getattr(options, key)
        if not 0.0 < value <= most:
            raise Refusal(f"--{key} {value:g}: give a number above 0 and up to {most:g}")
    progress = Progress()
    with progress.stage("loading"):
        from palpo.app.cli.needle import insert, print_ways, write_ways
    depth, speed = 1e-3 * options.depth, 1e-3 * options.speed
    name, ways = insert(options.scene, options.overrides, depth, speed, progress)
    print_ways(name, ways)
    for file in write_ways(out, ways):
        print(f"wrote {file}")
    return 0


def _snap(options: argparse.Namespace) -> int:
    first = options.scene[0]
    out = options.export or options.out or Path("out") / f"design-{Path(first).stem}"
    check_folder(out, "--out" if options.export is None else "--export")
    progress = Progress()
    with progress.stage("loading"):
        from palpo.app.cli import design
        from palpo.app.report.design_export import export, export_joint
        from palpo.app.report.design_figures import about_mesh
        from palpo.app.report.design_page import said, write_design
    if options.export is not None:
        print(f"the parts are in {export(first, options.overrides, out)}")
        print(f"the joint is in {export_joint(first, options.overrides, options.back, out, progress)}")
        return 0
    limits = design.Limits(
        options.insertion_below, options.retention_above, options.strain_below, options.stress_below
    )
    asked = design.DesignRequest(
        first, tuple(options.overrides), design.axes_of(options.scene, options.params),
        tuple(options.tolerances), options.runs, options.seed, options.back, limits,
    )  # fmt: skip
    found = design.investigate(asked, progress)
    share = design.share_of(found.parts) if found.parts else None
    page = write_design(out, found, share)
    design.print_found(found)
    print(f"socket: {about_mesh(found.travel)}")
    if share is not None:
        print(said(share, len(found.parts)))
    print(f"wrote {page}")
    return 0


def _identify(options: argparse.Namespace) -> int:
    sizes = options.ball, options.cylinder, options.strip
    if options.measured_on.endswith(".csv") or any(sizes):
        return _identify_material(options)
    if options.measured is None:
        raise Refusal("--measured: a connector needs the CSV file of its insertion; a material a file.csv")
    from palpo.app.cli.identify import identify, print_identified

    told = options.measured_on, options.overrides, options.measured, options.speed, options.beside
    print_identified(identify(*told, Progress()))
    return 0


def _identify_material(options: argparse.Namespace) -> int:
    path = Path(options.measured_on)
    out = options.out or Path("out") / f"identify-{path.stem}.png"
    check_folder(out.parent, "--out")
    check_file(out, "--out")
    progress = Progress()
    with progress.stage("loading"):
        from palpo.app.cli.identify_material import draw_fits, identify_material, print_fits, specimen_of
    specimen = specimen_of(options.ball, options.cylinder, options.strip)
    fits, depths, forces = identify_material(path, specimen, options.laws, options.poisson_ratio, progress)
    print_fits(fits, specimen, len(depths))
    draw_fits(out, fits, specimen, depths, forces)
    print(f"wrote {out}")
    return 0


def _bench(options: argparse.Namespace) -> int:
    from palpo.app.cli.registry import registry, summary_of

    if options.json is not None:
        check_file(options.json, "--json")
    table = registry("benchmarks")
    benches = getattr(table, "BENCHES", {})
    chosen = (
        benches if options.name is None else {options.name: chosen_of(options.name, benches, "benchmark")}
    )
    if not chosen:
        _list("benchmarks", {})
        return 0
    asked: dict[str, float] = {}
    if options.duration is not None:
        if options.name != "soak" or not options.duration > 0.0:
            raise Refusal(
                f"--duration {options.duration:g}: only `palpo bench soak` takes a duration, above 0"
            )
        asked["duration"] = options.duration
    progress, results = Progress(), {}
    for name, bench in chosen.items():
        with progress.stage(f"{name}: {summary_of(bench)}"):
            results[name] = bench(**asked)
    from palpo.app.report.outcome import write_json

    write_json(options.json, results)
    table.print_bench(results)
    return 0


def _list(what: str, lines: dict[str, str]) -> None:
    if not lines:
        print(f"this version has no {what}")
        return
    width = max(map(len, lines))
    for name, line in lines.items():
        print(f"{name:<{width}}  {line}")
