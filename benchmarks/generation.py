"""One generation: its operators, and scoring cached designs."""

from collections.abc import Iterator

import numpy as np

from benchmarks.common import Bar, best_of, cascade, numeric_problem
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
    ms = 1000 * best_of(scoring.time_scoring, 50)
    yield Bar("score 300 cached designs, 10 stages, 1000 rows", ms, "ms", 5, "best of 50")
