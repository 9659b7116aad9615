"""Rows whose side a person knows: they have it, and so have the rows that are like them."""

from __future__ import annotations

import csv
import json
import warnings

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from robustbn import (
    BayesianNetwork,
    RobustEstimator,
    example_network,
    random_network,
    sample,
    write_network,
)
from robustbn._core.expansion import normalise_counts
from robustbn._show.frames import question_columns
from robustbn.adversary import corrupt
from robustbn.cli import main
from robustbn.exceptions import ConvergenceWarning, DataError, NotFittedError

pytestmark = [
    pytest.mark.filterwarnings("ignore::robustbn.exceptions.UnseenConfigurationWarning"),
    pytest.mark.filterwarnings("ignore::robustbn.exceptions.SmallSampleWarning"),
]


@pytest.fixture(scope="module")
def alarm():
    return example_network("alarm")


@pytest.fixture(scope="module")
def dirty(alarm):
    """ALARM's rows, a tenth of them from another network."""
    return corrupt(sample(alarm, 20_000, random_state=0), alarm, "network", 0.1, random_state=0)


@pytest.fixture(scope="module")
def fitted(alarm, dirty):
    return RobustEstimator(alarm, random_state=0).fit(dirty[0])


def fit_known(network, rows, known, **settings):
    return RobustEstimator(network, random_state=0, **settings).fit(rows, known=known)


# --- known rows -----------------------------------------------------------------------------------


def test_a_known_row_has_the_side_that_is_known(alarm, dirty):
    rows, is_bad = dirty
    known = np.zeros(len(rows))
    wrong_good, wrong_bad = np.flatnonzero(~is_bad)[:2], np.flatnonzero(is_bad)[:1]
    known[wrong_good] = -1
    fit = fit_known(alarm, rows, known)
    assert (fit.row_weights_[wrong_good] == 0).all()
    assert fit.row_weights_[wrong_bad] < 0.01  # two odd rows start no kind, and end none
    assert len(fit.kinds_) == 1
    alone = RobustEstimator(alarm, random_state=0).fit(rows)
    lost = alone.counts_ - fit.counts_
    assert lost.sum() == pytest.approx(2 * len(alarm.nodes), abs=0.1)


def test_a_kind_with_rows_known_to_be_good_becomes_a_class(alarm, dirty, fitted):
    rows, is_bad = dirty
    known = np.zeros(len(rows), int)
    known[np.flatnonzero(is_bad)[:3]] = 1
    fit = fit_known(alarm, rows, known)
    assert fitted.contamination_ > 0.09
    assert fit.contamination_ < 1e-6
    assert not fit.kinds_
    assert fit.misfit_.n_classes == 1
    assert not fit.misfit_.is_exact
    assert "1 additional class of good rows" in fit.status_


def test_many_good_rows_do_not_excuse_a_kind_that_few_of_them_stray_into(alarm, dirty, fitted):
    rows, is_bad = dirty
    known = np.zeros(len(rows), int)
    known[np.flatnonzero(~is_bad)[:3000]] = 1
    known[np.flatnonzero(is_bad)[:3]] = 1  # three mistakes
    fit = fit_known(alarm, rows, known)
    assert fit.contamination_ == pytest.approx(fitted.contamination_, abs=0.001)


def test_a_class_with_rows_known_to_be_bad_becomes_a_kind():
    """Two fifths of the rows have their own way in some tables: natural, unless somebody knows."""
    first = random_network("tree", 14, random_state=0)
    tables = {n: t[..., ::-1] if n in first.nodes[3:8] else t for n, t in first.cpts.items()}
    rows = np.vstack([sample(first, 9000, 1), sample(first.with_cpts(tables), 6000, 2)])
    is_second = np.arange(len(rows)) >= 9000
    rng = np.random.default_rng(0)
    order = rng.permutation(len(rows))
    rows, is_second = rows[order], is_second[order]
    alone = RobustEstimator(first, random_state=0).fit(rows)
    assert alone.contamination_ < 0.01
    known = np.zeros(len(rows), int)
    known[np.flatnonzero(is_second)[:20]] = -1
    fit = fit_known(first, rows, known)
    assert 1 - fit.row_weights_[is_second].mean() > 0.7
    assert 1 - fit.row_weights_[~is_second].mean() < 0.15
    assert fit.kinds_


