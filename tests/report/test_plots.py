import builtins

import matplotlib.pyplot as plt
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest
from sklearn.datasets import load_breast_cancer

from emsco import MultiStageClassifier
from emsco.exceptions import InvalidParameterError, MissingDependencyError, NoSuchPointError
from emsco.report import EvaluationDisplay, FrontDisplay, StageCalibrationDisplay, StagesDisplay, ThresholdDisplay
from emsco.report.summary import stage_flow


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def bar_counts(axis):
    """The widths of the bars, by label."""
    return {group.get_label(): [bar.get_width() for bar in group] for group in axis.containers}


def test_the_front_is_drawn_point_by_point(fitted):
    front = fitted.front_
    display = front.plot()
    assert isinstance(display, FrontDisplay)
    (dots,) = display.ax_.collections
    assert_allclose(dots.get_offsets(), np.column_stack([front.mean_cost, 100 * front.accuracy]))
    assert_allclose(dots.get_array(), 100 * front.coverage)
    assert display.ax_.figure is display.figure_
    display.figure_.canvas.draw()


def test_the_point_in_use_is_ringed_and_named(fitted):
    front, point = fitted.front_, fitted.point_
    display = FrontDisplay.from_estimator(fitted)
    ring = display.ax_.collections[-1]
    assert_allclose(ring.get_offsets(), [[front.mean_cost[point], 100 * front.accuracy[point]]])
    (name,) = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert name.startswith(f"point {point}: cost")
    assert any("750" in text.get_text() for text in display.ax_.texts)
    with pytest.raises(InvalidParameterError, match="highlight must be a point, 0 to"):
        front.plot(highlight=len(front))


def test_points_without_labels_are_left_out_with_a_note():
    display = FrontDisplay(np.array([0, 0.5]), np.array([np.nan, 0.9]), np.array([1.0, 2])).plot(highlight=0)
    assert len(display.ax_.collections[0].get_offsets()) == 1
    assert "not shown: 1 point" in display.ax_.texts[0].get_text()
    assert "no labels" in display.ax_.get_legend().get_texts()[0].get_text()


def test_pictures_go_into_given_axes(fitted, held_out):
    X, y = held_out
    _, axes = plt.subplots(1, 2)
    assert fitted.front_.plot(axes[0]).ax_ is axes[0]
    assert list(fitted.plot_stages(ax=axes).ax_) == list(axes)
    assert list(ThresholdDisplay.from_estimator(fitted, X, y, thresholds=[0.5, 0.9], ax=axes).ax_) == list(axes)
    with pytest.raises(InvalidParameterError, match=r"needs 2 axes; got 1"):
        fitted.plot_stages(ax=axes[0])


def test_stages_with_labels_show_right_and_wrong(fitted, held_out):
    flow = stage_flow(fitted.deployed_, *held_out)
    display = fitted.plot_stages(*held_out)
    assert isinstance(display, StagesDisplay)
    drawn = bar_counts(display.ax_[0])
    assert drawn["correct label"] == flow["right"]
    assert_array_equal(np.add(drawn["correct label"], drawn["wrong label"]), flow["answered"])
    assert drawn["continues"] == [*flow["reached"][1:], 0]
    assert drawn["no label"][-1] == flow["rejected"]
    assert sum(drawn["no label"]) == flow["rejected"]
    assert bar_counts(display.ax_[1])["price of the stage"] == [stage.price for stage in fitted.stages_]
    (line,) = display.ax_[1].lines
    assert_allclose(line.get_xdata()[-1], fitted.decide(held_out[0]).cost.mean())
    display.figure_.canvas.draw()


def test_stages_without_rows_show_the_validation_counts(fitted):
    flow = stage_flow(fitted.deployed_)
    display = fitted.plot_stages()
    assert bar_counts(display.ax_[0])["label"] == flow["answered"]
    assert_allclose(display.mean_paid[-1], fitted.front_.mean_cost[fitted.point_])
    assert f"of {fitted.front_.n_samples}" in display.ax_[0].get_xlabel()


