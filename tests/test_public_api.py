import subprocess
import sys

import pytest

import emsco


def test_all_is_what_is_there():
    assert set(emsco.__all__) == {
        "Accept", "Acquire", "BestFirst", "Branch", "Comparison", "Decisions", "EMSCOClassifier", "EmscoError",
        "EmscoWarning", "Evaluation", "Evolution", "Exact", "Front", "Guarantee", "Loss", "Monitor",
        "MultiStageClassifier", "Objective", "Prices", "Recall", "Reject", "Session", "Stage", "compare", "load",
    }  # fmt: skip
    for name in emsco.__all__:
        assert getattr(emsco, name).__name__ == name
    assert set(emsco.__all__) <= set(dir(emsco))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        emsco.nothing  # noqa: B018


def test_the_pinned_signatures():
    import inspect

    parameters = inspect.signature(emsco.EMSCOClassifier).parameters
    assert list(parameters) == [
        "costs", "threshold", "errors", "objectives", "choose", "preset", "search", "max_stages", "removal", "branch",
        "encoding", "C", "products", "estimator", "final_estimator", "calibration", "validation", "refit",
        "random_state", "n_jobs", "time_limit", "verbose", "cache_bytes", "client",
    ]  # fmt: skip
    assert [name for name, p in parameters.items() if p.kind is not p.KEYWORD_ONLY] == ["costs"]
    defaults = emsco.EMSCOClassifier().get_params()
    assert defaults["preset"] == "best"
    left_to_the_preset = ("threshold", "removal", "search", "validation", "choose", "encoding", "C", "final_estimator")
    assert [defaults[name] for name in left_to_the_preset] == [None] * 8
    parameters = inspect.signature(emsco.MultiStageClassifier).parameters
    assert [name for name, p in parameters.items() if p.kind is not p.KEYWORD_ONLY] == ["design", "costs"]
    assert emsco.Evolution() == emsco.Evolution(
        population_size=300, max_generations=150, patience=20, mutation_rate=0.075, recombination_rate=0.8,
        elite_fraction=0.2, stage_bias=2.0, epsilon=0.01,
    )  # fmt: skip


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, emsco; sys.exit(any(m in sys.modules for m in ('sklearn', 'numba', 'pandas', 'scipy')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_report_needs_matplotlib_for_pictures_only():
    code = "import sys; sys.modules['matplotlib'] = None; from emsco.report import *; print(sorted(dir()))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    for name in ("FrontDisplay", "StageCalibrationDisplay", "StagesDisplay", "ThresholdDisplay", "write_report"):
        assert name in done.stdout


def test_pandas_and_polars_are_not_needed():
    code = """
import sys
sys.modules["pandas"] = sys.modules["polars"] = None
from emsco import EMSCOClassifier, Evolution
from emsco.datasets import load_heart_failure
heart = load_heart_failure(as_frame=False)
clf = EMSCOClassifier(search=Evolution(population_size=8, max_generations=1)).fit(heart.data, heart.target)
print(len(clf.decide(heart.data)))
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.stdout.strip() == "299", done.stderr
