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
from rich.console import Console

import emsco as package
from emsco import datasets, metrics, report
from emsco.cli.app import emsco, run
from emsco.cli.demo import write_files

ROOT = Path(__file__).parents[1]
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
}
WITH_CODE = [name for name, page in PAGES.items() if re.search("^```(python|console)", page, re.MULTILINE)]
SLOW = dict.fromkeys(["README.md", "docs/budgets.md", "docs/defaults.md"], pytest.mark.slow)  # boosted trees, many fits
EXAMPLES = sorted(ROOT.glob("examples/*.py"))
SLOW_EXAMPLES = ["thyroid_screening"]
BLOCK = re.compile(r"^```(?:(\w+)|\{code-block\} \w+\n:caption: (\S+)\n)\n(.*?)^```", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:e[+-]\d+)?")
WIDTH = 88  # of the tables that pages show
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


class Typed(StringIO):
    """Standard input that shows what is typed, as a terminal does."""

    def readline(self, *arguments):
        line = super().readline(*arguments)
        sys.stdout.write(line)
        return line


@pytest.mark.page
@pytest.mark.parametrize("name", [pytest.param(name, marks=SLOW.get(name, ())) for name in WITH_CODE])
def test_the_code_of_a_page_runs_and_prints_what_it_shows(name, files, tmp_path, capsys, monkeypatch):
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("emsco.report.console.console", lambda: Console(width=WIDTH, highlight=False))
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
            assert_shows(block, printed)
            printed = None
        elif language == "console":
            for command in re.split(r"^\$ ", block.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
                _run_and_compare(*command.partition("\n")[::2], capsys, monkeypatch)
    plt.close("all")


def _run_and_compare(command, shown, capsys, monkeypatch):
    program, *arguments = shlex.split(command)
    answers = re.findall(r"^  \w+: ?(.*)$", shown, re.MULTILINE) if arguments[:1] == ["ask"] else []
    monkeypatch.setattr(sys, "stdin", Typed("".join(f"{answer}\n" for answer in answers)))
    if program == "cd":
        monkeypatch.chdir(arguments[0])
    elif program == "cat":
        print(Path(arguments[0]).read_text(encoding="utf-8"))
    else:
        assert program == "emsco", f"who is {program}?"
        code = run(arguments)
        assert code == (1 if "error: " in shown else 0), capsys.readouterr().err
    output = capsys.readouterr()
    if shown.strip():
        assert_shows(shown, output.out + output.err)


def assert_shows(shown, printed):
    """Compare word by word, in order; a line of dots stands for any number of words, seconds for any time.

    Line breaks do not count, so that a page may be narrower than a terminal.
    """
    words = _words(printed)
    parts = [_words(part) for part in re.split(r"^\.\.\.$", shown, flags=re.MULTILINE)]
    first = 0
    for i, part in enumerate(parts):
        starts = range(first, len(words) - len(part) + 1)
        if i == 0:
            starts = starts[:1]
        if i == len(parts) - 1 and part:
            starts = [start for start in starts if start == len(words) - len(part)]
        found = [start for start in starts if all(map(_same, part, words[start:]))]
        if not found:
            assert " ".join(words[first:]) == " ".join(part)
            raise AssertionError(f"more is printed than is shown: {words[first:]}")
        first = found[0] + len(part)
    assert len(parts) > 1 or first == len(words)


def _words(text):
    """Words in order, without rules of tables."""
    text = re.sub(r"(?<=\w-)\n\s*(?=\w)", "", text)  # a terminal breaks lines at hyphens, too
    text = re.sub(r"[\d.]+(?= s\b)", "some", text)
    return re.sub("[─|]", " ", text).split()


def _same(shown, printed):
    """Equal but for what dots cut off, and last digits of numbers that are no counts: processors differ in these."""
    if shown.endswith("...") and printed.startswith(shown[:-3]):
        return True
    return NUMBER.sub("0", shown) == NUMBER.sub("0", printed) and all(
        map(_near, NUMBER.findall(shown), NUMBER.findall(printed))
    )


def _near(shown, printed):
    digits = re.search(r"\.(\d+)", shown)
    if digits is None:
        return shown == printed
    value, other = float(shown.replace(",", "")), float(printed.replace(",", ""))
    return abs(value - other) <= max(2e-3 * abs(value), 1.001 * 10.0 ** -len(digits[1]))


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("a b", "a  b\n"),
        ("a\nb c", "a b\nc"),
        ("a b\n...", "a b c d"),
        ("...\nc d", "a b c d"),
        ("a\n...\nc\n...\n", "a b c d"),
        ("label,age,...\nc", "label,age,sex,weight\nc"),
        ("proven in 1.9 s.", "proven in 12 s."),
        ("86.3 %", "86.4 %"),
        ("0.888,1,100", "0.8885484317423422,1,100"),
    ],
)
def test_what_is_printed_is_compared_word_by_word(shown, printed):
    assert_shows(shown, printed)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("a b", "b a"),
        ("a b", "a b c"),
        ("a b c", "a b"),
        ("a\n...\nc\nb\n...\n", "a b c d"),
        ("...\nc", "a b c d"),
        ("40 of 51", "41 of 51"),
        ("3,844,105 designs", "3,844,106 designs"),
        ("86.3 %", "86.6 %"),
        ("0.888,1", "0.891,1"),
    ],
)
def test_other_words_another_order_and_other_numbers_are_found_out(shown, printed):
    with pytest.raises(AssertionError):
        assert_shows(shown, printed)


def test_the_page_of_the_command_line_has_the_help_of_every_command():
    page = PAGES["docs/cli.md"]
    assert page == runpy.run_path(str(ROOT / "docs/cli_help.py"))["with_help"](page), "run python docs/cli_help.py"
    assert re.findall("^## (.*)", page, re.MULTILINE) == list(emsco.commands)
    assert "\b" not in page
    assert "\\b" not in page


def test_every_public_name_is_on_the_page_of_the_api():
    listed = set(re.findall(r"^   (\w+)$", PAGES["docs/api.md"], re.MULTILINE))
    errors = {"EmscoError", "EmscoWarning"}  # drawn as a tree
    assert listed | errors == {*package.__all__, *datasets.__all__, *metrics.__all__, *report.__all__}


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


@pytest.mark.parametrize(
    "example", [pytest.param(e, id=e.stem, marks=[pytest.mark.slow] * (e.stem in SLOW_EXAMPLES)) for e in EXAMPLES]
)
def test_an_example_draws_a_picture(example, tmp_path):
    picture = tmp_path / "picture.png"
    subprocess.run([sys.executable, str(example), str(picture)], check=True)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_every_example_is_in_the_gallery():
    for example in EXAMPLES:
        assert f"`examples/{example.name}`" in PAGES["docs/gallery.md"]