def test_rows_known_to_be_bad_start_a_kind_that_was_not_found():
    """So few, in six of thirty columns, that little is found of them; with examples most is."""
    network = random_network("tree", 30, random_state=1)
    rows = sample(network, 10_000, 3)
    rows[:19, :6] = 1 - rows[:19, :6]
    settings = {"misfit": "allow", "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        alone = RobustEstimator(network, **settings).fit(rows)
        known = np.zeros(len(rows), int)
        known[:10] = -1
        fit = RobustEstimator(network, **settings).fit(rows, known=known)
    assert alone.row_weights_[10:19].mean() > 0.6
    assert fit.row_weights_[10:19].mean() < 0.2
    assert fit.row_weights_[19:].mean() > alone.row_weights_[19:].mean() - 0.005


def test_rows_known_to_be_good_put_filters_away(alarm):
    """Without kinds to explain them, filters alone judge; known rows speak to those, too."""
    rows, is_bad = corrupt(sample(alarm, 20_000, 0), alarm, "network", 0.1, random_state=0)
    alone = RobustEstimator(alarm, random_state=0, polish=False).fit(rows)
    assert alone.row_weights_[is_bad].mean() < 0.5
    known = np.zeros(len(rows), int)
    known[np.flatnonzero(is_bad)[:5]] = 1
    fit = fit_known(alarm, rows, known, polish=False)
    assert fit.row_weights_.min() == 1


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ([1, 0], "one value per row"),
        ([2] * 50, "found 2 at row 0"),
        (["yes"] * 50, "found 'yes' at row 0"),
    ],
)
def test_what_is_known_is_checked(alarm, known, said):
    with pytest.raises(DataError, match=said):
        RobustEstimator(alarm, random_state=0).fit(sample(alarm, 50, 0), known=known)


def test_known_rows_are_for_the_default_method_and_for_memory(alarm, tmp_path):
    rows = sample(alarm, 50, 0)
    with pytest.raises(ValueError, match="known is supported only by"):
        RobustEstimator(alarm, 0.1, "trimmed").fit(rows, known=np.zeros(50))
    with pytest.raises(ValueError, match="known is supported only for rows in memory"):
        RobustEstimator(alarm, place="stream").fit(rows, known=np.zeros(50))


# --- deciding on groups --------------------------------------------------------------------------


def test_trusting_a_kind_gives_the_tables_with_its_rows(alarm, dirty, fitted):
    rows, _ = dirty
    without, again = fitted.decide(good=[1]), fitted.decide(good=[1], X=rows)
    counted = normalise_counts(alarm.layout, fitted.result_.learned.plain_counts)
    for new in (without, again):
        assert not new.kinds_
        assert new.contamination_ < 1e-6
        assert new.network_.probabilities == pytest.approx(counted, abs=1e-6)
        assert new.row_weights_.min() > 0.999
        assert (new.predict(rows) == 1).all()
        assert not new.misfit_.is_exact
        assert new.converged_
    assert fitted.contamination_ > 0.09  # the fit itself is as it was
    assert (fitted.row_weights_ < 0.5).any()


def test_a_decision_is_kept_in_the_model_file_and_can_be_taken_back(fitted, dirty, tmp_path):
    fitted.decide(good=[1]).save(tmp_path / "model.json")
    loaded = RobustEstimator.load(tmp_path / "model.json")
    assert (loaded.predict(dirty[0][:500]) == 1).all()
    (group,) = loaded.groups_
    assert not group.is_bad
    assert group.probability == 0
    again = loaded.decide(bad=[1], X=dirty[0])
    assert again.contamination_ == pytest.approx(fitted.contamination_, abs=0.01)


def test_only_groups_that_there_are_can_be_decided(fitted, tmp_path):
    for wrong in ([0], [2], ["x"]):
        with pytest.raises(ValueError, match=r"numbers of groups .* 1 to 1"):
            fitted.decide(bad=wrong)
    fitted.save(tmp_path / "model.json")
    with pytest.raises(NotFittedError, match=r"decide\(bad, good, X\)"):
        RobustEstimator.load(tmp_path / "model.json").decide(good=[1])


@pytest.fixture(scope="module")
def small():
    """Rows of a tree, a tenth of them of another population."""
    network = random_network("tree", 30, random_state=0)
    return network, *corrupt(sample(network, 5_000, 0), network, "product", 0.1, random_state=0)


@pytest.mark.parametrize("gives_rows", [False, True])
def test_trusting_a_kind_of_weighted_rows_keeps_to_one_unit(small, gives_rows):
    network, rows, is_bad = small
    weights = np.where(is_bad, 3.0, 2.0)
    fit = RobustEstimator(network, random_state=0).fit(rows, sample_weight=weights)
    trusted = fit.decide(good=[1], X=rows if gives_rows else None)
    assert trusted.result_.learned.n_rows == pytest.approx(weights.sum())
    assert trusted.contamination_ < 1e-3
    counted = normalise_counts(network.layout, fit.result_.learned.plain_counts)
    assert trusted.network_.probabilities == pytest.approx(counted, abs=1e-3)
    assert trusted.status_.startswith(f"{trusted.contamination_:.2%}")


