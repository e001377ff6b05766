"""A genetic algorithm with generic operators on the designs of EMSCO, in the manner of Hamilton & Fulp 2020."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from emsco.arrays import FloatArray, IntArray
from emsco.baselines.base import Candidate, Figures, Rival, combined
from emsco.baselines.nsga2 import DesignModel, stages_of
from emsco.baselines.settings import check_count
from emsco.checks import check_n_jobs
from emsco.designs.partition import check_max_stages, compress
from emsco.exceptions import InvalidParameterError
from emsco.scoring.cache import StageCache
from emsco.scoring.cascade import Cascade
from emsco.scoring.objectives import combined_score
from emsco.scoring.rejection import check_threshold
from emsco.stages.logistic import LogisticTrainer
from emsco.stages.problem import Problem

_CACHE_BYTES = 2**28


class GenericGA(Rival):
    """The preliminary method of the paper's authors (Hamilton & Fulp, 2020), as the paper describes it in a footnote.

    The footnote says: generic evolutionary operators, a less robust elitism, no guarantees. Everything else is our
    reading: a single fitness, the combined score; tournaments of two; one-point crossover; mutation that draws a new
    stage uniformly; the best few designs survive. Designs, stages and counts are those of `EMSCOClassifier`.

    Parameters
    ----------
    threshold : float
        Confidence at which a case leaves a stage, and least confidence of a label.
    max_stages : int or None
        Largest number of stages; None: as in `EMSCOClassifier`.
    population_size, max_generations : int
    mutation_rate, crossover_rate : float
    n_elite : int
        Designs that survive unchanged.
    n_jobs : int or None
        Threads that train feature sets; the result is the same for any number.
    criterion, validation, random_state
        As in every method; the search itself maximises the combined score.
    """

    def __init__(
        self,
        threshold: float = 0.75,
        max_stages: int | None = None,
        population_size: int = 300,
        max_generations: int = 150,
        mutation_rate: float = 0.075,
        crossover_rate: float = 0.8,
        n_elite: int = 1,
        n_jobs: int | None = None,
        criterion: Callable[[Figures], float] = combined,
        validation: float = 1 / 3,
        random_state: Any = None,
    ) -> None:
        self.threshold = threshold
        self.max_stages = max_stages
        self.population_size = population_size
        self.max_generations = max_generations
        self.mutation_rate = mutation_rate
        self.crossover_rate = crossover_rate
        self.n_elite = n_elite
        self.n_jobs = n_jobs
        self.criterion = criterion
        self.validation = validation
        self.random_state = random_state

    def _candidates(self, problem: Problem, seed: int) -> Iterable[Candidate]:
        settings = Generic(
            check_count(self.population_size, "population_size", 2),
            check_count(self.max_generations, "max_generations", 0),
            _share(self.mutation_rate, "mutation_rate"),
            _share(self.crossover_rate, "crossover_rate"),
            check_count(self.n_elite, "n_elite", 0),
        )
        n_units, threshold = problem.prices.n_units, check_threshold(self.threshold)
        trainer = LogisticTrainer(problem, n_jobs=check_n_jobs(self.n_jobs))
        cache = StageCache(trainer, problem.y_validation, n_units=n_units, threshold=threshold, max_bytes=_CACHE_BYTES)
        cascade = Cascade(cache, problem.prices)

        def fitness(designs: IntArray) -> FloatArray:
            return combined_score(cascade.tally(designs), problem.prices.total)

        max_stages = min(check_max_stages(self.max_stages, n_units), n_units)
        best, _ = breed(fitness, settings, n_units, max_stages, np.random.default_rng(seed))
        sets, columns = stages_of(best, problem)
        yield Candidate({"design": best.tolist()}, DesignModel(columns, cache.models(sets), threshold))

    def _again(self, problem: Problem, seed: int) -> Iterable[Candidate]:
        """Train the stages of the chosen design."""
        sets, columns = stages_of(np.array(self.settings_["design"]), problem)
        trainer = LogisticTrainer(problem, n_jobs=check_n_jobs(self.n_jobs))
        models = trainer.models(sets, trainer.train(sets))
        yield Candidate(dict(self.settings_), DesignModel(columns, models, check_threshold(self.threshold)))


@dataclass(frozen=True)
class Generic:
    """Sizes and rates of the algorithm."""

    population_size: int
    max_generations: int
    mutation_rate: float
    crossover_rate: float
    n_elite: int


def breed(
    fitness: Callable[[IntArray], FloatArray],
    settings: Generic,
    n_features: int,
    max_stages: int,
    rng: np.random.Generator,
) -> tuple[IntArray, list[float]]:
    """Return the fittest design of the last generation, and the largest fitness of every generation.

    Parameters
    ----------
    fitness : callable
        Scores designs, (n_designs, n_features).
    settings : Generic
    n_features, max_stages : int
    rng : Generator
    """
    size = settings.population_size
    designs = compress(rng.integers(max_stages, size=(size, n_features)))
    values = fitness(designs)
    history = [float(values.max())]
    for _ in range(settings.max_generations):
        elite = np.argsort(-values, kind="stable")[: min(settings.n_elite, size)]
        n_children = size - elite.size
        rivals = rng.integers(size, size=(2, n_children, 2))  # two tournaments per child
        winners = np.take_along_axis(rivals, values[rivals].argmax(axis=2)[..., None], axis=2)[..., 0]
        children = cross(designs[winners[0]], designs[winners[1]], settings.crossover_rate, rng)
        mutated = rng.random(children.shape) < settings.mutation_rate
        children = np.where(mutated, rng.integers(max_stages, size=children.shape), children)
        designs = np.concatenate([designs[elite], compress(children)])
        values = fitness(designs)
        history.append(float(values.max()))
    best: IntArray = designs[values.argmax()]
    return best, history


def cross(first: IntArray, second: IntArray, rate: float, rng: np.random.Generator) -> IntArray:
    """Return children: up to a point the genes of the first parent, then of the second; or copies of the first."""
    n, n_features = first.shape
    point = rng.integers(1, max(n_features, 2), size=(n, 1))
    crossed = rng.random((n, 1)) < rate
    return np.where(crossed & (np.arange(n_features) >= point), second, first)


def _share(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating) or not 0 <= value <= 1:
        raise InvalidParameterError(f"{name} must be a number between 0 and 1; got {value!r}.")
    return float(value)
