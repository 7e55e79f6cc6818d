"""The page of verdicts that the studies of HapCo's solvers write: every finding in plain words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from palpo.studies.claims import Claim
from palpo.studies.hapco_thesis import SYMBOLS, TABLES, cell
from palpo.studies.rows import Row

Data = Mapping[str, Sequence[Row]]

HEAD = """# The thesis's contact solvers, again

Two blocks of hexahedra, the upper one pressed into the lower one and slid over it, as in chapter 3 of
N. Talbi's thesis (001). All solvers got the same problems, from r = 0, and are held against the exact
solution at a residual of 1e-12. Times are of the machine at hand; the thesis's of 2008.

**Symbols.** G: Uzawa global, one step at each contact and sweep. L, LS: Uzawa local, to (3.6) or (3.7).
B, P: bi- and pseudo-potential. Without *, rho_min; with *, rho_n and rho_t of each contact. The * and P are
as the thesis prints them; with a prime they are corrected. A visit of a local method starts from r = 0, as
printed, or goes on from its last force: both readings are tried, with a length L of 1 cm.
"""

FIGURES = (
    ("times", "Mean times at the thesis's stop (3.36 to 3.41)"),
    ("deviations", "Deviation along the paths (3.21 to 3.34)"),
    ("forces", "Norm of the contact force (3.26 to 3.42)"),
    ("statuses", "Sliding and sticking contacts (3.8, 3.12, 3.18)"),
    ("formulations", "Bi- and pseudo-potential at 1e-8 (3.4 to 3.11)"),
    ("factors", "Factors on rho (3.13, 3.14, 3.19)"),
    ("convergence", "All solvers at 1e-8"),
)


@dataclass(frozen=True)
class Finding:
    """One claim in words."""

    claim: Claim
    said: str
    """By the thesis or the paper; empty where the claim is our own."""
    found: str
    """Here, with numbers."""
    why: str = ""
    topic: str = ""
    """The larger finding that it is part of, as one sentence."""


def verdicts(found: Sequence[Finding]) -> str:
    """A table of the topics, and under each its claims, as Markdown."""
    topics = {
        topic: [f for f in found if f.topic == topic] for topic in dict.fromkeys(f.topic for f in found)
    }
    lines = ["## Verdicts\n", "| finding | holds here | claims that hold |", "|---|---|---|"]
    for topic, own in topics.items():
        kept = sum(f.claim.holds for f in own)
        word = "yes" if kept == len(own) else "in part" if kept else "no"
        lines.append(f"| {topic} | {word} | {kept} of {len(own)} |")
    parts = ["\n".join(lines) + "\n"]
    for topic, own in topics.items():
        parts += [f"### {topic}\n", *(_finding(finding) for finding in own)]
    return "\n".join(parts)


def write_page(path: Path, found: Sequence[Finding], data: Data, quick: bool) -> None:
    """Markdown beside the figures."""
    parts = [HEAD]
    if quick:
        parts.append("*A quick run: two frictions and every tenth step.*\n")
    cut = sum(row["reason"] == "time" for row in data["steps"])
    parts.append(
        f"{cut} of {len(data['steps'])} solves were cut by the clock before their limit of sweeps and count "
        "as failures.\n"
    )
    parts.append(verdicts(found))
    parts.append("## Times\n\nMean of a path [ms], in brackets the thesis's; **×** where a step fails.\n")
    parts += [_table(data, pair, way) for pair, way in TABLES]
    parts.append("## Figures\n")
    parts += [f"### {title}\n\n![{title}]({name}.png)\n" for name, title in FIGURES]
    path.write_text("\n".join(parts), "utf-8")


def _finding(finding: Finding) -> str:
    said = f" *There:* {finding.said}" if finding.said else ""
    why = f" *Why:* {finding.why}" if finding.why else ""
    mark = "yes" if finding.claim.holds else "no"
    return f"- **{finding.claim.name}** ({mark}).{said} *Here:* {finding.found}{why}\n"


def _table(data: Data, pair: str, path: str) -> str:
    """One of tables 3.36 to 3.41 beside ours."""
    rows = [row for row in data["solvers"] if (row["pair"], row["path"]) == (pair, path)]
    mus = list(dict.fromkeys(row["mu"] for row in rows))
    lines = [
        f"**{pair}, {path}**\n",
        "| solver | " + " | ".join(f"mu {mu:g}" for mu in mus) + " |",
        "|---" * (len(mus) + 1) + "|",
    ]
    for symbol, stop in [*((symbol, "printed") for symbol in (*SYMBOLS, "G*B'")), ("best", "tight")]:
        own = [row for row in rows if (row["symbol"], row["stop"]) == (symbol, stop)]
        name = "portfolio, at 1e-8" if symbol == "best" else symbol
        lines.append(f"| {name} | " + " | ".join(_entry(row) for row in own) + " |")
    return "\n".join(lines) + "\n"


def _entry(row: Row) -> str:
    mine = f"{row['mean_time_ms']:.2f}{' **×**' if row['failed'] else ''}"
    if row["symbol"] not in SYMBOLS:
        return mine
    theirs = cell(row["pair"], row["path"], row["symbol"], row["mu"])
    return f"{mine} ({theirs.ms:g}{' ×' if theirs.diverges else ''})"
