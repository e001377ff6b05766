"""What the tests of the commands share: data, options, and one way to call."""

from emsco.cli.app import run
from emsco.datasets import load_heart_failure

HEART = load_heart_failure()
TARGET = "DEATH_EVENT"
FIT = ["--target", TARGET, "--threshold", "0.8", "--max-stages", "3", "--final", "search"]
FEW = ["--max-stages", "2", *[x for c in list(HEART.data)[:7] for x in ("--drop", c)]]
SMALL = [*FEW, "--final", "search"]


def call(capsys, *arguments, expect=0):
    capsys.readouterr()
    code = run([str(a) for a in arguments])
    printed = capsys.readouterr()
    assert code == expect, printed.err
    return printed