@pytest.mark.parametrize("n_stages", [1, 2, 4])
def test_the_legends_of_the_stages_cover_no_bar(n_stages):
    flow = {
        "n_rows": 100, "reached": [100] * n_stages, "answered": [0] * (n_stages - 1) + [50],
        "right": [0] * (n_stages - 1) + [40], "rejected": 50,
    }  # fmt: skip
    display = StagesDisplay([["age"]] * n_stages, [10] * n_stages, flow).plot()
    display.figure_.canvas.draw()
    for axis in display.ax_:
        legend = axis.get_legend().get_window_extent()
        assert not any(legend.overlaps(bar.get_window_extent()) for bar in axis.patches if bar.get_width())


def test_the_stages_plot_assumes_no_unit_of_price(fitted):
    cost = fitted.plot_stages().ax_[1]
    assert "money" not in cost.get_xlabel()


def test_long_lists_of_features_are_cut():
    X = np.random.default_rng(0).normal(size=(40, 30))
    clf = MultiStageClassifier([0] * 29 + [1]).fit(X, X[:, 0] > 0)
    first, second = (label.get_text() for label in clf.plot_stages(X).ax_[0].get_yticklabels())
    assert first.endswith("... (29 in all)")
    assert first.count("\n") == 1
    assert second == "2: x29"


def test_the_sweep_draws_what_deciding_does(fitted, held_out):
    X, y = held_out
    display = ThresholdDisplay.from_estimator(fitted, X, y)
    accuracy, coverage, in_use = display.ax_[0].lines
    at = int(np.argmin(np.abs(display.thresholds - 0.75)))
    assert display.thresholds[[0, -1]].tolist() == [0.5, 1]
    assert_allclose(coverage.get_ydata()[at], 100 * fitted.decide(X).conclusive.mean())
    assert_allclose(accuracy.get_ydata(), 100 * display.accuracy)
    assert_allclose(display.ax_[1].lines[0].get_ydata()[at], fitted.decide(X).cost.mean())
    assert in_use.get_xdata()[0] == 0.75
    assert (display.accuracy_interval[:, 0] <= np.nan_to_num(display.accuracy)).all()
    display.figure_.canvas.draw()


def test_calibration_draws_a_panel_per_stage(fitted, held_out):
    display = StageCalibrationDisplay.from_estimator(fitted, *held_out, n_bins=3)
    assert len(display.ax_) == len(fitted.stages_)
    for axis, bins in zip(display.ax_, display.stages, strict=True):
        _, threshold, curve = axis.lines[:3]
        assert threshold.get_xdata()[0] == 75
        assert_allclose(curve.get_xdata(), 100 * np.array(bins["confidence"]))
        assert_allclose(curve.get_ydata(), 100 * np.divide(bins["right"], bins["count"]))
        assert f"{sum(bins['count'])} case" in axis.get_title()
    display.figure_.canvas.draw()
    with pytest.raises(InvalidParameterError, match="n_bins must be"):
        StageCalibrationDisplay.from_estimator(fitted, *held_out, n_bins=0)


def test_a_stage_that_nobody_reaches_has_an_empty_panel(held_out):
    X, y = held_out
    clf = MultiStageClassifier([["age"], ["time"]], {"age": 1, "time": 1}, threshold=0.0)
    display = StageCalibrationDisplay.from_estimator(clf.fit(X[["age", "time"]], y), X[["age", "time"]], y)
    assert display.ax_[1].get_title() == "stage 2: 0 cases"


def test_without_matplotlib_the_error_says_how_to_get_it(monkeypatch, fitted):
    original = builtins.__import__

    def no_matplotlib(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_matplotlib)
    with pytest.raises(MissingDependencyError, match=r"pip install 'emsco\[plot\]'"):
        fitted.plot_stages()


