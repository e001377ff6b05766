"""What to expect on new rows: figures, intervals, and what becomes of them in files."""

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest
from scipy.special import betaln, gammaln

from emsco.exceptions import InvalidParameterError
from emsco.scoring.intervals import binomial_interval
from emsco.scoring.outlook import Outlook, share_interval
from tests.strategies import examples, seeds

OUTLOOK = Outlook((60, 30), (65, 33), (70, 35), (1.0, 5.0), (80, 25))


@st.composite
def outlooks(draw, n_classes=3):
    """Counts that fit each other."""
    n_rows = [draw(st.integers(0, 40)) for _ in range(n_classes)]
    n_rows[0] += 1
    n_labelled = [draw(st.integers(0, n)) for n in n_rows]
    n_right = [draw(st.integers(0, n)) for n in n_labelled]
    cheap = draw(st.integers(0, sum(n_rows)))
    prices = sorted(draw(st.lists(st.integers(0, 100), min_size=2, max_size=2, unique=True)))
    return Outlook(
        tuple(n_right), tuple(n_labelled), tuple(n_rows), tuple(map(float, prices)), (cheap, sum(n_rows) - cheap)
    )


def beta_binomial(k, n, a, b):
    """Return the probability of k of n, written down."""
    return np.exp(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + betaln(k + a, n - k + b) - betaln(a, b))


@examples(200)
@given(st.data(), st.integers(1, 60), st.integers(1, 60), st.sampled_from([0.5, 0.9, 0.95]))
def test_a_share_of_new_rows_is_beta_binomial(data, n, n_new, level):
    n_hits = data.draw(st.integers(0, n))
    low, high = share_interval(n_hits, n, n_new, level)
    counts = np.arange(n_new + 1)
    below = np.cumsum(beta_binomial(counts, n_new, n_hits + 0.5, n - n_hits + 0.5))
    tail = (1 - level) / 2
    for end, share in ((low, tail), (high, 1 - tail)):
        at = round(end * n_new)
        assert end == at / n_new
        assert below[at] >= share - 1e-9, "so many rows or fewer are hits with that probability"
        assert at == 0 or below[at - 1] <= share + 1e-9, "and no smaller number does"


def test_intervals_of_new_rows_hold_as_often_as_they_say():
    rng = np.random.default_rng(0)
    held = 0
    for share in rng.beta(0.5, 0.5, size=2_000):  # the prior
        n_hits, new = rng.binomial(80, share), rng.binomial(40, share)
        low, high = share_interval(n_hits, 80, 40)
        held += low <= new / 40 <= high
    assert 0.94 <= held / 2_000 <= 1


def a_quarter_wider(share, interval):
    return tuple(np.clip(share + 1.25 * (np.array(interval) - share), 0, 1).tolist())


def test_in_the_long_run_it_is_the_interval_of_clopper_and_pearson_a_quarter_wider():
    assert OUTLOOK.interval("coverage") == pytest.approx(a_quarter_wider(98 / 105, binomial_interval(98, 105)))
    at_80 = OUTLOOK.interval("accuracy", level=0.8)
    assert at_80 == pytest.approx(a_quarter_wider(90 / 98, binomial_interval(90, 98, 0.8)))
    among_30 = OUTLOOK.interval("accuracy", n_rows=30)  # of which 28 get a label
    assert among_30 == pytest.approx(a_quarter_wider(90 / 98, share_interval(90, 98, 28)))


@given(outlooks())
def test_figures_are_those_of_the_counts(outlook):
    n, labelled = sum(outlook.n_rows), sum(outlook.n_labelled)
    assert outlook.coverage == labelled / n
    assert outlook.accuracy == pytest.approx(sum(outlook.n_right) / labelled if labelled else np.nan, nan_ok=True)
    rows = np.repeat(outlook.paid, outlook.n_paid)
    assert outlook.mean_cost == pytest.approx(rows.mean())
    for recall, right, all_of_it in zip(outlook.recall, outlook.n_right, outlook.n_rows, strict=True):
        assert recall == pytest.approx(right / all_of_it if all_of_it else np.nan, nan_ok=True)
    if n > 1:
        error = rows.std(ddof=1) / np.sqrt(n)
        assert outlook.interval("mean_cost")[1] - outlook.mean_cost == pytest.approx(1.25 * 1.959964 * error, rel=1e-5)
        wider = outlook.interval("mean_cost", n_rows=n)[1] - outlook.mean_cost
        assert wider == pytest.approx(1.25 * np.sqrt(2) * 1.959964 * error, rel=1e-5)


def test_a_choice_that_labels_every_case_labels_every_new_one():
    everyone = Outlook((3, 2), (4, 3), (4, 3), (1.0,), (7,))
    assert everyone.interval("coverage") == everyone.interval("coverage", n_rows=2) == (1.0, 1.0)
    assert everyone.interval("accuracy")[0] < 0.5


@given(outlooks(), st.sampled_from(["coverage", "accuracy", "mean_cost"]), st.integers(1, 50))
def test_an_interval_holds_its_figure_and_what_few_rows_may_come_to(outlook, figure, n_rows):
    if figure == "accuracy" and not sum(outlook.n_labelled):
        return
    value = getattr(outlook, figure)
    low, high = outlook.interval(figure)
    assert low <= value + 1e-12
    assert high >= value - 1e-12
    low, high = outlook.interval(figure, n_rows=n_rows)
    assert 0 <= low <= high
    if figure != "mean_cost":
        assert high <= 1
        hits, n = sum(outlook.n_labelled), sum(outlook.n_rows)
        if figure == "accuracy":
            hits, n, n_rows = sum(outlook.n_right), hits, max(round(n_rows * hits / n), 1)
        within = share_interval(hits, n, n_rows)
        assert low <= within[0] <= within[1] <= high, "it is wider than by the luck of these rows alone"


@given(outlooks())
def test_a_record_of_it_is_json_and_comes_back(outlook):
    import json

    assert Outlook.from_dict(json.loads(json.dumps(outlook.to_dict()))) == outlook


def test_other_figures_have_no_interval():
    with pytest.raises(InvalidParameterError, match="figure must be one of coverage, accuracy, mean_cost; got 'price'"):
        OUTLOOK.interval("price")


@settings(max_examples=5)
@given(seeds())
def test_the_mean_cost_of_new_rows_is_within_its_interval_as_often_as_it_says(seed):
    rng = np.random.default_rng(seed)
    held = 0
    for _ in range(400):
        seen, new = rng.choice([1.0, 5.0, 20.0], p=[0.6, 0.3, 0.1], size=200), None
        new = rng.choice([1.0, 5.0, 20.0], p=[0.6, 0.3, 0.1], size=60).mean()
        paid, n_paid = np.unique(seen, return_counts=True)
        outlook = Outlook((200,), (200,), (200,), tuple(paid.tolist()), tuple(n_paid.tolist()))
        low, high = outlook.interval("mean_cost", n_rows=60)
        held += low <= new <= high
    assert held / 400 > 0.88
