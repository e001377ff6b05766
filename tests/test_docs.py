"""The code that README and examples show runs."""

import json
from pathlib import Path
import re
import subprocess
import sys

import matplotlib
import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[1]


def test_the_readmes_python_runs_from_top_to_bottom(capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 3
    names = {}
    for block in blocks:
        exec(block, names)
    printed = capsys.readouterr().out
    assert "coverage" in printed
    assert re.search(r"^(Accept\(label|Reject\(confidence)=", printed, re.MULTILINE)
    assert "blood panel" in names["clf"].front_.feature_names


def test_the_python_of_the_exact_page_runs(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/exact.md").read_text(encoding="utf-8"), re.DOTALL)
    exec(block, {})
    assert "proven=True" in capsys.readouterr().out


def test_the_python_of_the_acquisition_page_runs_and_prints_what_it_shows(capsys):
    page = (ROOT / "docs/acquisition.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(python|text|json)\n(.*?)```", page, re.DOTALL)
    names = {}
    for language, block in blocks:
        if language == "python":
            exec(block, names)
            printed = capsys.readouterr().out
        elif language == "text":
            assert printed == block
        else:
            state = json.loads(block)
            assert state.keys() == names["session"].state.keys()
            assert {**state, "classifier": ""} == {**json.loads(names["row"]), "classifier": ""}
    assert [language for language, _ in blocks].count("text") >= 3


def test_the_python_of_the_pages_on_files_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for page, shows in (("model-file", "ward 7"), ("onnx", "answer")):
        (block,) = re.findall(r"```python\n(.*?)```", (ROOT / f"docs/{page}.md").read_text(encoding="utf-8"), re.DOTALL)
        exec(block, {})
        assert shows in capsys.readouterr().out


def test_the_python_of_the_report_page_runs(tmp_path, monkeypatch):
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/report.md").read_text(encoding="utf-8"), re.DOTALL)
    exec(block, {})
    plt.close("all")
    assert {path.name for path in tmp_path.iterdir()} == {
        "report.html", "front.png", "stages.png", "threshold.png", "calibration.png",
    }  # fmt: skip


def test_links_of_the_docs_lead_somewhere():
    for page in [ROOT / "README.md", *ROOT.glob("docs/*.md")]:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_frontier_example_draws_a_picture(tmp_path):
    picture = tmp_path / "frontier.png"
    subprocess.run([sys.executable, str(ROOT / "examples/plot_frontier.py"), str(picture)], check=True)
    assert picture.read_bytes().startswith(b"\x89PNG")
