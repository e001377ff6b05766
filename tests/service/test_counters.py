from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
import pytest

from emsco.service import counters as module
from emsco.service.counters import Counters, total_of

KEYS = st.tuples(st.sampled_from(["requests", "shift"]), st.text(max_size=20))


@given(st.lists(st.tuples(KEYS, st.integers(-5, 5))))
def test_counters_count(additions):
    counters, wanted = Counters(None), Counter()
    for key, amount in additions:
        counters.add(key, amount)
        wanted[key] += amount
    assert {key: counters[key] for key in counters} == dict(wanted)


def test_a_worker_that_replaces_another_goes_on_and_sums_are_over_all(tmp_path):
    first, second = Counters(tmp_path / "0.counters"), Counters(tmp_path / "1.counters")
    first.add(("a", "\u20ac"), 2)
    second.add(("a", "\u20ac"), 3)
    second.add(("b",))
    del first  # without a word, as if it were killed
    again = Counters(tmp_path / "0.counters")
    again.add(("a", "\u20ac"), 10)
    assert total_of(tmp_path, again) == {("a", "\u20ac"): 15.0, ("b",): 1.0}
    assert total_of(None, again) == {("a", "\u20ac"): 12.0}


def test_too_many_counters_share_one(monkeypatch):
    monkeypatch.setattr(module, "_SIZE", 4096)
    counters = Counters(None)
    for i in range(1000):
        counters.add(("key", str(i)))
    assert counters["key", "0"] == 1
    assert counters["overflow",] == 1000 - (len(list(counters)) - 1)


def test_an_unknown_counter_is_not_there():
    with pytest.raises(KeyError):
        Counters(None)["nothing",]
