import numpy as np
import pytest

from emsco import BestFirst, Evolution
from emsco.exceptions import SearchInterruptedWarning
from emsco.scoring.judge import Judge
from tests.classifiers import fixed


@pytest.mark.parametrize(
    ("search", "word"), [(BestFirst(start=0), r"[\d,]+ designs"), (Evolution(), r"generation \d+")]
)
def test_an_interrupted_search_says_how_far_it_came_in_its_own_words(search, word, monkeypatch):
    tally, calls = Judge.tally, iter(range(100))

    def interrupted(self, designs):
        if next(calls) == 3:
            raise KeyboardInterrupt
        return tally(self, designs)

    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 8))
    monkeypatch.setattr(Judge, "tally", interrupted)
    with pytest.warns(SearchInterruptedWarning, match=rf"search interrupted after {word}; the front is the best"):
        fixed(search=search, max_stages=4, encoding="linear", C=1, random_state=0).fit(X, X[:, 0] > 0)
