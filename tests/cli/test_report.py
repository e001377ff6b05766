from tests.cli.calls import call


def test_report_writes_a_page(folder, model, tmp_path, capsys):
    page = tmp_path / "r.html"
    call(capsys, "report", model, "-o", page, "--data", folder / "heart.csv")
    assert page.read_text(encoding="utf-8").lower().startswith("<!doctype html>")
