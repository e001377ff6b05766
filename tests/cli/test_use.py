import json

import numpy as np

import emsco
from emsco.scoring.choice import no_worse
from tests.cli.calls import SMALL, TARGET, call


def test_use_takes_the_knee_and_the_simplest(model, capsys):
    front = emsco.load(model).front_
    call(capsys, "use", model, "--knee")
    assert emsco.load(model).point_ == front.knee()
    call(capsys, "use", model, "--best", "accuracy", "--one-standard-error", "--max-cost", 500)
    assert emsco.load(model).point_ == front.choose(best="accuracy", one_standard_error=True, max_cost=500)
    call(capsys, "use", model, "--best", "combined")
    assert emsco.load(model).point_ == front.combined.argmax()
    assert "not both" in call(capsys, "use", model, 1, "--knee", expect=2).err


def test_use_takes_the_cheapest_point_that_is_no_worse_and_says_if_there_is_none(folder, model, tmp_path, capsys):
    for path in (model, tmp_path / "own.emsco"):
        if path != model:
            call(capsys, "fit", folder / "heart.csv", "--target", TARGET, *SMALL, "--best", "cost", "-o", path)
        point, holds = no_worse(emsco.load(path).front_)
        assert holds or path == model, "with thresholds of its own, buying everything is a point"
        printed = call(capsys, "use", path, "--best", "no_worse")
        assert emsco.load(path).point_ == point
        assert ("warning: no design is as good as buying everything" in printed.err) == (not holds)


def test_use_puts_another_point_into_use_and_keeps_the_rest(model, capsys):
    before = emsco.load(model)
    call(capsys, "use", model, 3)
    after = emsco.load(model)
    assert after.point_ == 3
    assert after.evaluation_ == before.evaluation_
    assert after.notes_ == before.notes_
    assert json.loads(call(capsys, "use", model, "--best", "cost", "--json").out)["in_use"]
    assert emsco.load(model).point_ == before.front_.choose(best="cost")
    assert "error: POINT must be one of the points 0 to" in call(capsys, "use", model, 999, expect=1).err
    assert "give the number of a point, limits" in call(capsys, "use", model, expect=2).err
    assert "not both" in call(capsys, "use", model, 1, "--max-cost", 3, expect=2).err


def test_use_takes_limits_by_class_and_shows_the_classes(model, capsys):
    front = emsco.load(model).front_
    least = float(np.median(front.recall[:, 1]).round(3))
    printed = call(capsys, "use", model, "--min-recall", f"1={least}", "--best", "cost").out
    clf = emsco.load(model)
    assert clf.point_ == front.choose(min_recall={1: least}, best="cost")
    result = clf.evaluation_.points[clf.point_]
    assert "by class" in printed
    assert f"{100 * result.recall[1]:.1f} %" in printed
    assert clf.evaluation_.base_rate in " ".join(printed.split())
    assert call(capsys, "use", model, "--min-precision", 0.3, "--best", "cost").out
