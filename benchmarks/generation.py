"""One generation: its operators, and scoring cached designs."""

from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np

from benchmarks.common import Bar, best_of, cascade, interleaved, numeric_problem
from emsco.designs.operators.elitism import best_first, count_elite, unique_vectors
from emsco.designs.operators.mutation import mutate
from emsco.designs.operators.recombination import recombine
from emsco.designs.operators.removal import leave_out
from emsco.designs.operators.selection import select
from emsco.designs.partition import compress
from emsco.scoring import _bitset as bitset
from emsco.scoring.judge import Judge, Task
from emsco.scoring.objectives import check_objectives, measure
from emsco.scoring.ranking import log_fitness, norm, pareto_rank, selection_probabilities
from emsco.scoring.rejection import resolve_rule
from emsco.stages.logistic import LogisticTrainer

N_DESIGNS, N_FEATURES, MAX_STAGES = 300, 30, 10


def population(*, removal=False):
    rng = np.random.default_rng(0)
    n_stages = rng.integers(1, MAX_STAGES + 1, size=(N_DESIGNS, 1))
    designs = compress(rng.integers(0, n_stages, size=(N_DESIGNS, N_FEATURES)))
    return leave_out(designs, rng=rng) if removal else designs


class Operators:
    """Selection, recombination, mutation, compression and elitism of a scored generation; ranking apart."""

    params = ((False, True),)
    param_names = ("removal",)

    def setup(self, removal):
        self.population = population(removal=removal)
        problem = numeric_problem(500, 1000, N_FEATURES)
        self.tally = cascade(problem)[0].tally(self.population)
        self.objectives = measure(self.tally)
        self.rank = pareto_rank(self.objectives)
        self.norms = norm(self.objectives)
        self.rng = np.random.default_rng(0)
        self.time_operators(removal)

    def time_operators(self, removal):
        order = best_first(self.population, self.rank, self.norms)
        unique = unique_vectors(order, self.tally.vectors)
        n_elite = count_elite(unique.size, 10, elite_fraction=0.2, population_size=N_DESIGNS)
        elite = self.population[unique[:n_elite]]
        shares = selection_probabilities(log_fitness(self.rank, self.norms, epsilon=0.01))
        parents = select(shares, n_pairs=N_DESIGNS - n_elite, rng=self.rng)
        children = recombine(self.population[parents[:, 0]], self.population[parents[:, 1]], rate=0.8, rng=self.rng)
        children = mutate(children, rate=0.075, stage_bias=2.0, max_stages=MAX_STAGES, rng=self.rng, removal=removal)
        return np.concatenate([elite, compress(children)])

    def time_ranking(self, removal):
        objectives = measure(self.tally)
        return pareto_rank(objectives), norm(objectives)


class Walks:
    """The same walks on packed bits, counted by right and wrong, and by true class and label; two classes."""

    params = ((2, 4, 10), (200, 1000, 10_000))
    param_names = ("stages", "rows")

    def setup(self, n_stages, n_rows):
        rng = np.random.default_rng(0)
        confident, label = rng.random((1500, n_rows)) < 0.3, rng.random((1500, n_rows)) < 0.5
        truth = rng.random(n_rows) < 0.5
        bits = [bitset.pack(rows) for rows in (confident, confident & (label == truth), confident & label)]
        everyone, classes = bitset.pack(np.ones((1, n_rows), bool))[0], bitset.pack(truth == [[False], [True]])
        designs = rng.integers(1500, size=(N_DESIGNS, n_stages)), np.full(N_DESIGNS, n_stages)
        reached, confusion = np.zeros((N_DESIGNS, n_stages), np.int64), np.zeros((N_DESIGNS, 2, 3), np.int64)
        counts = np.zeros((2, N_DESIGNS), np.int64)
        self.plain = (*designs, everyone, bits[0], bits[1], reached, *counts)
        self.by_class = (*designs, classes, bits[0], bits[2][:, None], reached.copy(), confusion)
        self.time_plain(n_stages, n_rows)
        self.time_by_class(n_stages, n_rows)
        assert (confusion[:, :, :2].sum(axis=(1, 2)) == counts[0]).all()
        assert (np.trace(confusion, axis1=1, axis2=2) == counts[1]).all()

    def time_plain(self, n_stages, n_rows):
        bitset.walk(*self.plain)

    def time_by_class(self, n_stages, n_rows):
        bitset.walk_two_classes(*self.by_class)


class Scoring:
    """Cached designs of up to ten stages on 1000 samples: the paper's counts, or other objectives besides."""

    params = ((False, True), (None, ("coverage", "accuracy", "cost", "fpr", "fnr", "stages")))
    param_names = ("removal", "objectives")

    def setup(self, removal, objectives):
        problem = numeric_problem(500, 1000, N_FEATURES)
        aims = check_objectives(objectives, np.bincount(problem.y_validation))
        rule = resolve_rule(0.75, np.arange(2))
        task = Task(problem.y_validation, 2, problem.prices, rule, aims, MAX_STAGES, removal, 2**28)
        self.judge = Judge(task, LogisticTrainer(problem))
        self.population = population(removal=removal)
        self.judge.tally(self.population)

    def time_scoring(self, removal, objectives):
        return self.judge.tally(self.population)


def bars() -> Iterator[Bar]:
    operators = {removal: Operators() for removal in (False, True)}
    for removal, each in operators.items():
        each.setup(removal)
    ms, with_removal = (1000 * t for t in interleaved(*(partial(o.time_operators, r) for r, o in operators.items()), 5))
    ranking = 1000 * best_of(partial(operators[False].time_ranking, False), 50)
    yield Bar("operators of a generation, 300 x 30", ms, "ms", 2, f"ranking by moocore: another {ranking:.2f} ms")
    yield Bar("the same with removal", with_removal / ms, "x the plain ones", 1.5, f"{with_removal:.2f} ms")
    ratios = []
    for size in product(*Walks.params):
        walks = Walks()
        walks.setup(*size)
        plain, by_class = (
            best_of(partial(walks.time_plain, *size), 200),
            best_of(partial(walks.time_by_class, *size), 200),
        )
        ratios.append(by_class / plain)
    yield Bar("count by true class and label, two classes", max(ratios), "x the plain walk", 1.5, "largest of 9 sizes")
    plain = Scoring()
    plain.setup(False, None)
    for name, setting in {
        "with removal": (True, None),
        "by six objectives": (False, Scoring.params[1][1]),
        "by six objectives, with removal": (True, Scoring.params[1][1]),
    }.items():
        other = Scoring()
        other.setup(*setting)
        first, second = interleaved(partial(plain.time_scoring, False, None), partial(other.time_scoring, *setting), 5)
        yield Bar(f"score designs {name}", second / first, "x the plain ones", 1.5, f"{1000 * second:.2f} ms")
    ms = 1000 * best_of(partial(plain.time_scoring, False, None), 50)
    yield Bar("score 300 cached designs, 10 stages, 1000 rows", ms, "ms", 5, "best of 50")
