"""What 001, N. Talbi's thesis, prints in chapter 3, as the studies need it."""

from typing import NamedTuple

MUS = (0.1, 0.3, 0.5, 0.7)

SYMBOLS = {
    "GB": "uzawa-global-bipotential-rho_min",
    "G*B": "uzawa-global-bipotential-rho_alpha-printed",
    "L": "uzawa-local-bipotential-rho_min",
    "L*": "uzawa-local-bipotential-rho_alpha-printed",
    "LS": "uzawa-signorini-bipotential-rho_min",
    "LS*": "uzawa-signorini-bipotential-rho_alpha-printed",
}
"""The six solvers of tables 3.20 to 3.41, and their names in the registry."""


class Cell(NamedTuple):
    """One entry of tables 3.36 to 3.41."""

    ms: float
    diverges: bool


def _cells(*entries: float) -> tuple[Cell, ...]:
    """One line of a table, at MUS; a negative time stands for "(Div)" behind it."""
    return tuple(Cell(abs(ms), ms < 0.0) for ms in entries)


TABLES = {
    ("aluminium-tissue", "penetration"): {  # 3.36
        "G*B": _cells(10, 7.74, 11.25, 11.80),
        "L*": _cells(11.22, 9.41, 9.71, 11.54),
        "GB": _cells(15.87, 13.29, 17.35, 20.5),
        "L": _cells(17.38, 14.22, 14.19, 17.16),
        "LS*": _cells(24, 24.48, 16.09, 14.13),
        "LS": _cells(21.16, 22.41, 23.8, 19),
    },
    ("aluminium-tissue", "sliding"): {  # 3.37
        "G*B": _cells(13.05, 18.02, 25.82, 32.77),
        "GB": _cells(18.17, 19.85, 28.27, 29.12),
        "L*": _cells(14.3, 19.57, 31.1, 41.52),
        "LS*": _cells(13.92, 20.32, 31.7, 42.82),
        "L": _cells(22.2, 26.77, 36.57, 43.55),
        "LS": _cells(26.75, 29.1, 41, 48.7),
    },
    ("aluminium-rubber", "penetration"): {  # 3.38
        "GB": _cells(15.8, 19.64, 25.43, 28.36),
        "G*B": _cells(9.53, 22.35, 26.3, 30.96),
        "LS": _cells(19.4, 23, 27.7, 35.36),
        "L": _cells(14.03, 25.25, 29.7, 35.9),
        "L*": _cells(10.86, 24.90, -690, -722),
        "LS*": _cells(27.03, 36.45, -571, -644),
    },
    ("aluminium-rubber", "sliding"): {  # 3.39
        "GB": _cells(18.45, 23.22, 27.22, 30.82),
        "G*B": _cells(13.82, 23.27, 27.15, -55.2),
        "L": _cells(16.82, 25.72, 30.37, 33.65),
        "LS": _cells(20.85, 25.57, 29.15, 33.1),
        "LS*": _cells(16.27, 25.67, -216.9, -545.9),
        "L*": _cells(14.8, 26.02, -427.7, -656),
    },
    ("tissue-tissue", "penetration"): {  # 3.40
        "GB": _cells(25.38, 52.77, 81.16, 120),
        "LS": _cells(30.22, 50.13, 85, 134.25),
        "L": _cells(29.03, 60, 126.06, 139.31),
        "G*B": _cells(29.25, -503.25, -492, -246.5),
        "LS*": _cells(51.42, -672.9, -702, -446.82),
        "L*": _cells(28.71, -815, -994, -835),
    },
    ("tissue-tissue", "sliding"): {  # 3.41
        "GB": _cells(45.7, 72.02, 96.75, 88.6),
        "LS": _cells(50.67, 75.35, 98.42, 90.03),
        "L": _cells(54.52, 77.75, 103.87, 99.66),
        "G*B": _cells(55.55, -104.1, -140.92, -341.3),
        "LS*": _cells(58.6, -105.55, -241.67, -593.17),
        "L*": _cells(58.6, -109.45, -554.52, -643.7),
    },
}
"""Mean times of a solve [ms] by pair of materials, path, solver and friction; a processor of 1.6 GHz."""


def cell(pair: str, path: str, symbol: str, mu: float) -> Cell:
    """The entry of tables 3.36 to 3.41."""
    return TABLES[pair, path][symbol][MUS.index(mu)]


class Stiffness(NamedTuple):
    """A rho_min that the text of chapter 3 states [N/m].

    Printed with the unit N/cm, these are MN/m: moduli in MPa were multiplied by lengths in m.
    """

    pair: str
    path: str
    which: str
    """mean, first or last of the path."""
    printed: float
    section: str


STIFFNESSES = (
    Stiffness("aluminium-tissue", "penetration", "mean", 26.0, "3.5"),
    Stiffness("aluminium-tissue", "sliding", "first", 25.0, "3.4"),
    Stiffness("aluminium-tissue", "sliding", "last", 11.0, "3.4"),
    Stiffness("aluminium-rubber", "penetration", "mean", 2.17e6, "3.7.2"),
    Stiffness("aluminium-rubber", "sliding", "first", 2.16e6, "3.7.2"),
    Stiffness("aluminium-rubber", "sliding", "last", 2.06e6, "3.7.2"),
    Stiffness("tissue-tissue", "penetration", "mean", 0.69, "3.7.3"),
    Stiffness("tissue-tissue", "sliding", "first", 0.693, "3.7.3"),
    Stiffness("tissue-tissue", "sliding", "last", 0.675, "3.7.3"),
)


FACTORS = (
    ("GB", 2.0, {"sliding": 37.15 / 106.8, "penetration": 23.96 / 55.29}),
    ("GB", 2.2, {"sliding": 33.07 / 106.8, "penetration": 20.54 / 55.29}),
    ("G*B", 1.5, {"sliding": 41.8 / 77.9, "penetration": 13.54 / 27.06}),
)
"""Table 3.19, aluminium on tissue: factor on rho, and the mean time over that at factor 1."""
