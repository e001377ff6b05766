import pytest

from emsco.experiments.published import PaperResult, paper_comparison
from emsco.experiments.setting import PAPER

TOTALS = {"heart": 750, "credit": 1760, "pima": 1600, "synthetic30": 8600}


def test_it_has_every_method_on_every_data_set_once():
    results = paper_comparison()
    methods = ["CSTC*", "GM*", "EMSCO", "Single-Stage", "CO-T", "CaCT LASSO"]
    assert [(r.dataset, r.method) for r in results] == [
        (dataset, method) for dataset in ("pima", "credit", "heart", "synthetic30") for method in methods
    ]
    assert {r.dataset for r in results} == PAPER.keys()
    assert results[8] == PaperResult("credit", "EMSCO", 0.961, 0.82, 365.889, 2.56)


def test_figures_are_shares_and_costs_and_add_up_to_the_combined_one():
    for r in paper_comparison():
        assert 0 < r.coverage <= 1
        assert 0 < r.accuracy <= 1
        assert 0 < r.mean_cost <= TOTALS[r.dataset]
        combined = r.coverage + r.accuracy + 1 - r.mean_cost / TOTALS[r.dataset]
        assert 0 <= combined - r.combined + 1e-3 < 0.04


@pytest.mark.parametrize("dataset", TOTALS)
def test_a_single_stage_decides_everything_and_buys_everything(dataset):
    (single,) = [r for r in paper_comparison() if (r.dataset, r.method) == (dataset, "Single-Stage")]
    assert (single.coverage, single.mean_cost) == (1.0, TOTALS[dataset])
