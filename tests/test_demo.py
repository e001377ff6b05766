import re
import subprocess
import sys

from emsco import demo


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
