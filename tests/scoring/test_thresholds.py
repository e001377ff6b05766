import pytest

from emsco.scoring.rejection import NEVER, RejectRule
from emsco.scoring.thresholds import rule_words

EXIT = "early exit at 97 % confidence; "
NONE, LABEL = "the others get none", "all others get a label"


@pytest.mark.parametrize(
    ("bars", "n_stages", "words"),
    [
        ([[0.97], [0.0]], 2, EXIT + LABEL),
        ([[0.97], [0.97], [0.5]], 3, EXIT + LABEL),  # of two classes
        ([[0.97], [0.6]], 2, EXIT + "at the last stage, a label needs 60 %; " + NONE),
        ([[0.9], [0.8], [0.0]], 3, "a label needs 90 % (stage 1), 80 % (from stage 2 on); " + LABEL),
        ([[0.9], [0.8]], 3, "a label needs 90 % (stage 1), 80 % (from stage 2 on); the others get none"),
        ([[0.8]], 4, "a label needs 80 % confidence; the others get none"),
        ([[0.8, 0.95]], 2, "a label needs 80 % (a), 95 % (b); the others get none"),
        ([[0.0]], 1, "every case gets a label"),
        ([[0.4]], 3, "every case gets a label at the first stage"),
        ([[NEVER]], 2, "no case gets a label"),
    ],
)  # fmt: skip
def test_thresholds_say_who_leaves_and_what_becomes_of_the_others(bars, n_stages, words):
    assert rule_words(RejectRule.of(bars), n_stages, ["a", "b"]) == words
