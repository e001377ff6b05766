from emsco.fitting import progress
from emsco.fitting.progress import PhaseLine


def test_a_phase_says_how_far_it_is_and_about_how_long_it_still_takes(monkeypatch, capsys):
    now = 100.0
    monkeypatch.setattr(progress, "monotonic", lambda: now)
    line = PhaseLine()
    line("training", 0.0)
    now = 111.0
    line("training", 0.25)
    now = 122.0
    line("training", 1.0)
    now = 133.0
    line("searching", 0.5, "7 found")
    line.close()
    assert capsys.readouterr().err.splitlines() == [
        f"training {'░' * 20} 0 %",
        f"training {'█' * 5}{'░' * 15} 25 %, 33 s left",
        f"training {'█' * 20} 100 %",
        f"searching {'█' * 10}{'░' * 10} 50 %, 7 found",
        f"searching {'█' * 10}{'░' * 10} 50 %, 7 found",
    ]
