from emsco import MultiStageClassifier
from tests.cli.calls import HEART, call


def test_a_model_of_a_given_design_has_no_front(tmp_path, capsys):
    clf = MultiStageClassifier([["age"], ["sex"]]).fit(HEART.data[["age", "sex"]], HEART.target)
    clf.save(tmp_path / "m.emsco")
    assert "no front" in call(capsys, "front", tmp_path / "m.emsco", expect=2).err
    assert "MultiStageClassifier" in call(capsys, "inspect", tmp_path / "m.emsco").out
    call(capsys, "report", tmp_path / "m.emsco", "-o", tmp_path / "r.html")
