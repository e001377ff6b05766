import json

import emsco
from tests.cli.calls import HEART, SMALL, TARGET, call


def test_evaluate_knows_the_target(folder, model, capsys):
    record = json.loads(call(capsys, "evaluate", model, folder / "heart.csv", "--json").out)
    clf = emsco.load(model)
    expected = clf.evaluate(HEART.data, HEART.target).points[clf.point_]
    assert record["rows"] == 299
    assert record["in_use"]["accuracy"]["value"] == expected.accuracy
    assert "on 299 test cases" in call(capsys, "evaluate", model, folder / "heart.csv").out
    assert (
        "no column 'lived'" in call(capsys, "evaluate", model, folder / "heart.csv", "--target", "lived", expect=1).err
    )


def test_buying_everything_is_counted_alike_whatever_the_point_in_use(folder, tmp_path, capsys):
    path, data = tmp_path / "m.emsco", folder / "heart.csv"
    fit = ["fit", data, "--target", TARGET, *SMALL, "--test", data, "-o", path]
    call(capsys, *fit, "--best", "accuracy", "--min-coverage", 0.8)
    for use in ([], ["--best", "cost"], ["--best", "coverage"]):
        if use:
            assert "buy everything, always answer" in call(capsys, "use", path, *use).out
        fresh = json.loads(call(capsys, "evaluate", path, data, "--json").out)
        kept = emsco.load(path).evaluation_
        assert fresh["buy_everything"]["answered"] == list(kept.everything.answered) == list(kept.always.answered)
        assert fresh["in_use"]["answered"] == list(kept.points[emsco.load(path).point_].answered)
