import numpy as np
import pytest

from emsco.experiments import public
from emsco.experiments.__main__ import main


@pytest.mark.parametrize("name", public.SPLITS)
def test_a_split_is_a_partition_of_the_published_sizes(name):
    parts = public.SPLITS[name](4601)
    assert [part.size for part in parts] == [2761, 920, 920]
    assert np.unique(np.concatenate(parts)).size == 4601


def test_the_splits_have_different_test_rows():
    first, second = (split(4601)[2] for split in public.SPLITS.values())
    assert np.intersect1d(first, second).size < 400


@pytest.fixture(scope="module")
def quick():
    return list(public.run(quick=True))


def test_every_split_budget_and_limit_is_measured(quick):
    found = {(r.split, r.trained_on, r.limit, r.budget) for r in quick}
    assert {(s, f, "each", b) for s in public.SPLITS for f in public.FITS for b in public.BUDGETS} <= found
    assert {(s, f, "mean", b) for s in public.SPLITS for f in public.FITS for b in public.BUDGETS} <= found


def test_a_budget_of_every_case_is_kept_on_the_test_rows(quick):
    for r in quick:
        assert r.mean_cost <= r.largest_cost
        if r.limit == public.EACH:
            assert r.largest_cost <= r.budget
        assert 0.7 < r.accuracy < 1


def test_the_command_prints_and_writes_the_table(tmp_path, capsys, monkeypatch, quick):
    monkeypatch.setattr(public, "run", lambda *, quick: iter(quick_results))
    quick_results = quick
    assert main(["public", "--quick", "--out", str(tmp_path)]) == 0
    assert "0.909" in capsys.readouterr().out
    assert len((tmp_path / "public.csv").read_text().splitlines()) == len(quick) + 1
