"""The paper in slow, plain Python, written to be read: the oracle of the tests.

Nothing here is fast and nothing is shared with the fast path but the order in which random numbers are drawn, so that
both can be compared generation by generation. A design is a list of stage numbers, from 0; -1 stands for a feature that
is never bought, which the paper does not have. Costs are whole numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, comb, exp, floor, inf, lgamma, log, sqrt
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

Design = list[int]
Vector = tuple[int, int, int]  # conclusive samples, correct ones, total cost
Outcome = tuple[Sequence[float], Sequence[int]]  # confidence and label of every validation sample


@dataclass(frozen=True)
class Settings:
    """What the search needs to know; the names of ``emsco.Evolution``."""

    population_size: int
    max_generations: int
    patience: int | None
    mutation_rate: float
    recombination_rate: float
    elite_fraction: float
    stage_bias: float
    epsilon: float
    init_rate: float | None = None  # None: the mutation rate
    unique: str = "vectors"  # or "rows", as published


# ---------------------------------------------------------------- designs (section 3.1)


def stage_count(design: Design) -> int:
    """Return the highest stage in use, plus one."""
    return max(design) + 1


def compress(design: Design) -> Design:
    """Close gaps: while a stage is missing, move all later ones down by one."""
    design = list(design)
    missing = 0
    while missing < stage_count(design):
        if missing in design:
            missing += 1
        else:
            design = [s - 1 if s > missing else s for s in design]
    return design


def known_features(design: Design, stage: int) -> tuple[int, ...]:
    """Return the features bought by the end of a stage."""
    return tuple(f for f, s in enumerate(design) if 0 <= s <= stage)


def n_bought(design: Design) -> int:
    """Return how many features a design buys."""
    return sum(s >= 0 for s in design)


def complexity(design: Design) -> tuple[int, int, Design]:
    """Return by what designs of the same figures are told apart: stages, then features, then the row."""
    return stage_count(design), n_bought(design), design


# ---------------------------------------------------------------- the cascade (section 2)


def train_logistic(X: Any, y: Any, X_val: Any) -> Callable[[tuple[int, ...]], Outcome]:
    """Return a function that trains scikit-learn's logistic regression on a feature set and scores X_val."""
    remembered: dict[tuple[int, ...], Outcome] = {}

    def outcome(features: tuple[int, ...]) -> Outcome:
        if features not in remembered:
            columns = list(features)
            model = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-12, max_iter=1000)
            probabilities = model.fit(X[:, columns], y).predict_proba(X_val[:, columns])
            remembered[features] = (probabilities.max(axis=1).tolist(), probabilities.argmax(axis=1).tolist())
        return remembered[features]

    return outcome


def stage_price(
    design: Design,
    stage: int,
    costs: Sequence[int],
    shared: Sequence[tuple[Sequence[int], int]] = (),
    overhead: int = 0,
    parallel: bool = False,
) -> int:
    """Return what an input pays that reaches a stage.

    ``shared`` lists groups of features and what the first of a group costs on top of its own price. In parallel a stage
    costs its slowest feature, and all features of a group that the stage buys first wait for what they share.
    """
    bought = {feature: costs[feature] for feature, s in enumerate(design) if s == stage}
    total = sum(bought.values())
    for members, cost in shared:
        opening = [feature for feature in members if feature in bought]
        if opening and not any(0 <= design[feature] < stage for feature in members):
            total += cost
            for feature in opening:
                bought[feature] += cost
    return overhead + (max(bought.values()) if parallel else total)


def least_price(probabilities: Sequence[float], errors: Sequence[Sequence[float]]) -> tuple[float, int]:
    """Return the least expected price of an answer and its index; ``errors`` has a row per true class.

    A column beyond the classes is the price of no answer.
    """
    expected = [sum(p * row[a] for p, row in zip(probabilities, errors, strict=True)) for a in range(len(errors[0]))]
    return min(expected), expected.index(min(expected))


