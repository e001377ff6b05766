import os
from pathlib import Path
import shutil
import subprocess
import sys

import pytest

import emsco
from tests.cli.calls import TARGET, call


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["fit", "none.csv", "--target", "x"], 1, "there is no file none.csv"),
        (["fit", "heart.csv", "--target", "x"], 1, "no column 'x'; its columns: age"),
        (["fit", "heart.csv"], 2, "Missing option '--target'"),
        (["fit", "heart.csv", "--target", TARGET, "--costs", "heart.csv"], 1, "a price list has the columns"),
        (["fit", "heart.csv", "--target", TARGET, "--drop", "nothing"], 1, "no column 'nothing'"),
        (["fit", "heart.csv", "--target", TARGET, "--threshold", "80"], 1, "error: --threshold must be a probability"),
        (["fit", "heart.csv", "--target", TARGET, "--test-size", "25"], 2, "--test-size must be a share"),
        (["fit", "heart.csv", "--target", TARGET, "--time-limit", "0"], 1, "error: --time-limit must be a positive"),
        (["fit", "heart.csv", "--target", TARGET, "-o", "no/m.emsco"], 2, "no such folder"),
        (["fit", "heart.csv", "--target", "age"], 1, "error: --target cannot be used as class labels"),
        (["fit", "heart.csv", "--target", TARGET, "--jobs", "0"], 1, "--jobs must be"),
        (["fit", "heart.csv", "--target", TARGET, "--max-cost", "cheap"], 2, "is not a valid float"),
        (["front", "heart.csv"], 1, "not a model file"),
        (["front", "none.emsco"], 1, "there is no file"),
        (["predict", "model.emsco", "prices.csv", "-o", "o.csv"], 1, "is not in the table"),
        (["predict", "model.emsco", "heart.csv", "-o", "no/o.csv"], 1, "there is no folder"),
        (["evaluate", "model.emsco", "prices.csv", "--target", "price"], 2, "none of the columns"),
        (["report", "model.emsco", "-o", "no/r.html"], 1, "there is no folder"),
        (["sing"], 2, "No such command 'sing'"),
    ],
)
def test_mistakes_end_in_one_line(folder, monkeypatch, capsys, arguments, code, says):
    monkeypatch.chdir(folder)
    printed = call(capsys, *arguments, expect=code)
    assert says in printed.err
    assert "Traceback" not in printed.err
    errors = [line for line in printed.err.splitlines() if line.lower().startswith("error")]
    assert len(errors) == 1


def test_help_is_a_manual(capsys):
    assert "emsco fit patients.csv" in call(capsys, "--help").out
    for command in ("fit", "front", "use", "predict", "evaluate", "report", "ask", "inspect", "export", "demo"):
        printed = call(capsys, command, "--help").out
        assert f"Usage: emsco {command}" in printed
        assert len(printed.splitlines()) > 5
    assert call(capsys, "--version").out.strip() == f"emsco, version {emsco.__version__}"
    assert "global" in call(capsys, "experiments", "--help").out


def test_help_is_there_at_once():
    heavy = {"numpy", "numba", "pandas", "pyarrow", "rich", "scipy", "sklearn"}
    code = (
        f"import sys; from emsco.cli.app import run; run(['fit', '--help']); sys.exit(bool({heavy} & {{*sys.modules}}))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0


def test_without_the_extra_it_says_what_to_install():
    code = "import sys; sys.modules['click'] = None; from emsco.__main__ import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "error: the command line needs additional packages: pip install 'emsco[cli]'\n"


def test_file_names_may_hold_bytes_that_are_no_text(folder, model, tmp_path, capsys):
    here = Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), b"caf\xe9")))
    try:
        here.mkdir()
    except OSError:
        pytest.skip("this file system wants names to be text")
    data, prices = (here / os.fsdecode(name) for name in (b"h\xff.csv", b"p\xff.csv"))
    shutil.copy(folder / "heart.csv", data)
    shutil.copy(folder / "prices.csv", prices)
    shutil.copy(model, here / os.fsdecode(b"m\xff.emsco"))
    model = here / os.fsdecode(b"m\xff.emsco")
    call(
        capsys,
        "fit",
        data,
        "--target",
        TARGET,
        "--final",
        "search",
        "--costs",
        prices,
        "--max-stages",
        1,
        "--jobs",
        1,
        "-o",
        model,
    )
    assert "h\\udcff.csv" in call(capsys, "inspect", model).out
    call(capsys, "use", model, 0)
    assert "o\\udcff.csv" in call(capsys, "predict", model, data, "-o", here / os.fsdecode(b"o\xff.csv")).out
    call(capsys, "report", model, "-o", here / os.fsdecode(b"r\xff.html"))
    assert "h\\udcff.csv" in call(capsys, "front", data, expect=1).err
