"""NSGA-II of pymoo on the designs of the paper: a different search of the same space (BASELINES §9)."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import IntArray
from emsco.baselines.base import Candidate, Figures, FloatArray, Rival, Trace, combined
from emsco.checks import check_n_jobs
from emsco.designs.operators.elitism import best_first, unique_vectors
from emsco.designs.operators.mutation import mutate
from emsco.designs.operators.recombination import recombine
from emsco.designs.partition import acquired_sets, check_max_stages, compress
from emsco.exceptions import MissingDependencyError
from emsco.scoring.cache import StageCache
from emsco.scoring.cascade import Cascade
from emsco.scoring.objectives import measure
from emsco.scoring.ranking import norm, pareto_rank
from emsco.scoring.rejection import check_threshold, is_confident
from emsco.scoring.tally import Tally
from emsco.search.evolution import Evolution
from emsco.stages.base import StageModel, outcomes_of
from emsco.stages.logistic import LogisticTrainer
from emsco.stages.problem import Problem

_CACHE_BYTES = 2**28
_MOST_BROODS = 10  # per generation: a small space soon has no new designs

# Called after each generation or batch with the number of designs evaluated, the designs held, and their vectors.
Tell = Callable[[int, IntArray, IntArray], None]


class NSGA2(Rival):
    """Designs of stages searched by NSGA-II (Deb, Pratap, Agarwal & Meyarivan, 2002) instead of the paper's search.

    Everything except the selection is the same as in `EMSCOClassifier`: designs, logistic stages, counts, and the
    paper's operators and rates. Duplicate designs are bred again. The candidates are the designs of the final front;
    the best one by ``criterion`` on the validation rows is deployed. Needs pymoo.

    Parameters
    ----------
    threshold : float
        Confidence at which a case leaves a stage, and least confidence of a label.
    max_stages : int or None
        Largest number of stages; None: as in `EMSCOClassifier`.
    population_size, max_generations, mutation_rate, recombination_rate, stage_bias, init_rate
        As in `Evolution`.
    n_jobs : int or None
        Threads that train feature sets; the result is the same for any number.
    criterion, validation, random_state
        As in every method.
    """

    def __init__(
        self,
        threshold: float = 0.75,
        max_stages: int | None = None,
        population_size: int = 300,
        max_generations: int = 150,
        mutation_rate: float = 0.075,
        recombination_rate: float = 0.8,
        stage_bias: float = 2.0,
        init_rate: float = 0.5,
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
        self.recombination_rate = recombination_rate
        self.stage_bias = stage_bias
        self.init_rate = init_rate
        self.n_jobs = n_jobs
        self.criterion = criterion
        self.validation = validation
        self.random_state = random_state

    def _candidates(self, problem: Problem, seed: int) -> Iterable[Candidate]:
        n_units, threshold = problem.prices.n_units, check_threshold(self.threshold)
        settings = Evolution(
            population_size=self.population_size,
            max_generations=self.max_generations,
            mutation_rate=self.mutation_rate,
            recombination_rate=self.recombination_rate,
            stage_bias=self.stage_bias,
            init_rate=self.init_rate,
        )
        max_stages = check_max_stages(self.max_stages, n_units)
        trainer = LogisticTrainer(problem, n_jobs=check_n_jobs(self.n_jobs))
        cache = StageCache(trainer, problem.y_validation, n_units=n_units, threshold=threshold, max_bytes=_CACHE_BYTES)
        rng = np.random.default_rng(seed)
        evaluate = Cascade(cache, problem.prices).tally
        for design in search_nsga2(evaluate, settings, n_features=n_units, max_stages=max_stages, rng=rng):
            sets, columns = stages_of(design, problem)
            yield Candidate({"design": design.tolist()}, DesignModel(columns, cache.models(sets), threshold))

    def _again(self, problem: Problem, seed: int) -> Iterable[Candidate]:
        """Train the stages of the chosen design."""
        sets, columns = stages_of(np.array(self.settings_["design"]), problem)
        trainer = LogisticTrainer(problem, n_jobs=check_n_jobs(self.n_jobs))
        models = trainer.models(sets, trainer.train(sets))
        yield Candidate(dict(self.settings_), DesignModel(columns, models, check_threshold(self.threshold)))


def stages_of(design: IntArray, problem: Problem) -> tuple[NDArray[np.bool_], list[NDArray[np.intp]]]:
    """Return the units known at each stage, (n_stages, n_units), and their encoded columns."""
    sets = acquired_sets(design[None])[0][0]
    return sets, [np.flatnonzero(units @ problem.unit_columns) for units in sets]


def search_nsga2(
    evaluate: Callable[[IntArray], Tally],
    settings: Evolution,
    *,
    n_features: int,
    max_stages: int,
    rng: np.random.Generator,
    on_generation: Tell | None = None,
) -> IntArray:
    """Search the designs of n_features in at most max_stages with NSGA-II.

    Parameters
    ----------
    evaluate : callable
        Counts designs.
    settings : Evolution
        Its sizes and rates are used; NSGA-II selects in its own way.
    n_features, max_stages : int
    rng : Generator
    on_generation : callable, optional
        Called after every generation, including the first one.

    Returns
    -------
    ndarray of shape (n_designs, n_features)
        The non-dominated designs of the last generation, one per objective vector, fittest first.

    Raises
    ------
    MissingDependencyError
        pymoo is not installed.
    """
    try:
        from pymoo.algorithms.moo import nsga2
        from pymoo.core.problem import Problem as PymooProblem
        from pymoo.optimize import minimize
    except ImportError as error:
        raise MissingDependencyError(
            "NSGA-II needs pymoo, which is not installed: pip install 'emsco[baselines]'."
        ) from error
    max_stages = min(max_stages, n_features)

    class Designs(PymooProblem):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(n_var=n_features, n_obj=3, xl=0, xu=max_stages - 1, vtype=int)

        def _evaluate(self, x: Any, out: dict[str, Any], *args: Any, **kwargs: Any) -> None:
            tally = evaluate(np.asarray(x, dtype=np.int64))
            out["F"] = measure(tally).to_minimise
            out["vectors"] = tally.vectors

    def tell(algorithm: Any) -> None:
        if on_generation is not None:
            designs, vectors = (np.asarray(algorithm.pop.get(name), dtype=np.int64) for name in ("X", "vectors"))
            on_generation(algorithm.evaluator.n_eval, designs, vectors)

    one_stage = np.zeros((settings.population_size, n_features), dtype=np.int64)
    first = mutate(one_stage, rate=settings.first_rate, stage_bias=settings.stage_bias, max_stages=max_stages, rng=rng)
    crossover, mutation = operators(settings, max_stages, rng)
    algorithm = nsga2.NSGA2(
        settings.population_size, sampling=first, crossover=crossover, mutation=mutation, eliminate_duplicates=True
    )
    algorithm.mating.n_max_iterations = _MOST_BROODS
    generations = ("n_gen", settings.max_generations + 1)
    seed = int(rng.integers(2**31))
    result = minimize(Designs(), algorithm, generations, seed=seed, callback=tell, copy_algorithm=False)
    return _best(np.asarray(result.pop.get("X"), dtype=np.int64), evaluate)


def operators(settings: Evolution, max_stages: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return the paper's recombination and mutation as pymoo's operators; their children have no gaps."""
    from pymoo.core.crossover import Crossover
    from pymoo.core.mutation import Mutation

    class Recombination(Crossover):  # type: ignore[misc]
        def _do(self, problem: Any, X: Any, *args: Any, **kwargs: Any) -> IntArray:
            first, second = np.asarray(X, dtype=np.int64)
            return np.stack([compress(recombine(first, second, rate=1.0, rng=rng)) for _ in range(2)])

    class Reassignment(Mutation):  # type: ignore[misc]
        def _do(self, problem: Any, X: Any, *args: Any, **kwargs: Any) -> IntArray:
            parents = np.asarray(X, dtype=np.int64)
            rates: dict[str, Any] = {"rate": settings.mutation_rate, "stage_bias": settings.stage_bias}
            return compress(mutate(parents, **rates, max_stages=max_stages, rng=rng))

    # The rate of mutation is one per feature, so every child is handed to it.
    return Recombination(2, 2, prob=settings.recombination_rate), Reassignment(prob=1.0)