def walk_money(
    design: Design,
    outcome: Callable[[tuple[int, ...]], Sequence[tuple[float, int]]],
    truth: Sequence[int],
    costs: Sequence[int],
    errors: Sequence[Sequence[int]],
    bar: float,
    shared: Sequence[tuple[Sequence[int], int]] = (),
    overhead: int = 0,
    parallel: bool = False,
) -> tuple[int, int]:
    """Send every sample through the stages of a design; return what they pay for tests and for errors.

    ``outcome`` gives the expected price of leaving and the answer of each sample, as `least_price` does. A sample
    leaves as soon as that price is at most the bar, and at the last stage in any case. A design that buys nothing has
    one stage, which knows nothing and costs nothing.
    """
    tests = wrong = 0
    n_stages = max(stage_count(design), 1)
    for sample, label in enumerate(truth):
        for stage in range(n_stages):
            if n_bought(design):
                tests += stage_price(design, stage, costs, shared, overhead, parallel)
            price, answer = outcome(known_features(design, stage))[sample]
            if price <= bar or stage == n_stages - 1:
                wrong += errors[label][answer]
                break
    return tests, wrong


def walk(
    design: Design,
    outcome: Callable[[tuple[int, ...]], Outcome],
    truth: Sequence[int],
    costs: Sequence[int],
    threshold: float,
    shared: Sequence[tuple[Sequence[int], int]] = (),
    overhead: int = 0,
    parallel: bool = False,
    last: float | None = None,
) -> Vector:
    """Send every sample through the stages of a design and count; they pay what ``stage_price`` says.

    ``last`` is the threshold of the last stage, if it is another.
    """
    conclusive = correct = paid = 0
    for sample, label in enumerate(truth):
        for stage in range(stage_count(design)):
            paid += stage_price(design, stage, costs, shared, overhead, parallel)
            confidences, labels = outcome(known_features(design, stage))
            is_last = stage == stage_count(design) - 1
            if confidences[sample] >= (last if is_last and last is not None else threshold):
                conclusive += 1
                correct += int(labels[sample] == label)
                break
    return conclusive, correct, paid


# ---------------------------------------------------------------- designs that branch


def walk_branched(
    designs: Sequence[Design],
    branches: Sequence[int],
    outcome: Callable[[int, tuple[int, ...]], Outcome],
    costs: Sequence[int],
    bars: Sequence[Sequence[float]],
    shared: Sequence[tuple[Sequence[int], int]] = (),
    overhead: int = 0,
    parallel: bool = False,
) -> list[tuple[int, float, int, bool, int]]:
    """Send every sample down a tree: its root is the first stage of all designs, of which each branch goes on with one.

    ``outcome`` is what the classifier of a branch says of every sample, ``bars`` has thresholds by branch and stage.
    Returns label, confidence and stage of every sample, whether that is confident enough, and what it has paid.
    """
    decided = []
    for sample, branch in enumerate(branches):
        design, paid = designs[branch], 0
        for stage in range(stage_count(design)):
            paid += stage_price(design, stage, costs, shared, overhead, parallel)
            confidences, labels = outcome(branch, known_features(design, stage))
            enough = confidences[sample] >= bars[branch][stage]
            if enough or stage == stage_count(design) - 1:
                decided.append((labels[sample], confidences[sample], stage, enough, paid))
                break
    return decided


# ---------------------------------------------------------------- objectives that the user chooses


def told(
    design: Design, outcome: Callable[[tuple[int, ...]], Outcome], n_samples: int, threshold: float
) -> list[int | None]:
    """Return the label that every sample gets, None where it gets none."""
    answers: list[int | None] = []
    for sample in range(n_samples):
        answer = None
        for stage in range(stage_count(design)):
            confidences, labels = outcome(known_features(design, stage))
            if answer is None and confidences[sample] >= threshold:
                answer = labels[sample]
        answers.append(answer)
    return answers


def error_rate(answers: Sequence[int | None], truth: Sequence[int], true: int) -> Fraction:
    """Return the share of the samples of a class that get a wrong label; silence is no error."""
    theirs = [answer for answer, label in zip(answers, truth, strict=True) if label == true]
    return Fraction(sum(answer not in (None, true) for answer in theirs), len(theirs)) if theirs else Fraction(0)


