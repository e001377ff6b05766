"""The default choice: the cheapest point that is no worse than buying everything, against slow, plain Python."""

from collections import Counter
from dataclasses import dataclass, replace
from math import sqrt

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
import numpy as np
from numpy.testing import assert_array_equal
import pytest

from emsco import reference
from emsco.fitting._no_worse import walk_against
from emsco.fitting.finishing import simplified
from emsco.fitting.no_worse import MARGIN, choose_no_worse, within
from emsco.fitting.tuning import tune
from emsco.scoring.choice import OF_A_CLASS
from tests.scoring.test_judge import make_judge
from tests.strategies import bill, populations, problem, seeds

EXITS = (0.6, 0.75, 0.9)
PRICES = {
    "plain": [1, 2, 3, 4],
    "equal": [1, 1, 1, 1],
    "free": [0, 0, 1, 5],
}


def label_of(confidence, label, exit_at):
    """Return the stage at which a sample leaves, and its label; both lists are by stage. The last one labels."""
    for stage in range(len(label) - 1):
        if confidence[stage] >= exit_at:
            return stage, label[stage]
    return len(label) - 1, label[-1]


@given(st.data())
def test_the_kernel_equals_a_walk_in_plain_python(data):
    n_sets, n, n_designs, n_folds, n_classes = 5, data.draw(st.integers(1, 12)), 4, 3, 3
    confidence = data.draw(hnp.arrays(np.float64, (n_sets, n), elements=st.sampled_from([0.5, 0.6, 0.75, 0.8, 1.0])))
    label = data.draw(hnp.arrays(np.int64, (n_sets, n), elements=st.integers(0, n_classes - 1)))
    truth, fold = (data.draw(hnp.arrays(np.int64, n, elements=st.integers(0, 2))) for _ in range(2))
    other = data.draw(hnp.arrays(np.bool_, n))
    slots = data.draw(hnp.arrays(np.int64, (n_designs, 3), elements=st.integers(0, n_sets - 1)))
    n_stages = data.draw(hnp.arrays(np.int64, n_designs, elements=st.integers(1, 3)))
    left = np.zeros((n_designs, len(EXITS), n_folds, 3), dtype=np.int64)
    lost, gained = (np.zeros((n_designs, len(EXITS), n_folds, n_classes), dtype=np.int64) for _ in range(2))
    walk_against(slots, n_stages, confidence, label == truth, other, truth, fold, np.array(EXITS), left, lost, gained)
    leaving, losing, gaining = Counter(), Counter(), Counter()
    for d in range(n_designs):
        rows = slots[d, : n_stages[d]]
        for e, exit_at in enumerate(EXITS):
            for i in range(n):
                stage, given_label = label_of(confidence[rows, i], label[rows, i], exit_at)
                leaving[d, e, fold[i], stage] += 1
                losing[d, e, fold[i], truth[i]] += bool(other[i] and given_label != truth[i])
                gaining[d, e, fold[i], truth[i]] += bool(not other[i] and given_label == truth[i])
    for array, counts in ((left, leaving), (lost, losing), (gained, gaining)):
        assert all(array[at] == counts[at] for at in np.ndindex(array.shape))


@dataclass
class Candidate:
    """A design with an exit threshold: what each sample pays, and whether it is labelled correctly."""

    design: list
    exit: int
    paid: list
    right: list
    ends: list  # stage and label

    def key(self, rows, other):
        """By what candidates within the margin are compared, on some rows: the least is taken."""
        net = sum(other[i] for i in rows) - sum(self.right[i] for i in rows)
        design = self.design
        cost = sum(self.paid[i] for i in rows)
        return cost, reference.stage_count(design), reference.n_bought(design), net, self.exit, design

    def is_within(self, rows, other, truth):
        """Whether it is no worse than the other classifier on some rows."""
        classes = sorted(set(truth))
        for group in [*([c] for c in classes), classes]:
            lost = sum(other[i] and not self.right[i] for i in rows if truth[i] in group)
            gained = sum(self.right[i] and not other[i] for i in rows if truth[i] in group)
            room = MARGIN if len(group) == len(classes) else OF_A_CLASS
            if lost - gained > room * sqrt(lost + gained):
                return False
        return True