def test_the_share_of_a_kind_does_not_depend_on_what_rows_weigh(small):
    network, rows, _ = small
    (alone,) = RobustEstimator(network, random_state=0).fit(rows).kinds_
    weighed = RobustEstimator(network, random_state=0).fit(rows, sample_weight=[2.0] * len(rows))
    (kind,) = weighed.kinds_
    assert kind.share == pytest.approx(alone.share)
    assert kind.n_rows == pytest.approx(alone.n_rows)
    for cell, expected in zip(kind.moved, alone.moved, strict=True):
        assert cell.with_kind == pytest.approx(expected.with_kind)


def test_trusting_a_kind_does_not_forget_known_rows(small):
    network, rows, is_bad = small
    known = np.zeros(len(rows), int)
    known[np.flatnonzero(is_bad)[:2]] = -1
    known[np.flatnonzero(~is_bad)[:2]] = -1
    fit = fit_known(network, rows, known)
    trusted = fit.decide(good=[1], X=rows)
    assert (trusted.row_weights_[known < 0] == 0).all()
    assert (trusted.row_weights_[known == 0] > 0.999).all()
    assert trusted.result_.learned.n_trusted == pytest.approx(len(rows) - 4, abs=0.1)
    with pytest.raises(NotFittedError, match=r"known rows, .* decide\(bad, good, X\)"):
        fit.decide(good=[1])


def test_a_kind_is_trusted_with_the_rows_of_the_fit_and_no_others(small, tmp_path):
    network, rows, _ = small
    fit = RobustEstimator(network, random_state=0).fit(rows, sample_weight=[2.0] * len(rows))
    with pytest.raises(DataError, match="the 5,000 rows of fit; found 100"):
        fit.decide(good=[1], X=rows[:100])
    fit.save(tmp_path / "model.json")
    with pytest.raises(NotFittedError, match="weights are not stored"):
        RobustEstimator.load(tmp_path / "model.json").decide(good=[1], X=rows)


# --- asking ---------------------------------------------------------------------------------------


def test_the_rows_to_look_at_are_examples_of_what_decides(fitted, dirty):
    _, is_bad = dirty
    asked = question_columns(fitted.result_, 10)
    assert len(set(asked["row"])) == 10
    assert is_bad[asked["row"]].all()
    assert set(asked["group"]) == {1}
    moved = float(np.mean(fitted.moved()["moved"]))
    assert asked["change"][0] == pytest.approx(moved, rel=0.2)
    assert all(why for why in asked["why"])
    states = fitted.network_.states["HISTORY"]
    assert [states.index(s) for s in asked["HISTORY"]] == dirty[0][asked["row"], 0].tolist()


def test_answers_to_what_is_asked_settle_it(alarm, dirty, fitted):
    rows, _ = dirty
    known = np.zeros(len(rows), int)
    known[question_columns(fitted.result_, 3)["row"]] = 1
    assert fit_known(alarm, rows, known).contamination_ < 1e-6


def test_every_kind_is_asked_about_and_no_row_twice():
    network = random_network("tree", 40, random_state=2)
    rows = sample(network, 20_000, 3)
    rows[:1000] = 1 - rows[:1000]
    rows[1000:1600] = 0
    fit = RobustEstimator(network, random_state=0).fit(rows)
    asked = question_columns(fit.result_, 6)
    assert (asked["row"] < 1000).any()
    assert ((asked["row"] >= 1000) & (asked["row"] < 1600)).sum() == 1  # copies of one row


def test_nothing_is_asked_of_rows_that_fit(alarm):
    fit = RobustEstimator(alarm, random_state=0).fit(sample(alarm, 20_000, 5))
    assert len(fit.ask(5)) == 0


def test_every_row_that_is_asked_about_has_a_reason(alarm, dirty):
    """Of a group of good rows that the network does not describe, too; no other trusted row."""
    parents = {node: list(alarm.parents[node]) for node in alarm.nodes}
    parents["CVP"], parents["PCWP"], parents["HR"] = [], [], []
    drawn = BayesianNetwork(parents, alarm.states)
    misfitting = RobustEstimator(drawn, random_state=0).fit(sample(alarm, 12_000, 1))
    assert misfitting.contamination_ == 0
    asked = question_columns(misfitting.result_, 5)
    assert (
        asked["why"]
        == ["trusted: one of a group of good rows that the network does not describe"] * 5
    )
    few = RobustEstimator(alarm, random_state=0).fit(dirty[0][:3000])
    asked = question_columns(few.result_, 1000)
    assert all(asked["why"])
    assert asked["weight"].max() < 0.995  # none that is trusted to 100 %