def recall(answers: Sequence[int | None], truth: Sequence[int], true: int) -> Fraction:
    """Return the share of the samples of a class that get its label; silence finds nobody."""
    theirs = [answer for answer, label in zip(answers, truth, strict=True) if label == true]
    return Fraction(theirs.count(true), len(theirs)) if theirs else Fraction(0)


def worst_class_accuracy(answers: Sequence[int | None], truth: Sequence[int]) -> Fraction:
    """Return the least share of right labels over the classes there are; 0 for one that gets no labels."""
    shares = []
    for true in set(truth):
        given = [a for a, label in zip(answers, truth, strict=True) if label == true and a is not None]
        shares.append(Fraction(given.count(true), len(given)) if given else Fraction(0))
    return min(shares)


def loss(
    answers: Sequence[int | None], truth: Sequence[int], matrix: Sequence[Sequence[int]], reject: Sequence[int]
) -> Fraction:
    """Return what labels, and their lack, cost per sample."""
    fates = zip(answers, truth, strict=True)
    return Fraction(sum(reject[t] if a is None else matrix[t][a] for a, t in fates), len(truth))


# ---------------------------------------------------------------- objectives, rank, fitness (sections 2.3 and 3.3)


def objectives(vector: Vector, n_samples: int) -> tuple[Fraction, Fraction, Fraction]:
    """Return coverage, accuracy (0 where nothing is conclusive) and mean cost, exactly."""
    conclusive, correct, paid = vector
    accuracy = Fraction(correct, conclusive) if conclusive else Fraction(0)
    return Fraction(conclusive, n_samples), accuracy, Fraction(paid, n_samples)


def dominates(a: tuple[Any, ...], b: tuple[Any, ...], maximise: Sequence[bool] = (True, True, False)) -> bool:
    """Return whether a is at least as good as b everywhere and better somewhere; cost is to be small."""
    no_worse = all(x >= y if up else x <= y for x, y, up in zip(a, b, maximise, strict=True))
    return no_worse and a != b


def ranks(points: Sequence[tuple[Any, ...]], maximise: Sequence[bool] = (True, True, False)) -> list[int]:
    """Peel non-dominated levels off; the first has the highest rank, the last has 0."""
    level = [-1] * len(points)
    left = set(range(len(points)))
    t = 0
    while left:
        peeled = {i for i in left if not any(dominates(points[j], points[i], maximise) for j in left)}
        for i in peeled:
            level[i] = t
        left -= peeled
        t += 1
    return [max(level) - t for t in level]


def inverse_costs(costs: Sequence[Fraction], least_price: float) -> list[float]:
    """Return g3 of a generation; shifted by the smallest positive price if something is free."""
    paid = [float(cost) for cost in costs]
    shift = 0.0 if min(paid) > 0 else least_price
    return [(min(paid) + shift) / (cost + shift) for cost in paid]


def norms(points: Sequence[tuple[Fraction, Fraction, Fraction]], least_price: float) -> list[float]:
    """Return the l2 norm of (g1, g2, g3) of every design of a generation."""
    g3 = inverse_costs([point[2] for point in points], least_price)
    return [sqrt(float(p[0]) ** 2 + float(p[1]) ** 2 + g**2) for p, g in zip(points, g3, strict=True)]


def log_fitness(rank: Sequence[int], norm: Sequence[float], epsilon: float) -> list[float]:
    """Return log(gamma^rank * norm); a design that gains nothing has no fitness, unless that is true of all."""
    positive = [n for n in norm if n > 0]
    if not positive:
        return [0.0 for _ in norm]
    gamma = max(positive) / min(positive) + epsilon
    return [r * log(gamma) + log(n) if n > 0 else -inf for r, n in zip(rank, norm, strict=True)]


# ---------------------------------------------------------------- operators (section 3.2)


