import re
import subprocess
import sys

import pandas as pd
import pytest

from emsco import demo
from emsco.cli import run
from emsco.datasets import load_heart_failure
from emsco.exceptions import FileError
from emsco.files import read_prices


def test_the_demo_prints_front_stages_and_comparison(capsys):
    demo.main()
    text = capsys.readouterr().out
    assert re.search(r"[\d,]+ ways to buy 12 features.*These \d+ are the ones that no\nother beats, all of them", text)
    assert re.search(r"^point +fitness +stages +coverage +accuracy +mean cost", text, re.MULTILINE)
    assert re.search(r"^stage 1: .+ - price \d+ - \d+ % of patients leave here", text, re.MULTILINE)
    ours = re.search(r"EMSCO, the chosen design +(\d+) % +(\d+) % +\d+ of \d+ +([\d.,]+)", text)
    everything = re.search(r"buy everything, always answer +100 % +(\d+) % +\d+ of 75 +750.00", text)
    assert ours
    assert everything
    assert float(ours[3]) < 750


def test_it_is_quiet_on_standard_error_when_piped():
    done = subprocess.run([sys.executable, "-m", "emsco.demo"], check=True, capture_output=True, text=True)
    assert done.stderr == ""


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
    with pytest.raises(FileError, match=r"new\.csv is there already"):
        demo.write_files(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]
