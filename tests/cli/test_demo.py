import re

import pandas as pd
import pytest

from emsco.cli import demo
from emsco.cli.app import run
from emsco.datasets import load_heart_failure
from emsco.exceptions import FileError
from emsco.prices.files import read_prices


def test_the_demo_prints_front_stages_and_comparison(capsys, tmp_path):
    page = tmp_path / "demo.html"
    assert run(["demo", "--report", str(page)]) == 0
    printed = capsys.readouterr()
    text = printed.out
    assert re.search(r"\d+ of [\d,]+ designs of up to 10 stages are Pareto-optimal; the list is complete", text)
    assert re.search(r"^point +mean cost +coverage +accuracy +worst recall", text, re.MULTILINE)
    assert re.search(r"^ +1 +\w.* +\d+ +75 +\d+ +\d+", text, re.MULTILINE)
    assert "224 out-of-fold patients" in text
    ours = re.search(r"the design in use +[\d.]+ % \(.+?\) +[\d.]+ % \(.+?\) +\d+ of \d+ +([\d.,]+)", text)
    assert re.search(r"buy everything, always answer +100.0 % +[\d.]+ % \(.+ of 75 +750.00", text)
    assert ours
    assert float(ours[1]) < 750
    assert f"open {page} in a browser" in text.replace("\n", " ")
    assert "ejection_fraction" in page.read_text(encoding="utf-8")
    assert printed.err == ""  # nothing but on a terminal


def test_files_are_the_carried_data(tmp_path, capsys):
    folder = tmp_path / "new" / "folder"
    assert run(["demo", "--files", str(folder)]) == 0
    assert "emsco fit heart.csv" in capsys.readouterr().out
    heart = load_heart_failure()
    table = pd.read_csv(folder / "heart.csv")
    pd.testing.assert_frame_equal(table[heart.feature_names], heart.data, check_dtype=False)
    assert table["DEATH_EVENT"].tolist() == heart.target.tolist()
    assert read_prices(folder / "prices.csv").price == heart.prices
    new = pd.read_csv(folder / "new.csv")
    assert set(new) == {"patient", *heart.feature_names} - {"time"}
    assert run(["demo", "--files", str(folder)]) == 0  # the same files again


def test_files_of_others_are_not_replaced(tmp_path):
    (tmp_path / "new.csv").write_text("mine", encoding="utf-8")
    with pytest.raises(FileError, match=r"new\.csv exists already"):
        demo.write_files(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]