def _best(designs: IntArray, evaluate: Callable[[IntArray], Tally]) -> IntArray:
    """Return the non-dominated designs, the simplest one per vector, fittest first."""
    tally = evaluate(designs)
    objectives = measure(tally)
    rank = pareto_rank(objectives)
    unique = unique_vectors(best_first(designs, rank, norm(objectives)), tally.vectors)
    nondominated: IntArray = designs[unique[rank[unique] == rank.max()]]
    return nondominated


class DesignModel:
    """The trained stages of a design."""

    def __init__(self, columns: list[NDArray[np.intp]], models: list[StageModel], threshold: float) -> None:
        self._columns = columns
        self._models = models
        self._threshold = threshold

    def trace(self, Z: FloatArray) -> Trace:
        """Decide encoded cases, (n_encoded, n_rows)."""
        n_encoded, n_rows = Z.shape
        waiting = np.arange(n_rows)
        read = np.zeros((n_rows, n_encoded), dtype=np.bool_)
        stage = np.zeros(n_rows, dtype=np.intp)
        probabilities = np.empty((n_rows, 0))
        for j, (columns, model) in enumerate(zip(self._columns, self._models, strict=True)):
            answer = model.predict_proba(Z[np.ix_(columns, waiting)].T)
            if j == 0:
                probabilities = np.empty((n_rows, answer.shape[1]))
            probabilities[waiting] = answer
            read[np.ix_(waiting, columns)] = True
            stage[waiting] = j
            waiting = waiting[~is_confident(outcomes_of(answer)[0], self._threshold)]
        return Trace(probabilities, read, stage, self._columns)