@pytest.mark.parametrize(("threshold", "lines"), [({0: 0.9, 1: 0.7}, 2), ([0.9, 0.8, 0.7], 3), (0.8, 1)])
def test_every_threshold_in_use_is_drawn(threshold, lines):
    X, y = load_breast_cancer(return_X_y=True)
    clf = MultiStageClassifier([0, 0, 1, 2], threshold=threshold).fit(X[:, :4], y)
    shares, cost = ThresholdDisplay.from_estimator(clf, X[:, :4], y, thresholds=[0.6, 0.8, 1.0]).ax_
    assert len(cost.lines) == 1 + lines
    panel = StageCalibrationDisplay.from_estimator(clf, X[:, :4], y).ax_[0]
    assert sum(line.get_linestyle() == "--" for line in panel.lines) == lines
    assert shares.texts[0].get_text() == "in use: " + ", ".join(
        f"{bar:g}" for bar in np.unique(clf.deployed_.rule.matrix(3))
    )


def test_a_plot_within_limits_leaves_the_others_out(fitted):
    front = fitted.front_
    least = float(np.median(front.coverage))
    display = front.plot(min_coverage=least)
    (dots,) = display.ax_.collections
    within = front.coverage >= least
    assert_allclose(np.sort(dots.get_offsets()[:, 0]), np.sort(front.mean_cost[within]))
    assert display.ax_.get_title() == f"{within.sum()} of {len(front)} Pareto-optimal designs"
    low, high = display.ax_.get_xlim()
    assert high - low < 1.2 * np.ptp(front.mean_cost[within]) + 1
    with pytest.raises(NoSuchPointError, match="set max_cost"):
        front.plot(max_cost=1e-6)
    with pytest.raises(InvalidParameterError, match="min_coverage must be a share"):
        front.plot(min_coverage=90)


def test_an_evaluation_is_drawn_with_intervals_and_lines_of_buying_everything(fitted, evaluation):
    display = evaluation.plot()
    assert isinstance(display, EvaluationDisplay)
    axis = display.ax_
    levels = [
        line.get_ydata()[0] for line in axis.lines if len(set(line.get_ydata())) == 1 and len(line.get_xdata()) == 2
    ]
    assert 100 * evaluation.everything.accuracy in levels
    assert 100 * evaluation.always.accuracy in levels
    (bars,) = axis.containers
    drawn = [evaluation.points[i] for i in evaluation.shown_points() if sum(evaluation.points[i].answered)]
    assert_allclose(bars.lines[0].get_xdata(), [result.mean_cost for result in drawn])
    assert_allclose(bars.lines[0].get_ydata(), [100 * result.accuracy for result in drawn])
    assert any(f"point {fitted.point_}, in use" in text.get_text() for text in axis.get_legend().get_texts())
    _, axes = plt.subplots()
    assert evaluation.plot(axes).ax_ is axes


def test_a_threshold_that_everyone_reaches_is_not_drawn():
    X, y = load_breast_cancer(return_X_y=True)
    clf = MultiStageClassifier([0, 0, 1, 2], threshold=[0.9, 0.8, 0.0]).fit(X[:, :4], y)
    shares, cost = ThresholdDisplay.from_estimator(clf, X[:, :4], y, thresholds=[0.6, 0.8, 1.0]).ax_
    assert len(cost.lines) == 1 + 2
    assert shares.texts[0].get_text() == "in use: 0.8, 0.9"
    assert shares.get_xlim()[0] > 0.5


def test_many_points_are_small_and_translucent():
    def dots(n):
        figures = np.linspace(0.5, 1, n)
        return FrontDisplay(figures, figures, figures).plot().ax_.collections[0]

    assert dots(500).get_sizes()[0] < dots(20).get_sizes()[0]
    assert dots(500).get_alpha() < 1


@pytest.mark.parametrize("n_stages", [1, 2])
def test_the_labels_of_few_calibration_panels_fit_the_figure(n_stages):
    bins = {"confidence": [0.6, 0.9], "right": [6, 9], "count": [10, 10], "interval": [(0.3, 0.9), (0.6, 1.0)]}
    figure = StageCalibrationDisplay([bins] * n_stages, threshold=0.8, n_classes=2).plot().figure_
    figure.canvas.draw()
    width, height = figure.canvas.get_width_height()
    for label in (figure._supxlabel, figure._supylabel):
        box = label.get_window_extent()
        assert box.x0 >= 0
        assert box.x1 <= width
        assert box.y0 >= 0
        assert box.y1 <= height
