from emsco import progress
from emsco.progress import PhaseLine


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
    line("searching", 0.5)
    line.close()
    assert capsys.readouterr().err.splitlines() == [
        "training: 0 %",
        "training: 25 %, about 33 s left",
        "training: 100 %",
        "searching: 50 %",
        "searching: 50 %",
    ]
