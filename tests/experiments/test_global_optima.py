import csv

import numpy as np
from numpy.testing import assert_allclose
import pytest
from scipy import stats

from emsco.designs.partition import count_solutions
from emsco.experiments import global_optima
from emsco.experiments.__main__ import _parser, main
from emsco.experiments.global_optima import mean_and_margin, run_some, true_frontier

SMALL = ["global", "--data", "pima", "--stages", "2", "3", "--runs", "2", "--generations", "4", "--splits", "2"]


def read(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_it_writes_frontiers_curves_and_a_figure(tmp_path, capsys):
    assert main([*SMALL, "--search", "evolution", "best-first", "nsga2", "--out", str(tmp_path / "new")]) == 0
    out = capsys.readouterr().out
    assert "of splits" in out
    assert "best-first" in out
    frontiers = read(tmp_path / "new/frontiers.csv")
    assert [(row["max_stages"], row["split"]) for row in frontiers] == [("2", "0"), ("3", "0"), ("2", "1"), ("3", "1")]
    assert {int(row["n_designs"]) for row in frontiers} == {count_solutions(8, 2), count_solutions(8, 3)}
    assert [int(row["paper"]) for row in frontiers[:2]] == [18, 42]
    curves = read(tmp_path / "new/curves.csv")
    assert len(curves) == 2 * 3 * 5
    sizes = {row["max_stages"]: row["n_vectors"] for row in frontiers if row["split"] == "0"}
    for row in curves:
        assert row["true_vectors"] == sizes[row["max_stages"]]
        assert 0 <= float(row["vectors"]) <= int(row["true_vectors"])
        assert float(row["vectors"]) <= float(row["rows"])
    exhausted = [r for r in curves if r["search"] == "best-first" and r["max_stages"] == "2" and r["generation"] == "4"]
    assert float(exhausted[0]["vectors"]) == int(exhausted[0]["true_vectors"])  # 255 designs: all were looked at
    assert (tmp_path / "new/global.png").read_bytes().startswith(b"\x89PNG")


def test_a_search_holds_ever_more_of_the_frontier_whatever_the_number_of_processes():
    _, truth = true_frontier("heart", 3, 0)
    vectors, rows = run_some("heart", 3, "evolution", truth, split=0, generations=25, seeds=range(3))
    assert (np.diff(vectors, axis=1) >= 0).all()  # what is globally optimal is never lost
    assert (rows >= vectors).all()
    again, _ = run_some("heart", 3, "evolution", truth, split=0, generations=25, seeds=range(1, 3))
    assert (again == vectors[1:]).all()


def test_interrupted_it_keeps_what_is_done(tmp_path, monkeypatch, capsys):
    run = global_optima.draw_curves

    def interrupted(*args, **kwargs):
        curves = run(*args, **kwargs)
        yield next(curves)
        raise KeyboardInterrupt

    monkeypatch.setattr(global_optima, "draw_curves", interrupted)
    assert main([*SMALL, "--out", str(tmp_path)]) == 130
    assert "Interrupted; the finished part" in capsys.readouterr().out
    assert {row["max_stages"] for row in read(tmp_path / "curves.csv")} == {"2"}
    assert len(read(tmp_path / "frontiers.csv")) == 4


def test_a_folder_that_cannot_be_written_is_explained_before_any_work(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main([*SMALL, "--out", str(tmp_path / "file")]) == 1
    assert "cannot write to the folder" in capsys.readouterr().err


def test_it_is_about_the_data_sets_whose_frontiers_the_paper_proved():
    assert _parser().parse_args(["global"]).data == ["heart", "credit", "pima"]


@pytest.mark.parametrize("wrong", [["--runs", "0"], ["--data", "iris"], ["--search", "magic"], ["--stages", "two"]])
def test_wrong_arguments_are_explained(wrong, capsys):
    with pytest.raises(SystemExit) as end:
        main(["global", *wrong])
    assert end.value.code == 2
    assert wrong[0] in capsys.readouterr().err


def test_the_interval_is_students():
    counts = np.array([[3, 4], [5, 4], [7, 4]])
    mean, margin = mean_and_margin(counts)
    low, high = stats.t.interval(0.95, 2, loc=5, scale=stats.sem([3, 5, 7]))
    assert_allclose([mean[0] - margin[0], mean[0] + margin[0]], [low, high])
    assert margin[1] == 0
    assert mean_and_margin(counts[:1])[1].tolist() == [0, 0]
