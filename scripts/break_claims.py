"""Which claims notice a broken law: `python scripts/break_claims.py [STUDY...]`.

Each of BREAKS is made in a copy of the tree, where its studies run in their quick form. A claim notices it
that holds in the tree as it is and no longer in the copy. What no break of its study makes fail is listed
last: it wants a break, or the claim cannot fail. A study that breaks down tells nothing about its claims.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Break:
    """One law that is broken: a text that stands once in a file, and what stands there instead."""

    what: str
    studies: tuple[str, ...]
    file: str
    law: str
    instead: str

    def made_in(self, text: str) -> str:
        """The file with the law broken; ValueError unless the law stands in it once."""
        if text.count(self.law) != 1:
            raise ValueError(f"{self.file} has {text.count(self.law)} times what is to be broken: {self.law}")
        return text.replace(self.law, self.instead)


DISSIPATE = "physics/contact/solvers/maximal_dissipation.py"
LAW, SOLVED = "physics/gas/law.py", "physics/gas/pressure.py"
PRONG, PLUG = "physics/compliance/midpoint_modal.py", "physics/bodies/admittance.py"
RELEASED = "studies/reference/passive_midpoint.py"
BREAKS = (
    Break(
        "one contact has twice its friction", ("snap-solver",), DISSIPATE,
        "    n = -b[0] / w[0, 0]\n", "    mu, n = 2.0 * mu, -b[0] / w[0, 0]\n",
    ),
    Break(
        "a plug has twice its friction", ("snap-accuracy", "snap-wedge"),
        "physics/collision/field_contacts.py",
        "= settings.friction, settings", "= 2.0 * settings.friction, settings",
    ),
    Break(
        "a plug's edge is pushed along normals that are not between its faces", ("snap-wedge",),
        "physics/collision/edge_search.py", "        _keep_between(edges, j, way)\n", "",
    ),
    Break(
        "the axial load bends no beam back", ("snap-wedge",),
        "physics/systems/snap/connectors/hooked_beam.py",
        "turning = slope * arm * reach**2 / (2.0 * bending)", "turning = 0.0",
    ),
    Break(
        "cups have a tenth of their friction", ("suction-mass", "suction-passive", "suction-active"),
        "physics/suction/contacts.py", "contacts.mu[k] = gap, mu", "contacts.mu[k] = gap, 0.1 * mu",
    ),
    Break(
        "a prong moves by a tenth less than its velocity", ("snap-energy", "snap-stability", "snap-accuracy"),
        "physics/reduction/segments.py", "state.x[i] += T * work.vh[i]", "state.x[i] += 0.9 * T * work.vh[i]",
    ),
    Break(
        "a released corotational prong is damped within a step", ("snap-stability",), RELEASED,
        "(0.5 * T + beta) * body.K", "(1.5 * T + beta) * body.K",
    ),
    Break(
        "a prong's W is halved", ("snap-energy", "snap-stability", "snap-accuracy"), PRONG,
        "part[d, e] = 2.0 * h * dot3", "part[d, e] = h * dot3",
    ),
    Break(
        "the plug's hold is a tenth softer in its energy", ("snap-energy", "snap-stability"), PLUG,
        "return kinetic + 0.5 * _form", "return kinetic + 0.45 * _form",
    ),
    Break(
        "a released prong steps stiffer than its energy is", ("snap-energy", "snap-stability"), RELEASED,
        "+ 0.5 * step * self.K)", "+ 0.55 * step * self.K)",
    ),
    Break(
        "a released prong is moved by backward Euler", ("snap-energy", "snap-stability"), RELEASED,
        "        self.v = 2.0 * vh - self.v\n", "        self.v = vh\n",
    ),
    Break(
        "a cavity begins with half its air", ("suction-gas", "suction-mass"), "physics/gas/tracking.py",
        "now.air[i] = mol_per_volume * now.volume[i]", "now.air[i] = 0.5 * mol_per_volume * now.volume[i]",
    ),
    Break(
        "pressures push with half their area", ("suction-gas", "suction-active", "suction-passive"),
        "physics/gas/cavity.py", "third = -share * _area(p, q, r, i) / 6.0",
        "third = -share * _area(p, q, r, i) / 12.0",
    ),
    Break(
        "no air leaves at P_max", ("suction-gas",), LAW,
        "    return min(n, max(0.0, p * volume / rt))", "    return n",
    ),
    Break(
        "air leaves under suction", ("suction-gas", "suction-mass"), LAW,
        "    if p < largest:\n        return n\n", "    if p < largest:\n        return 0.9 * n\n",
    ),
    Break(
        "half of n R T in the gas law", ("suction-gas", "suction-mass"), LAW,
        "s = (b * b + 4.0 * a * nrt) ** 0.5", "s = (b * b + 2.0 * a * nrt) ** 0.5",
    ),
    Break(
        "a cavity's volume does not follow its pressure", ("suction-gas", "suction-mass"), SOLVED,
        "                    u[m] += step * w[i, m]\n", "                    u[m] += 0.5 * step * w[i, m]\n",
    ),
    Break(
        "the large strain's law is a tenth stiffer", ("hapco-strain",),
        "studies/reference/large_strain.py", "s[i, j] *= 2.0 * mu", "s[i, j] *= 2.2 * mu",
    ),
    Break(
        "a link of the wire weighs half", ("multirate-wire",), "physics/bodies/chain.py",
        "h * model.weight[i] * model.gravity[r]", "0.5 * h * model.weight[i] * model.gravity[r]",
    ),
    Break(
        "the rim of a bonded cup is free", ("suction-axisymmetric",),
        "physics/suction/walled_cup.py", "rim if np.isinf(mu) else []", "[]",
    ),
)  # fmt: skip


def claims_in(tree: Path, study: str, seconds: float) -> dict[str, bool] | None:
    """Whether each claim of a study's quick form holds in a tree; None where it breaks down."""
    with tempfile.TemporaryDirectory(prefix="palpo-claims-") as out:
        command = [sys.executable, "-m", "palpo", "study", study, "--quick", "--out", out]
        environment = os.environ | {"PYTHONPATH": str(tree)}
        try:
            subprocess.run(
                command, cwd=tree, env=environment, timeout=seconds, capture_output=True, check=False
            )
            told = json.loads((Path(out) / "claims.json").read_text("utf-8"))
        except (subprocess.TimeoutExpired, FileNotFoundError):
            return None
        return {claim["name"]: claim["holds"] for claim in told["claims"]}


