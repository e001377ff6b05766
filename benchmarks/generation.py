"""One generation: its operators, and scoring cached designs."""

from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np

from benchmarks.common import Bar, best_of, cascade, numeric_problem
from emsco._kernels import bitset
from emsco.objectives import measure
from emsco.operators.elitism import best_first, count_elite, unique_vectors
from emsco.operators.mutation import mutate
from emsco.operators.recombination import recombine
from emsco.operators.selection import select
from emsco.partition import compress
from emsco.ranking import log_fitness, norm, pareto_rank, selection_probabilities

N_DESIGNS, N_FEATURES, MAX_STAGES = 300, 30, 10


def population(n_stages=MAX_STAGES):
    rng = np.random.default_rng(0)
    return compress(rng.integers(0, rng.integers(1, n_stages + 1, size=(N_DESIGNS, 1)), size=(N_DESIGNS, N_FEATURES)))


class Operators:
    """Selection, recombination, mutation, compression and elitism of a scored generation; ranking apart."""

    def setup(self):
        self.population = population()
        problem = numeric_problem(500, 1000, N_FEATURES)
        self.tally = cascade(problem)[0].tally(self.population)
        self.objectives = measure(self.tally)
        self.rank = pareto_rank(self.objectives)
        self.norms = norm(self.objectives)
        self.rng = np.random.default_rng(0)
        self.time_operators()

    def time_operators(self):
        order = best_first(self.population, self.rank, self.norms)
        unique = unique_vectors(order, self.tally.vectors)
        n_elite = count_elite(unique.size, 10, elite_fraction=0.2, population_size=N_DESIGNS)
        elite = self.population[unique[:n_elite]]
        shares = selection_probabilities(log_fitness(self.rank, self.norms, epsilon=0.01))
        parents = select(shares, n_pairs=N_DESIGNS - n_elite, rng=self.rng)
        children = recombine(self.population[parents[:, 0]], self.population[parents[:, 1]], rate=0.8, rng=self.rng)
        children = mutate(children, rate=0.075, stage_bias=2.0, max_stages=MAX_STAGES, rng=self.rng)
        return np.concatenate([elite, compress(children)])

    def time_ranking(self):
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
    """Cached designs of up to ten stages on 1000 samples."""

    def setup(self):
        self.cascade, _ = cascade(numeric_problem(500, 1000, N_FEATURES))
        self.population = population()
        self.cascade.tally(self.population)

    def time_scoring(self):
        return self.cascade.tally(self.population)


def bars() -> Iterator[Bar]:
    operators, scoring = Operators(), Scoring()
    operators.setup()
    scoring.setup()
    ms = 1000 * best_of(operators.time_operators, 50)
    ranking = 1000 * best_of(operators.time_ranking, 50)
    yield Bar("operators of a generation, 300 x 30", ms, "ms", 2, f"ranking by moocore: another {ranking:.2f} ms")
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
    ms = 1000 * best_of(scoring.time_scoring, 50)
    yield Bar("score 300 cached designs, 10 stages, 1000 rows", ms, "ms", 5, "best of 50")