def beta_binomial(n: int, beta: float) -> list[float]:
    """Return the probabilities of BetaBinomial(n, 1, beta)."""

    def log_beta(a: float, b: float) -> float:
        return lgamma(a) + lgamma(b) - lgamma(a + b)

    return [comb(n, j) * exp(log_beta(j + 1, n - j + beta) - log_beta(1, beta)) for j in range(n + 1)]


def mutate(
    design: Design,
    chosen: Sequence[bool],
    draws: Sequence[float],
    stage_bias: float,
    max_stages: int,
    fates: Sequence[float] | None = None,
) -> Design:
    """Redraw the stages of the chosen features that are not alone in theirs (Algorithm 1).

    With ``fates``, features may be left out: three in ten of those chosen are, unless nothing else is bought. One that
    is left out and chosen comes in with the probability (0.3 b + 3) / u, b features bought and u not.
    """
    design = list(design)
    before, n = n_bought(design), len(design)
    for feature in range(n):
        if not chosen[feature]:
            continue
        if design[feature] == -1:
            assert fates is not None
            redraw = fates[feature] < min((0.3 * before + 3) / (n - before), 1)
        elif fates is not None and fates[feature] < 0.3 and n_bought(design) > 1:
            design[feature] = -1
            redraw = False
        else:
            redraw = design.count(design[feature]) > 1
        if redraw:
            highest = min(stage_count(design), max_stages - 1)
            design[feature] = spin(beta_binomial(highest, stage_bias), draws[feature])
    return design


def rescale(stage: int, n_from: int, n_to: int) -> int:
    """Map a stage of a design of n_from stages to one of n_to, rounding half up; -1 is no stage."""
    if stage == -1:
        return -1
    return max(floor(Fraction(stage + 1, n_from) * n_to + Fraction(1, 2)) - 1, 0)