def walked(design, exit_at, judge):
    """Send every sample through a design."""
    costs, _, shared, overhead, parallel = bill(judge.task.prices, 0.0)
    stages, truth = range(reference.stage_count(design)), judge.task.y.tolist()
    bills = np.cumsum([reference.stage_price(design, s, costs, shared, overhead, parallel) for s in stages]).tolist()
    answers = judge.answers(np.array(design))
    ends = [label_of(answers.confidence[:, i], answers.label[:, i], exit_at) for i in range(len(truth))]
    right = [bool(label == truth[i]) for i, (_, label) in enumerate(ends)]
    return Candidate(design, EXITS.index(exit_at), [bills[stage] for stage, _ in ends], right, ends)


def candidates(designs, judge):
    """Return all designs at all exits, buying everything among them; and which samples that labels correctly."""
    everything = (0,) * judge.task.prices.n_units
    rows = sorted({everything, *map(tuple, designs.tolist())})
    found = [walked(list(row), exit_at, judge) for row in rows for exit_at in EXITS]
    return found, walked(list(everything), EXITS[0], judge).right


@st.composite
def cases(draw, prices=tuple(PRICES)):
    """A problem of four features, designs for it, some of which leave features out, and folds."""
    seed = draw(seeds())
    p = problem(seed, n_classes=draw(st.sampled_from([2, 3])), costs=PRICES[draw(st.sampled_from(prices))])
    designs = draw(populations(min_features=4, max_features=4, max_stages=4, removal=True))
    folds = np.random.default_rng(seed).integers(3, size=p.y_validation.size)
    folds[:3] = [0, 1, 2]
    return p, designs, folds


@settings(max_examples=25)
@given(cases())
def test_no_design_at_any_exit_is_cheaper_and_within_the_margin(case):
    p, designs, folds = case
    judge, truth = make_judge(p, removal=True), p.y_validation.tolist()
    found, other = candidates(designs, judge)
    everybody = range(len(truth))
    pick = choose_no_worse(designs, judge, folds, EXITS)
    allowed = [c for c in found if c.is_within(everybody, other, truth)]
    best = min(allowed, key=lambda c: c.key(everybody, other))
    again = walked(pick.design.tolist(), pick.exit_at, judge)
    assert pick.exit_at == EXITS[best.exit]
    assert (again.paid, again.right) == (best.paid, best.right)
    assert again.is_within(everybody, other, truth)


@settings(max_examples=25)
@given(cases())
def test_the_outlook_has_the_labels_of_choices_made_without_each_fold_and_the_prices_of_the_pick(case):
    p, designs, folds = case
    judge, truth, n_classes = make_judge(p, removal=True), p.y_validation.tolist(), p.n_classes
    found, other = candidates(designs, judge)
    pick, n_right = choose_no_worse(designs, judge, folds, EXITS), Counter()
    for f in range(3):
        seen, new = ([i for i in range(len(truth)) if (folds[i] == f) == here] for here in (False, True))
        allowed = [c for c in found if c.is_within(seen, other, truth)]
        chosen = min(allowed, key=lambda c: c.key(seen, other))
        for i in new:
            n_right[truth[i]] += chosen.right[i]
    bills = Counter(ticks / p.prices.scale for ticks in walked(pick.design.tolist(), pick.exit_at, judge).paid)
    n_rows = tuple(truth.count(c) for c in range(n_classes))
    outlook, paid = pick.outlook, Counter()
    for price, n in zip(outlook.paid, outlook.n_paid, strict=True):  # a free stage costs what the one before does
        paid[price] += n
    assert paid == bills
    assert outlook.n_right == tuple(n_right[c] for c in range(n_classes))
    assert outlook.n_labelled == outlook.n_rows == n_rows
    assert sum(outlook.n_rows) == sum(outlook.n_paid) == len(truth)


