from dataclasses import replace

import pytest

from emsco.report.console import print_outlook
from emsco.report.outlook import outlook_record, outlook_words
from emsco.report.records import summary_record
from emsco.scoring.outlook import Outlook

KNOWN = Outlook((130, 40), (136, 64), (136, 64), (10.0, 110.0), (150, 50))


@pytest.fixture(scope="module")
def model(by_default):
    deployed = by_default.deployed_
    return replace(deployed, front=replace(deployed.front, outlook=KNOWN))


@pytest.fixture(scope="module")
def test_rows(by_default, held_out):
    return by_default.evaluate(*held_out)


def test_the_record_has_the_long_run_and_as_many_new_rows_as_were_tested(model, test_rows):
    record = outlook_record(model, test_rows)
    assert (record["point"], record["rows"]) == (model.chosen, 200)
    assert record["accuracy"] == {"value": 0.85, "interval_95": list(KNOWN.interval("accuracy"))}
    assert record["recall"]["1"] == {"value": 0.625, "right": 40, "rows": 64}
    assert record["new_rows"]["rows"] == 99
    result = test_rows.points[model.chosen]
    for name in ("accuracy", "coverage", "mean_cost"):
        low, high = KNOWN.interval(name, n_rows=99)
        found = record["new_rows"][name]
        assert found["interval_95"] == [low, high]
        assert found["found"] == getattr(result, name)
        assert found["within"] == (low <= found["found"] <= high)
    assert summary_record(model, test_rows)["outlook"] == record


def test_without_test_rows_the_words_are_of_the_long_run(model):
    (words,) = outlook_words(outlook_record(model, None))
    low, high = KNOWN.interval("accuracy")
    assert words.startswith("Expected on new cases, in the long run (95 % intervals; from 200 training rows")
    assert f"accuracy {100 * low:.1f} to {100 * high:.1f} %, coverage " in words
    low, high = KNOWN.interval("mean_cost")
    assert words.endswith(f"mean cost {low:.2f} to {high:.2f}.")


def test_a_figure_outside_its_interval_is_named(model, test_rows):
    record = outlook_record(model, test_rows)
    new = record["new_rows"]
    for name in ("accuracy", "coverage", "mean_cost"):
        new[name] |= {"within": True}
    assert outlook_words(record)[1] == "The test figures are within these intervals."
    new["accuracy"] |= {"found": 0.5, "within": False, "interval_95": [0.8, 0.9]}
    new["mean_cost"] |= {"found": 99.0, "within": False, "interval_95": [10.0, 20.0]}
    words = outlook_words(record)
    assert "accuracy 80.0 to 90.0 %" in words[0]
    assert words[1] == (
        "Not as expected on the test cases: accuracy 50.0 %, below its interval; mean cost 99.00, above its interval. "
        "By chance alone, about one figure in twenty is."
    )


def test_the_terminal_tells_it_of_the_chosen_point_alone(model, test_rows, capsys):
    print_outlook(model, test_rows)
    assert "Expected on 99 new cases" in capsys.readouterr().out
    print_outlook(model.use((model.chosen + 1) % len(model.designs)), test_rows)
    assert capsys.readouterr().out == ""


def test_other_thresholds_have_no_outlook(model, fitted):
    assert outlook_record(model.with_threshold(0.9), None) is None
    assert outlook_record(fitted.deployed_, None) is None
