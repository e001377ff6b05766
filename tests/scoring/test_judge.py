"""Judge and Task: what is non-dominated, what sets are sure of, and what a design says."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from emsco import reference
from emsco.designs.partition import acquired_sets
from emsco.scoring.judge import TEMPERATURES, Judge, Task, likelihoods, tempered
from emsco.scoring.objectives import check_objectives
from emsco.scoring.rejection import resolve_rule
from emsco.stages.base import StageOutcomes
from emsco.stages.logistic import LogisticTrainer
from tests.scoring.test_cascade import draw_population
from tests.strategies import problem, seeds


def make_judge(p, threshold=0.5, **changes):
    rule = resolve_rule(threshold, np.arange(p.n_classes))
    task = Task(
        p.y_validation, p.n_classes, p.prices, rule, aims=None, max_stages=4, removal=False, cache_bytes=2**24
    )  # fmt: skip
    return Judge(replace(task, **changes), LogisticTrainer(p))


@settings(max_examples=30, deadline=None)
@given(seeds(), st.sampled_from([2, 3]), st.sampled_from([None, ["accuracy", "cost"], ["coverage", "stages"]]))
def test_the_best_are_what_nothing_dominates_and_of_equals_the_least(seed, n_classes, names):
    p = problem(seed, n_classes=n_classes)
    aims = check_objectives(names, np.bincount(p.y_validation, minlength=n_classes))
    judge = make_judge(p, 0.6, aims=aims)
    designs = draw_population(seed, n_rows=15)
    tally = judge.tally(designs)
    losses = [tuple(row) for row in judge.task.measure(tally).to_minimise.tolist()]
    undominated = {
        i for i, loss in enumerate(losses)
        if not any(all(a <= b for a, b in zip(other, loss, strict=True)) and other != loss for other in losses)
    }  # fmt: skip
    key = np.random.default_rng(seed).permutation(len(designs))
    for keys in ((), (key,), (designs.max(axis=1), key)):
        order = sorted(range(len(designs)), key=lambda i: tuple(k[i] for k in keys))
        least = {}
        for i in order:
            if i in undominated:
                least.setdefault(losses[i], i)
        assert set(judge.task.best(tally, *keys).tolist()) == set(least.values())


@settings(max_examples=15, deadline=None)
@given(seeds(), st.sampled_from([2, 3]))
def test_sureness_is_the_log_probability_of_the_truth_however_small_the_memory(seed, n_classes):
    p = problem(seed, n_classes=n_classes)
    sets = np.unique(acquired_sets(draw_population(seed))[0].reshape(-1, 4), axis=0)
    sets = sets[sets.any(axis=1)]
    roomy = make_judge(p)
    narrow = make_judge(p, cache_bytes=2 * roomy.cache._slot_bytes)
    assert narrow.cache.capacity == 2
    outcome = reference.train_logistic(p.train.T, p.y_train, p.validation.T)
    expected = []
    for owned in sets:
        logs = []
        said = outcome(tuple(np.flatnonzero(owned).tolist()))
        for confidence, label, truth in zip(*said, p.y_validation, strict=True):
            chance = confidence if label == truth else (1 - confidence) / (n_classes - 1)
            logs.append(np.log(max(chance, 1e-6)))
        expected.append(np.mean(logs))
    assert_array_equal(roomy.sureness(sets), narrow.sureness(sets))
    assert_allclose(roomy.sureness(sets), expected, atol=1e-3)


@settings(max_examples=60)
@given(seeds(), st.integers(2, 6), st.sampled_from(TEMPERATURES))
def test_a_temperature_undoes_what_made_confidences_too_high_or_too_low(seed, n_classes, temperature):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=400)
    top = np.clip(rng.beta(4, 2, size=(2, 400)), 1 / n_classes + 1e-3, 1 - 1e-3)
    label = np.where(rng.random((2, 400)) < top, y, (y + rng.integers(1, n_classes, size=(2, 400))) % n_classes)
    outcomes = StageOutcomes(top, label.astype(np.uint8))
    plain, best = likelihoods(outcomes, y, n_classes), tempered(outcomes, y, n_classes)
    assert (best.mean(axis=1) >= plain.mean(axis=1)).all()
    # The probabilities of the top class, and of each of the others, to the power of the temperature, scaled to sum 1.
    powers = top**temperature, ((1 - top) / (n_classes - 1)) ** temperature
    spoilt = StageOutcomes(powers[0] / (powers[0] + (n_classes - 1) * powers[1]), outcomes.label)
    assert (tempered(spoilt, y, n_classes).mean(axis=1) >= plain.mean(axis=1) - 1e-9).all()


@settings(max_examples=15, deadline=None)
@given(seeds())
def test_a_design_says_what_its_counts_count(seed):
    p = problem(seed)
    judge = make_judge(p, 0.7)
    design = draw_population(seed, n_rows=1)[0]
    answers, tally = judge.answers(design), judge.tally(design[None])
    given_label = (answers.confidence >= 0.7).any(axis=0)
    first = (answers.confidence >= 0.7).argmax(axis=0)
    right = answers.label[first, np.arange(p.y_validation.size)] == p.y_validation
    assert tally.n_conclusive[0] == given_label.sum()
    assert tally.n_correct[0] == (given_label & right).sum()