@settings(max_examples=15)
@given(cases(), seeds())
def test_the_choice_depends_neither_on_the_order_of_the_designs_nor_on_memory(case, seed):
    p, designs, folds = case
    again = np.random.default_rng(seed).permutation(np.concatenate([designs, designs]))
    small = make_judge(p, removal=True, cache_bytes=5 * make_judge(p).cache._slot_bytes)
    assert small.cache.capacity == 5
    one, other = (
        choose_no_worse(d, judge, folds, EXITS) for d, judge in ((designs, make_judge(p, removal=True)), (again, small))
    )
    assert_array_equal(one.design, other.design)
    assert (one.exit_at, one.outlook) == (other.exit_at, other.outlook)


@settings(max_examples=15)
@given(cases(), st.sampled_from(EXITS))
def test_the_pick_is_a_point_of_the_tuned_front_that_labels_everybody(case, exit_at):
    p, designs, folds = case
    judge = make_judge(p, removal=True)
    pick = choose_no_worse(designs, judge, folds, EXITS)
    front = tune(designs, judge, kept=[(pick.design, pick.exit_at)])
    at = (front.designs == pick.design).all(axis=1) & (front.thresholds[:, 1] == 0)
    if pick.design.max() > 0:
        at &= front.thresholds[:, 0] == pick.exit_at
    assert at.sum() == 1
    assert front.coverage[at] == 1


def test_everything_is_bought_where_nothing_else_is_as_good():
    p = problem(0, n_train=200, n_validation=400)
    of_all = {"y_train": (p.train.sum(axis=0) > 0) * 1, "y_validation": (p.validation.sum(axis=0) > 0) * 1}
    single = np.where(np.eye(4, dtype=bool), 0, -1)
    pick = choose_no_worse(single, make_judge(replace(p, **of_all), removal=True), np.arange(400) % 5, EXITS)
    assert_array_equal(pick.design, np.zeros(4))
    assert pick.outlook.n_paid == (400,)
    assert pick.outlook.paid == (p.prices.total,)


@given(hnp.arrays(np.int64, (4, 3, 2), elements=st.integers(0, 9)))
def test_within_the_margin_is_each_class_and_all_together(counts):
    lost, gained = counts[..., 0], counts[..., 1]
    n_rows = np.array([30, 40, 50])
    for i, inside in enumerate(within(lost, gained, n_rows)):
        by_class = [a - b <= OF_A_CLASS * sqrt(a + b) for a, b in counts[i].tolist()]
        a, b = counts[i].sum(axis=0).tolist()
        assert inside == (all(by_class) and a - b <= MARGIN * sqrt(a + b))
    assert within(lost * 0, gained * 0, n_rows).all(), "nothing is no worse than itself"


@pytest.mark.parametrize("removal", [False, True])
@settings(max_examples=40)
@given(st.data())
def test_a_simplified_design_gives_every_sample_the_same_label_at_the_same_price(removal, data):
    p = problem(data.draw(seeds()), costs=[1, 2, 3, 4])
    designs = data.draw(populations(min_features=4, max_features=4, max_stages=4, max_rows=4, removal=removal))
    exit_at = data.draw(st.sampled_from(EXITS))
    judge = make_judge(p, removal=removal)
    for design in designs:
        before = walked(design.tolist(), exit_at, judge)
        left = np.bincount([stage for stage, _ in before.ends], minlength=int(design.max()) + 1)
        (simple,) = simplified(design[None], left[None], removal=removal)
        after = walked(simple.tolist(), exit_at, judge)
        assert after.paid == before.paid
        assert [label for _, label in after.ends] == [label for _, label in before.ends]
        assert removal or (simple >= 0).all()
        used, n_stages = {stage for stage, _ in after.ends}, int(simple.max()) + 1
        assert used == set(range(n_stages)) or (not removal and used == set(range(n_stages - 1)))


def test_of_many_rows_a_thousandth_more_may_be_lost():
    lost, gained = np.array([[20, 0]]), np.array([[0, 0]])
    assert not within(lost, gained, np.array([6_000, 6_000])).any()
    assert not within(lost, gained, np.array([20_000, 1])).any(), "8 more"
    assert within(lost, gained, np.array([50_000, 1])).all(), "38 more, less two standard errors"
    assert not within(lost[:, ::-1], gained, np.array([50_000, 1])).any(), "in a small class nothing more"