def recombine(a: Design, b: Design, choice: int, from_first: Sequence[bool]) -> Design:
    """Mix two parents (Algorithm 2)."""
    n_child = (stage_count(a), stage_count(b), (stage_count(a) + stage_count(b)) // 2)[choice]
    return [
        rescale(a[f], stage_count(a), n_child) if first else rescale(b[f], stage_count(b), n_child)
        for f, first in enumerate(from_first)
    ]


def spin(shares: Sequence[float], draw: float) -> int:
    """Return where a roulette wheel stops."""
    total = sum(shares)
    below = 0.0
    for i, share in enumerate(shares):
        below += share
        if draw * total < below:
            return i
    return len(shares) - 1


# ---------------------------------------------------------------- the search (Algorithm 3)


@dataclass
class Generation:
    """A generation with all that is computed of it."""

    population: list[Design]
    vectors: list[Any]
    log_fitness: list[float]
    unique: list[int]  # one design per objective vector (or all different designs), fittest and simplest first
    n_nondominated: int


def score(
    population: list[Design],
    evaluate: Callable[[Design], Any],
    n_samples: int,
    least_price: float,
    epsilon: float,
    gains: Callable[[list[Any]], list[list[float]]] | None = None,
    maximise: Sequence[bool] = (True, True, False),
    by_row: bool = False,
) -> Generation:
    """Evaluate and rank a population; with ``gains``, by objectives of which ``evaluate`` returns the values."""
    vectors = [evaluate(design) for design in population]
    if gains is None:
        points: list[Any] = [objectives(vector, n_samples) for vector in vectors]
        norm = norms(points, least_price)
    else:
        points = vectors
        norm = [sqrt(sum(g * g for g in row)) for row in gains(points)]
    rank = ranks(points, maximise)
    order = sorted(range(len(population)), key=lambda i: (-rank[i], -norm[i], complexity(population[i])))
    unique: list[int] = []
    seen: set[Any] = set()
    for i in order:
        key = tuple(population[i]) if by_row else vectors[i]
        if key not in seen:
            seen.add(key)
            unique.append(i)
    n_nondominated = sum(rank[i] == max(rank) for i in unique)
    return Generation(population, vectors, log_fitness(rank, norm, epsilon), unique, n_nondominated)


def evolve(
    evaluate: Callable[[Design], Any],
    settings: Settings,
    n_features: int,
    max_stages: int,
    n_samples: int,
    least_price: float,
    rng: np.random.Generator,
    removal: bool = False,
    **chosen_objectives: Any,
) -> list[Generation]:
    """Run the search and return every generation; the front is the last one's non-dominated unique designs.

    With ``removal`` features may be left out.
    """
    max_stages = min(max_stages, n_features)
    shape = (settings.population_size, n_features)
    rate = settings.mutation_rate if settings.init_rate is None else settings.init_rate
    chosen, draws = rng.random(shape) <= rate, rng.random(shape)
    population = [
        mutate([0] * n_features, list(c), list(d), settings.stage_bias, max_stages)
        for c, d in zip(chosen, draws, strict=True)
    ]
    if removal:
        population = _smaller(population, rng)
    size = (n_samples, least_price, settings.epsilon)
    chosen_objectives["by_row"] = settings.unique == "rows"
    history = [score(population, evaluate, *size, **chosen_objectives)]
    unchanged = 0
    while len(history) <= settings.max_generations and (settings.patience is None or unchanged < settings.patience):
        last = history[-1]
        if settings.unique == "rows" and _n_elite(last, settings) >= settings.population_size:
            break
        children = _children(last, settings, max_stages, rng, removal)
        history.append(score(children, evaluate, *size, **chosen_objectives))
        same = history[-1].population[history[-1].unique[0]] == last.population[last.unique[0]]
        unchanged = unchanged + 1 if same else 0
    return history


def _smaller(population: list[Design], rng: np.random.Generator) -> list[Design]:
    """Leave features out: single ones are left of up to half of the designs, of each other one a share of its own."""
    n, n_features = len(population), len(population[0])
    coins, shares = rng.random((n, n_features)), rng.random((n, 1))
    n_single = min(n_features, n // 2)
    always = rng.integers(n_features, size=n)
    singles = rng.permutation(n_features)
    smaller = []
    for i, design in enumerate(population):
        if i < n_single:
            kept = [f == singles[i] for f in range(n_features)]
        else:
            kept = [f == always[i] or coins[i, f] >= shares[i, 0] for f in range(n_features)]
        smaller.append(compress([s if keep else -1 for s, keep in zip(design, kept, strict=True)]))
    return smaller


def _n_elite(last: Generation, settings: Settings) -> int:
    """Return max(ceil(b u), e); with unique vectors, the fraction claims at most four fifths of the population."""
    by_fraction = ceil(Fraction(str(settings.elite_fraction)) * len(last.unique))
    if settings.unique == "vectors":
        by_fraction = min(by_fraction, 4 * settings.population_size // 5)
    return max(by_fraction, last.n_nondominated)


def _children(
    last: Generation, settings: Settings, max_stages: int, rng: np.random.Generator, removal: bool
) -> list[Design]:
    n_elite = _n_elite(last, settings)
    elite = [last.population[i] for i in last.unique[:n_elite]]
    size = settings.population_size
    if settings.unique == "vectors":
        size = max(size, ceil(Fraction(5 * n_elite, 4)))
    m, n = size - n_elite, len(elite[0])
    top = max(last.log_fitness)
    shares = [exp(value - top) for value in last.log_fitness]
    spins = rng.random((m, 2))
    recombined = rng.random((m, 1)) <= settings.recombination_rate
    choice = rng.integers(3, size=(m, 1))
    from_first = rng.random((m, n)) < 0.5
    copies_first = rng.random((m, 1)) < 0.5
    chosen, draws = rng.random((m, n)) <= settings.mutation_rate, rng.random((m, n))
    fates = rng.random((m, n)) if removal else [None] * m
    children = []
    for i in range(m):
        a, b = (last.population[spin(shares, draw)] for draw in spins[i])
        child = a if copies_first[i, 0] else b
        if recombined[i, 0]:
            mixed = recombine(a, b, int(choice[i, 0]), list(from_first[i]))
            child = mixed if n_bought(mixed) else child
        child = mutate(child, list(chosen[i]), list(draws[i]), settings.stage_bias, max_stages, fates[i])
        children.append(compress(child))
    return elite + children