# --- the command line -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table(alarm, dirty, tmp_path_factory):
    """Dirty rows as a file, with a column that says what is known of three."""
    rows, is_bad = dirty
    path = tmp_path_factory.mktemp("known") / "rows.csv"
    some = np.concatenate([np.flatnonzero(is_bad)[:3], np.flatnonzero(~is_bad)[:3000]])
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*alarm.nodes, "checked"])
        for k in np.sort(some):
            states = [alarm.states[n][c] for n, c in zip(alarm.nodes, rows[k], strict=True)]
            writer.writerow([*states, "good" if is_bad[k] else ""])
    return path


def run(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments], catch_exceptions=False)


def test_the_command_line_takes_what_is_known(table):
    done = run("fit", "example:alarm", table, "--known", "checked", "--json", "--quiet")
    assert json.loads(done.stdout)["contamination"] < 1e-6
    wrong = run("fit", "example:alarm", table, "--known", "HISTORY")
    assert wrong.exit_code == 4
    assert "known values are 1 (good), -1 (bad) or" in wrong.stderr
    assert "no such column" in run("fit", "example:alarm", table, "--known", "x").stderr


@pytest.mark.parametrize("is_asked", [False, True])
def test_the_column_of_known_rows_is_context_only_if_asked_for(is_asked, tmp_path):
    network = random_network("tree", 6, random_state=0)
    rows, is_bad = corrupt(sample(network, 600, 0), network, "product", 0.1, random_state=0)
    write_network(network, tmp_path / "tree.json")
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*network.nodes, "checked", "site"])
        for row, bad in zip(rows, is_bad, strict=True):
            states = [network.states[n][c] for n, c in zip(network.nodes, row, strict=True)]
            writer.writerow([*states, "bad" if bad else "", "away" if bad else "here"])
    asked = ("--context", "checked,site") if is_asked else ()
    call = ("fit", tmp_path / "tree.json", tmp_path / "rows.csv", "--known", "checked", "--json")
    findings = json.loads(run(*call, *asked).stdout)["findings"]
    where = {column for each in findings if each["kind"] == "rows" for column in each["where"]}
    assert where == ({"checked"} if is_asked else {"site"})


def test_the_command_line_trusts_a_kind_and_asks(alarm, dirty, tmp_path):
    states = [alarm.states[n] for n in alarm.nodes]
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [alarm.nodes, *([s[c] for s, c in zip(states, row, strict=True)] for row in dirty[0])]
        )
    call = ("fit", "example:alarm", tmp_path / "rows.csv")
    done = run(*call, "--ask", "3", "--output-dir", tmp_path / "out")
    assert "check row" in done.stdout
    with (tmp_path / "out" / "ask.csv").open() as file:
        asked = list(csv.DictReader(file))
    assert [line["group"] for line in asked] == ["1", "1", "1"]
    assert json.loads((tmp_path / "out" / "run.json").read_text())["result"]["ask"][0]["row"] >= 0
    trusted = json.loads(run(*call, "--good-group", "1", "--json").stdout)
    assert trusted["contamination"] < 1e-6
    assert "1 to 1" in run(*call, "--bad-group", "9").stderr


def test_the_ticks_of_a_report_are_a_file_for_known(tmp_path):
    network = random_network("tree", 12, random_state=0)
    rows, is_bad = corrupt(sample(network, 600, 0), network, "product", 0.1, random_state=0)
    write_network(network, tmp_path / "tree.json")
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(network.nodes)
        for row in rows:
            writer.writerow(network.states[n][c] for n, c in zip(network.nodes, row, strict=True))
    bad, good = np.flatnonzero(is_bad), np.flatnonzero(~is_bad)
    ticks = [f"{row},bad" for row in bad] + [f"{row},good" for row in good[:50]]
    (tmp_path / "known.csv").write_text("\ufeff" + "\r\n".join(["row,known", *ticks]) + "\r\n")
    call = ("fit", tmp_path / "tree.json", tmp_path / "rows.csv", "--known", tmp_path / "known.csv")
    run(*call, "--weights", tmp_path / "out.csv")
    weights = pd.read_csv(tmp_path / "out.csv")["weight"]
    assert (weights[bad] == 0).all()
    assert (weights[good[:50]] == 1).all()
    (tmp_path / "known.csv").write_text("row,known\n600,bad\n")
    told = CliRunner().invoke(main, [str(word) for word in call])
    assert told.exit_code == 2
    assert "line 2: expected row,known with a row number from 0 to 599; found '600'" in told.output