def noticed(
    copy: Path, broken: Break, study: str, whole: dict[str, bool], seconds: float
) -> list[str] | None:
    """Claims that held in the whole tree and do not in a copy with a broken law; None if the study ends."""
    place = copy / broken.file
    text = place.read_text("utf-8")
    place.write_text(broken.made_in(text), "utf-8")
    try:
        found = claims_in(copy, study, seconds)
    finally:
        place.write_text(text, "utf-8")
    return (
        None
        if found is None
        else [name for name, held in whole.items() if held and not found.get(name, True)]
    )


def copied(room: Path) -> Path:
    """A copy of the tree's sources in a folder."""
    skip = shutil.ignore_patterns("__pycache__", ".venv", ".git", "out")
    return Path(shutil.copytree(ROOT, room / "copy", symlinks=True, ignore=skip))


def main() -> None:
    """Run the breaks of some studies and print who noticed, and which claims nobody has made fail."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = sorted({study for broken in BREAKS for study in broken.studies})
    parser.add_argument("studies", nargs="*", default=every, help=f"of {', '.join(every)}")
    parser.add_argument("--seconds", type=float, default=600.0, help="limit of each run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="palpo-broken-") as room:
        copy, asleep = copied(Path(room)), list[str]()
        for study in options.studies:
            whole = claims_in(copy, study, options.seconds)
            if whole is None:
                print(f"{study}: breaks down in the tree as it is", flush=True)
                continue
            awake = set[str]()
            for broken in (b for b in BREAKS if study in b.studies):
                by = noticed(copy, broken, study, whole, options.seconds)
                words = "breaks down" if by is None else f"{len(by)} of {sum(whole.values())} claims notice"
                print(f"{study}, {broken.what}: {words}", flush=True)
                print("".join(f"    {name}\n" for name in by or ()), end="", flush=True)
                awake |= set(by or ())
            asleep += [f"{study}: {name}" for name, held in whole.items() if held and name not in awake]
    print(f"{len(asleep)} claims that hold noticed nothing")
    print("".join(f"    {name}\n" for name in asleep), end="")


if __name__ == "__main__":
    main()
