"""The code that README and examples show runs."""

from pathlib import Path
import re
import subprocess
import sys

ROOT = Path(__file__).parents[1]


def test_the_readmes_python_runs_from_top_to_bottom(capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    names = {}
    for block in blocks:
        exec(block, names)
    assert "coverage" in capsys.readouterr().out
    assert "blood panel" in names["clf"].front_.feature_names


def test_the_python_of_the_exact_page_runs(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/exact.md").read_text(encoding="utf-8"), re.DOTALL)
    exec(block, {})
    assert "proven=True" in capsys.readouterr().out


def test_links_of_the_docs_lead_somewhere():
    for page in [ROOT / "README.md", *ROOT.glob("docs/*.md")]:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_frontier_example_draws_a_picture(tmp_path):
    picture = tmp_path / "frontier.png"
    subprocess.run([sys.executable, str(ROOT / "examples/plot_frontier.py"), str(picture)], check=True)
    assert picture.read_bytes().startswith(b"\x89PNG")
