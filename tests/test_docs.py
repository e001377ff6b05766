"""The code that README, docs and examples show runs, and prints what they show."""

from io import StringIO
import json
from pathlib import Path
import re
import runpy
import shlex
import shutil
import subprocess
import sys

import matplotlib
import matplotlib.pyplot as plt
import pytest

import emsco as package
from emsco import datasets, report
from emsco.cli.app import emsco, run
from emsco.cli.demo import write_files

ROOT = Path(__file__).parents[1]
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
}
WITH_CODE = [name for name, page in PAGES.items() if re.search("^```(python|console)", page, re.MULTILINE)]
BLOCK = re.compile(r"^```(?:(\w+)|\{code-block\} \w+\n:caption: (\S+)\n)\n(.*?)^```", re.DOTALL | re.MULTILINE)
FIT = "fit heart.csv --target DEATH_EVENT --costs prices.csv --drop time --threshold 0.8 --max-stages 3"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The folder that the tutorial makes."""
    folder = tmp_path_factory.mktemp("docs")
    write_files(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run(shlex.split(FIT)) == 0
    return folder


@pytest.mark.parametrize("name", WITH_CODE)
def test_the_code_of_a_page_runs_and_prints_what_it_shows(name, files, tmp_path, capsys, monkeypatch):
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    names = {"__name__": "page"}
    printed = None
    capsys.readouterr()
    for language, file, block in BLOCK.findall(PAGES[name]):
        if file:
            Path(file).write_text(block, encoding="utf-8")
        elif language == "python":
            exec(compile(block, name, "exec"), names)
            printed = capsys.readouterr().out
        elif language == "text" and printed is not None:
            assert _without_seconds(printed) == _without_seconds(block)
            printed = None
        elif language == "console":
            for command in re.split(r"^\$ ", block.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
                _run_and_compare(*command.partition("\n")[::2], capsys, monkeypatch)
    plt.close("all")


def _run_and_compare(command, shown, capsys, monkeypatch):
    """Run a command; every word shown, lines of ... apart, is in what it prints. Tables may be wider or narrower."""
    program, *arguments = shlex.split(command)
    answers = re.findall(r"^  \w+: ?(.*)$", shown, re.MULTILINE) if arguments[:1] == ["ask"] else []
    monkeypatch.setattr(sys, "stdin", StringIO("\n".join(answers) + "\n"))
    if program == "cd":
        monkeypatch.chdir(arguments[0])
    elif program == "cat":
        print(Path(arguments[0]).read_text(encoding="utf-8"))
    else:
        assert program == "emsco", f"who is {program}?"
        code = run(arguments)
        assert code == (1 if "error: " in shown else 0), capsys.readouterr().err
    output = capsys.readouterr()
    real = _words(output.out + output.err + " ".join(answers))
    absent = [word for word in _words(shown) if word not in real]
    assert not absent, f"{command} does not print {absent}"


def _without_seconds(text):
    return re.sub(r"[\d.]+(?= s\b)", "some", text)


def _words(text):
    """Words in order, without lines of dots, rules of tables, and a cell cut off by dots."""
    text = re.sub(r"\S*\.\.\.$", "", _without_seconds(text), flags=re.MULTILINE)
    return re.sub("[─|]", " ", text).split()


def test_the_page_of_the_command_line_has_the_help_of_every_command():
    page = PAGES["docs/cli.md"]
    assert page == runpy.run_path(str(ROOT / "docs/cli_help.py"))["with_help"](page), "run python docs/cli_help.py"
    assert re.findall("^## (.*)", page, re.MULTILINE) == list(emsco.commands)
    assert "\b" not in page
    assert "\\b" not in page


def test_every_public_name_is_on_the_page_of_the_api():
    listed = set(re.findall(r"^   (\w+)$", PAGES["docs/api.md"], re.MULTILINE))
    errors = {"EmscoError", "EmscoWarning"}  # drawn as a tree
    assert listed | errors == {*package.__all__, *datasets.__all__, *report.__all__}


def test_the_session_of_the_acquisition_page_has_the_state_shown():
    page = PAGES["docs/acquisition.md"]
    first, second, *_ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (shown,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    names = {}
    exec(first + second, names)
    state = json.loads(shown)
    assert state.keys() == names["session"].state.keys()
    assert {**state, "classifier": ""} == {**json.loads(names["row"]), "classifier": ""}


@pytest.mark.parametrize("name", PAGES)
def test_links_of_a_page_lead_somewhere(name):
    for target in re.findall(r"\]\((?!http)([^)#]+)", PAGES[name]):
        assert (ROOT / name).parent.joinpath(target).exists(), f"{name} links to {target}"


def test_the_frontier_example_draws_a_picture(tmp_path):
    picture = tmp_path / "frontier.png"
    subprocess.run([sys.executable, str(ROOT / "examples/plot_frontier.py"), str(picture)], check=True)
    assert picture.read_bytes().startswith(b"\x89PNG")
