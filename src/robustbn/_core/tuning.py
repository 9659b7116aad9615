"""Every number that decides accuracy or stops a loop, in one place.

`python -m benchmarks sensitivity` halves and doubles each one, on networks and adversaries that
were not used to choose it, and writes which of them matter (`benchmarks/results/sensitivity.md`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any


def _number(value: Any, unit: str, reason: str) -> Any:
    return field(default=value, metadata={"unit": unit, "reason": reason})


@dataclass(frozen=True)
class Tuning:
    """The numbers, each with its unit and its reason: see `describe`.

    A name says the stage that it belongs to: `spectrum_`, `sample_`, `kind_`, `split_`, `settle_`,
    `filter_`, `copies_`, `design_` are of the default method, `where_` and `states_` of what is
    said and read, the others of the named oracles.
    """

    # --- the spectrum -----------------------------------------------------------------------------
    spectrum_damping: float = _number(
        30.0, "rows", "cells that fewer rows touch are scaled down, or a handful decides the top"
    )
    spectrum_width: int = _number(8, "columns", "a pass costs the same for 1 to 8 columns")
    spectrum_depth: int = _number(4, "passes", "enough for a top well above the rest")
    spectrum_obvious: float = _number(
        2.0, "eigenvalue", "a top above this need not be known more precisely"
    )
    spectrum_allowance: float = _number(
        0.02, "eigenvalue", "above what drawn rows have: more is in excess, and is filtered"
    )
    spectrum_suspicion: float = _number(
        0.005, "eigenvalue", "more is looked into: an explanation has to earn its place anyway"
    )
    spectrum_quiet: float = _number(
        0.15, "sampling noise", "good rows of any network may have this: none are drawn to compare"
    )
    spectrum_directions: int = _number(8, "directions", "that a filter scores together at most")

    # --- how many rows ----------------------------------------------------------------------------
    sample_per_parameter: int = _number(
        200, "rows a free parameter", "O(m / eps^2) rows tell good from bad; more only cost time"
    )
    sample_least: int = _number(50_000, "rows", "small networks: more rows cost next to nothing")
    sample_surveyed: int = _number(
        1_000_000, "rows", "enough to count copies in, and to refit the verdict on"
    )
    sample_drawn: int = _number(50_000, "rows", "drawn from the tables, for thresholds and filters")
    sample_calibrated: int = _number(200_000, "rows", "drawn to calibrate the odds")

    # --- kinds of bad rows ------------------------------------------------------------------------
    kind_rounds: int = _number(12, "rounds", "ends a search that goes on earning")
    kind_most: int = _number(12, "kinds", "memory and time a row grow with them")
    kind_least_rows: float = _number(20.0, "rows", "fewer marked rows describe nothing")
    kind_gain: float = _number(
        3.0, "nats a free parameter", "log-likelihood that a new kind must bring"
    )
    kind_clarity: float = _number(
        0.35,
        "mean probability",
        "of being bad, over the distrusted weight: 0.2 to 0.3 for rows from one tail of the "
        "network itself, 0.4 to 1 for all that can be undone",
    )
    kind_prior: float = _number(
        1.0, "rows a configuration", "where a kind has few rows it says what all rows say"
    )
    kind_steps: int = _number(50, "steps", "of expectation-maximisation, at most")
    kind_certain: float = _number(
        0.02,
        "probability",
        "of a row not to be of the main class; rows below it stay as they are for most steps",
    )
    kind_many_steps: float = _number(
        10.0, "times the tolerance", "a step that gains so much will be followed by many"
    )
    kind_tolerance: float = _number(5e-6, "nats a row", "a step that gains less is the last")

    # --- kinds that are not like networks ---------------------------------------------------------
    split_unsure: float = _number(
        0.02, "sampling noise", "share of rows not judged clearly that matters to the tables"
    )
    split_sure: float = _number(
        10.0, "times", "less unsure by this factor: nothing to split; more: any kind may be split"
    )
    split_edge: float = _number(
        1.1, "times a network's top", "a kind below it looks like rows of a network"
    )
    split_rows: float = _number(200.0, "rows", "a smaller kind has no spectrum to speak of")
    split_heeded: float = _number(
        0.001, "probability", "of a row to be of a kind; rows below it do not say how it is cut"
    )
    split_depth: int = _number(3, "passes", "of the spectrum of a kind")
    split_steps: int = _number(8, "steps", "after which a split must show that it gains")
    split_gain: float = _number(1.0, "nats a free parameter", "that a split must bring")
    split_moved: float = _number(0.001, "sampling noise", "of trust that a split must move")
    split_growth: float = _number(
        1.5, "times", "a finer picture shows up to 1.25 times the rows; more are good ones"
    )

    # --- the last refit, calibrated ---------------------------------------------------------------
    settle_steps: int = _number(8, "steps", "at most: two or three settle it")
    settle_least: int = _number(4, "steps", "at least: the calibration starts at none")
    settle_moved: float = _number(0.05, "sampling noise", "of the tables: they have settled")
    settle_bins: int = _number(120, "bins", "of the log-odds")
    settle_bin_rows: float = _number(10.0, "drawn rows", "a bin with fewer says nothing")
    settle_intercept_pull: float = _number(4.0, "nats^-2", "prior precision of the intercept at 0")
    settle_slope_pull: float = _number(25.0, "slope^-2", "prior precision of the slope at 1")

    # --- filters ----------------------------------------------------------------------------------
    filter_most: int = _number(20, "filters", "each is one more pass over all rows")
    filter_bins: int = _number(64, "bins", "of the scores' upper half")
    filter_tail: float = _number(2e-5, "share of rows", "deepest tail that has a bin of its own")
    filter_least: float = _number(1e-4, "share of rows", "a filter that takes less is the last")

    # --- copies -----------------------------------------------------------------------------------
    copies_seen: int = _number(3, "times", "rows seen less often are not looked at")
    copies_surprise: float = _number(
        1.35,
        "nats a log N",
        "a copy count is no chance when its tail bound is below N^-1.35: N rows are asked, "
        "at N^-1.2 three of 200 clean tables had one that seemed copied; at N^-1.5 small networks "
        "lost copies that give bad rows away",
    )
    copies_slack: float = _number(
        1.5,
        "times expected",
        "what is expected is estimated, at first with the bad rows: at 1.02 common rows of small "
        "networks seemed copied, and good ones went",
    )
    copies_steps: int = _number(12, "steps", "taking copies away changes what is expected")
    copies_settled: float = _number(1e-4, "share of rows", "a step that moves less is the last")
    copies_runaway: float = _number(
        2.0, "times the first surplus", "copies made by adversaries stay below 1.7"
    )
    copies_few: float = _number(0.01, "share of rows", "a surplus up to this never runs away")
    copies_anew: float = _number(
        2e-3, "share of rows", "newly found to be copies: the verdict is learned again"
    )

    # --- copies by design -------------------------------------------------------------------------
    design_rare: float = _number(
        0.2, "share of rows", "that should appear once: fewer may all be bad rows of a few patterns"
    )
    design_share: float = _number(
        0.45,
        "share of rows",
        "that appear again, of those that should not: more than bad rows can be; 0.47 to 0.7 in "
        "bootstraps of real tables, up to 0.37 in the tables themselves",
    )
    design_strata: int = _number(5, "parts", "from rare to less rare, each of which must show it")
    design_least: int = _number(20, "different rows", "of a part, or of a state; fewer say nothing")
    design_expected: float = _number(0.25, "rows", "expected of one that should appear once")
    design_noticed: float = _number(0.02, "share of rows", "repeated at all: less is not looked at")
    design_rows: int = _number(20_000, "rows", "that are looked at, with all their copies")
    design_distinct: int = _number(
        30, "different rows", "whose numbers share a divisor: by chance one table in 2^30 is so"
    )
    design_effect: float = _number(1.05, "rows", "that say as much as one: less is chance")
    design_tail: float = _number(1.0, "decades", "added to the tail of numbers of copies")
    design_alike: float = _number(0.9, "share of rows", "of an upsampled state that are repeated")
    design_uneven: float = _number(1.5, "times", "as many copies as rows of other states have")
    design_group: float = _number(0.01, "share of rows", "of a state that is told of")

    # --- components with tied tables --------------------------------------------------------------
    tied_rows: int = _number(50_000, "rows", "to search in: enough for a kind of 1 %")
    tied_most: int = _number(6, "components", "natural variety goes on for ever")
    tied_main: float = _number(0.3, "share of rows", "a smaller main class is no main class")
    tied_noise: float = _number(
        1.25, "times the drawn excess", "the top eigenvalue of drawn rows is noisy itself"
    )
    tied_directions: int = _number(4, "directions", "of which both ends are starts")
    tied_copies: int = _number(3, "rows", "that appear too often: what is near them is a start")
    tied_radius: float = _number(0.15, "share of nodes", "in which a row near it may differ")
    tied_surprise: float = _number(10.0, "nats", "of its number of copies: less is chance")
    tied_handful: float = _number(
        0.01, "share of rows", "added to a start's own, or a handful of odd rows wins"
    )
    tied_kept: int = _number(6, "starts", "after the first steps: none holds another's rows")
    tied_finished: int = _number(2, "starts", "fitted together with all components")
    tied_first_steps: int = _number(3, "steps", "of all starts")
    tied_more_steps: int = _number(6, "steps", "of those that are kept")
    tied_joint_steps: int = _number(25, "steps", "of all components together")
    tied_settled: int = _number(10, "steps", "after which ties are kept: they would flicker")

    # --- which components are bad -----------------------------------------------------------------
    standing_factor: float = _number(
        2.0, "standing", "of a bad kind, squared, over that of the next: 1.44 alarms twice as often"
    )
    standing_natural: float = _number(0.1, "standing", "that natural variety has in any table")
    standing_alone: float = _number(
        0.1, "share of families", "added to those without parents: some bad rows keep them all"
    )
    standing_rows: float = _number(20.0, "rows a parameter", "below it a kind may be an accident")
    standing_share: float = _number(0.45, "share of rows", "a larger component is never bad")

    # --- is the network exact? --------------------------------------------------------------------
    exact_evidence: float = _number(
        3.0, "nats a row", "kinds that bring more, and leave clean rows, are plainly bad rows"
    )
    exact_evidence_node: float = _number(
        0.1, "nats a row and node", "natural kinds bring up to 0.04; wide tables ask for more"
    )
    exact_unsplit: float = _number(
        0.5,
        "times that evidence",
        "of a kind that is not split yet: with less, splitting never made up for it in 44 scenes, "
        "and takes most of the time where a network does not fit",
    )
    exact_copies: float = _number(
        0.005, "share of rows", "otherwise trusted that copies may cost; more may be good rows"
    )
    exact_nearly: float = _number(
        0.06, "eigenvalue", "left in excess by bad rows that no tied kind describes well"
    )
    exact_share: float = _number(0.12, "first excess", "and no more than this share of it")
    exact_one_sided: float = _number(
        0.5, "eigenvalue", "in excess at the most for the bottom to be looked at"
    )
    exact_shortage: float = _number(
        0.2,
        "times the excess",
        "that the bottom of the spectrum is short of: 0.5 to 0.9 under misfit, which moves both "
        "ends; less if bad rows are left",
    )
    exact_dubious: float = _number(
        0.15, "share of rows", "in components that do not stand out: bad all the same"
    )
    exact_more: float = _number(
        0.09, "share of rows", "that may be distrusted beside the tied kinds' own"
    )

    # --- could edges explain it? ------------------------------------------------------------------
    edge_rows: int = _number(20_000, "rows", "in which an edge is sought that explains a kind")
    edge_breadth: float = _number(
        8.0,
        "tables",
        "that a kind breaks, as if all alike: one that breaks more is none of an edge",
    )
    edge_nodes: int = _number(3, "nodes", "of a kind that differ most: an edge is sought at each")
    edge_least: float = _number(
        0.005, "nats a row", "that a kind tells of the rows; the ratio of less says nothing"
    )
    edge_as_well: float = _number(
        0.9,
        "times the kind's own",
        "what an edge tells of the rows: 0.95 to 1.2 for an edge that is missing, at most 0.8 for "
        "two stuck columns, 0.4 for anything broader",
    )
    edge_small: int = _number(
        8, "nodes", "in a network of so few, one edge may explain all that is amiss"
    )
    edge_uncopied: float = _number(
        0.45,
        "times the kind's own",
        "the same without copies: 0.5 to 1.2 for an edge that is missing, at most 0.4 for one "
        "that explains copies of bad rows and little else",
    )

    # --- rows whose side is known -----------------------------------------------------------------
    known_least: float = _number(
        0.9, "rows", "of a component that are known: one clear example is an answer"
    )
    known_stray: float = _number(
        0.5, "times the main class's rate", "known good rows rarer than this in a kind are strays"
    )
    known_start: int = _number(3, "rows", "known bad ones that no kind holds: fewer start none")
    known_share: float = _number(
        0.03, "share of rows", "that such a kind starts with; a fifth and five times it, too"
    )
    known_steps: int = _number(25, "steps", "of such a kind")
    ask_class: float = _number(
        0.1, "times its stake", "that a class of good rows counts: it is rarely a bad kind"
    )

    # --- rows with missing cells ------------------------------------------------------------------
    completion_largest_table: int = _number(
        2**18, "entries", "2 MB: connected missing cells that need a larger one are sampled"
    )
    completion_sweeps: int = _number(
        1024, "sweeps", "of sampling: its noise is a small share of that of the rows themselves"
    )

    completion_start: float = _number(
        1.0, "rows a configuration", "spread evenly at first: no step leaves a zero"
    )
    completion_settled: float = _number(
        0.05, "standard errors", "left to go: a thousandth of a nat, what was seen says no more"
    )
    completion_noise: float = _number(
        0.25, "sampling noise", "left to go, where components are sampled: steps jump about as far"
    )
    completion_steps: int = _number(300, "steps", "each a pass over the distinct questions")
    completion_stretch: float = _number(
        4.0, "times a step", "at first; so much more after a success, less after a failure"
    )
    completion_memory: float = _number(
        0.7,
        "times",
        "the pace found before: a stretch hides slow directions for a while",
    )
    completion_least: float = _number(
        0.1, "share", "of an inferred count that a stretched step leaves: it must not end at zero"
    )

    # --- causes by name ---------------------------------------------------------------------------
    cause_explains: float = _number(
        0.85, "share of nats", "between a kind and good rows that a cause must explain"
    )
    cause_noise: float = _number(
        0.97, "share of nats", "the same of noise and defaults: small real groups reach 0.96"
    )
    cause_unlike: float = _number(
        0.98,
        "share of nats",
        "the same of unrelated columns: small real groups reach 0.96",
    )
    cause_unrelated: float = _number(
        0.1, "share of nats", "by which columns must be seen not to depend as among good rows"
    )
    cause_ahead: float = _number(0.05, "share of nats", "by which it must be ahead of any other")
    cause_complete: float = _number(
        0.97, "share of nats", "a cause that explains so much need not be far ahead"
    )
    cause_ahead_nats: float = _number(30.0, "nats", "by which it then must be ahead")
    cause_special: float = _number(
        0.03, "share of nats", "that a simpler cause may explain less than what it is a case of"
    )
    cause_together: float = _number(
        0.9, "share of nats", "of all kinds together, for a cause that they have in common"
    )
    cause_judges: float = _number(
        0.975, "share of nats", "that makes spoilt rows of a class: real classes reach 0.966"
    )
    cause_judges_share: float = _number(
        0.2, "share of rows", "in a larger class, columns that never vary are answers to a question"
    )
    cause_covered: float = _number(0.5, "share of rows", "of a kind that are near few templates")
    cause_copied: float = _number(
        0.8, "nats of own tables", "that templates must bring: other causes bring up to 0.6"
    )
    cause_population: float = _number(
        0.7, "share of nats", "that any other cause may explain of another population"
    )
    cause_left: float = _number(
        8.0, "nats a row", "or left by any other cause: other causes leave up to 4"
    )
    cause_breadth: float = _number(
        0.4, "share of tables", "in which another population differs, and four at least"
    )

    # --- what is said: not swept, no table depends on it ------------------------------------------
    where_p_value: float = _number(
        0.01, "probability", "of naming any group of a table whose bad rows gather nowhere"
    )
    where_rows: int = _number(10, "rows", "of a group that is named: fewer are single cases")
    where_ratio: float = _number(
        1.2, "times the overall share", "among many rows less is certain, and of no interest"
    )
    where_paired: int = _number(12, "groups", "most telling ones, that are looked at two by two")
    where_stretches: int = _number(100, "stretches", "of the row number: one is 1 % of the rows")
    where_values: int = _number(
        1_000, "values", "of words and whole numbers: with more they are names, or are cut"
    )
    where_periods: int = _number(
        400, "periods", "of a time: the shortest with no more of them, so a year goes by days"
    )
    where_intervals: int = _number(10, "intervals", "of numbers, with equally many rows each")
    states_few_labels: int = _number(
        12, "labels", "so few are states even if no row repeats one: a small table"
    )
    states_names: float = _number(
        0.9, "different labels a row", "above it labels are the names of rows, and no states"
    )
    states_few_periods: int = _number(
        4, "periods", "of a date at least: the longest period that still tells rows apart"
    )
    states_rounding: float = _number(
        0.1, "share of an interval's rows", "that a readable end may move to the next interval"
    )

    # --- any oracle -------------------------------------------------------------------------------
    oracle_allowance: float = _number(
        0.1, "eps ln(1/eps)", "raises the threshold; 0.5 only tied looking once, 0.1 saw more"
    )
    oracle_step: float = _number(
        0.25, "eps", "weight that a step may remove: uncapped steps took 30 % of good rows"
    )
    oracle_steps: int = _number(60, "steps", "at most, of the spectral filter and of descent")
    oracle_far: float = _number(
        4.0, "median distances", "a row farther out is trimmed first, in many columns"
    )
    oracle_far_narrow: float = _number(
        6.0, "median distances a 1/sqrt(dim)", "added to it: few columns have longer tails"
    )
    oracle_softness: float = _number(
        1e-3, "share of weight", "that the highest score keeps at kappa = 1: ties go in part"
    )

    # --- Algorithm 1 and the joint loop -----------------------------------------------------------
    paper_rho: float = _number(1.0, "times eps sqrt(d)", "rho at the start; the paper's O(.)")
    paper_shrink: float = _number(0.6, "times", "rho from round to round; the paper's c_1")
    paper_beta: float = _number(0.1, "times the paper's order", "stability of the mean")
    paper_gamma: float = _number(0.05, "times the paper's order", "stability of the covariance")
    joint_rounds: int = _number(6, "rounds", "at most: three settle it")
    joint_moved: float = _number(0.05, "eps", "of weight: the rounds have settled")

    # --- quantum-entropy scores -------------------------------------------------------------------
    que_width: int = _number(64, "columns", "of the sketch; measured in `draw_sketch`")
    que_reach: float = _number(
        8.0, "nats", "exp(-x) by Taylor loses e^x to cancellation: single precision bears 8"
    )
    que_trigger: float = _number(0.2, "first excess", "of q~: above it rows are filtered")
    que_goal: float = _number(0.1, "first excess", "that filtering brings q~ down to")
    que_halved: float = _number(0.5, "first excess", "an epoch ends when it has fallen so far")
    que_steps: float = _number(5.0, "ln dim", "steps of an epoch at most (Lemma que_id)")

    # --- the spectral filter, where the covariance is not known -----------------------------------
    spectral_heaviest: float = _number(
        3.0, "variance over spread^2", "that heavy tails excuse: 2.3 for Student's t_3"
    )
    spectral_probes: int = _number(9, "columns", "that say how heavy tails are: a median of them")
    spectral_layers: int = _number(12, "layers", "of correlated directions that are looked behind")

    # --- projected gradient -----------------------------------------------------------------------
    descent_size: float = _number(
        0.5, "weight", "that a row with the mean score of the tail loses in a step"
    )
    descent_patience: int = _number(10, "steps", "without a better spectrum: no progress")
    descent_better: float = _number(0.99, "best excess", "that counts as better")
    descent_shrink: float = _number(0.8, "times", "the size of a step that made nothing better")

    # --- baselines --------------------------------------------------------------------------------
    ransac_trials: int = _number(20, "subsets", "the usual number")
    ransac_lucky: float = _number(0.1, "probability", "that a subset holds good rows only")
    trimmed_rounds: int = _number(5, "rounds", "as the baseline is used elsewhere")

    def describe(self) -> list[tuple[str, Any, str, str]]:
        """Return (name, value, unit, reason) of every number."""
        return [
            (f.name, getattr(self, f.name), f.metadata["unit"], f.metadata["reason"])
            for f in fields(self)
        ]


TUNING = Tuning()
