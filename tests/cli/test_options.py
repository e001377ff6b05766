from functools import partial
import pickle

import click
import pytest

import emsco
from emsco import EMSCOClassifier, EmscoError, Evolution, Guarantee, Prices
from emsco.cli.app import emsco as emsco_command
from emsco.cli.options import OPTIONS, shares_of
from emsco.cluster.connecting import connected
from emsco.exceptions import InvalidParameterError, NoSuchPointError
from tests.classifiers import fixed
from tests.cli.calls import FIT, HEART, call

PRICES = dict.fromkeys(HEART.data, 1)


def test_no_command_writes_over_what_it_reads(folder, model, tmp_path, capsys):
    table = tmp_path / "own.csv"
    table.write_bytes((folder / "heart.csv").read_bytes())
    link = tmp_path / "link.csv"
    link.symlink_to(table)
    for arguments in (
        ["fit", table, *FIT, "-o", table],
        ["fit", table, *FIT, "-o", link],
        ["predict", model, table, "-o", table],
        ["predict", model, table, "-o", model],
        ["report", model, "-o", model],
        ["report", model, "--data", table, "-o", table],
    ):
        before = table.read_bytes(), model.read_bytes()
        assert "this file is read by the command" in call(capsys, *arguments, expect=2).err
        assert (table.read_bytes(), model.read_bytes()) == before


def parameters_of_fit():
    """Values that the library refuses, by the parameter that they are given as."""
    wrong = {
        "C": -1, "branch": "yes", "calibration": "platt", "encoding": "ranks", "estimator": "svm",
        "final_estimator": "svm",
        "max_stages": 0, "n_jobs": 0, "objectives": ("cost",), "preset": "worst", "products": 3, "random_state": "one",
        "refit": "yes", "removal": "yes", "search": "deep", "threshold": 80, "validation": 1.5, "costs": [1],
        "time_limit": -1,
    }  # fmt: skip
    choices = {"max_cost": -1, "min_coverage": 3, "min_accuracy": 3, "best": "speed", "min_recall": 3,
               "min_precision": {"1": 3}}  # fmt: skip
    simple = {"best": "fitness", "one_standard_error": True}
    return {
        **{name: {name: value} for name, value in wrong.items()},
        **{name: {"choose": {name: value}} for name, value in choices.items()},
        "one_standard_error": {"choose": simple},
        "errors": {"errors": [[0, -1], [1, 0]], "threshold": None},
        "overhead": {"costs": Prices(price=PRICES, overhead=-1)},
        "parallel": {"costs": Prices(price=PRICES, parallel=3)},
    }


@pytest.mark.parametrize(("parameter", "given"), parameters_of_fit().items())
def test_an_error_of_fit_knows_its_parameter_and_names_the_option(parameter, given):
    with pytest.raises(EmscoError) as caught:
        fixed(**given).fit(HEART.data, HEART.target)
    assert caught.value.parameter == parameter
    assert str(caught.value).startswith(f"{parameter} ")
    assert caught.value.with_names(OPTIONS) == f"{OPTIONS[parameter]} {str(caught.value).removeprefix(parameter)[1:]}"


def elsewhere(folder):
    """The parameters that are not those of a classifier."""
    return {
        **{
            name: partial(Evolution, **{name: value})
            for name, value in {
                "population_size": 1,
                "max_generations": -1,
                "patience": 0,
                "mutation_rate": 2,
                "recombination_rate": 2,
                "elite_fraction": 2,
                "stage_bias": 1,
                "init_rate": 2,
                "unique": "cells",
            }.items()
        },
        "accuracy": lambda: Guarantee(accuracy=2),
        "cluster": lambda: connected("nowhere").__enter__(),
        "confidence": lambda: Guarantee(confidence=2),
        "per_class": lambda: Guarantee(per_class="yes"),
        "point": lambda: emsco.load(folder / "model.emsco").use(999),
        "y": lambda: EMSCOClassifier().fit(HEART.data, HEART.target * 0),
        "X_cal": lambda: EMSCOClassifier(threshold=0.8).fit(
            HEART.data, HEART.target, X_cal=HEART.data, y_cal=HEART.target
        ),
        "y_cal": lambda: EMSCOClassifier(threshold=Guarantee()).fit(
            HEART.data, HEART.target, X_cal=HEART.data, y_cal=HEART.target + 7
        ),
    }


def test_the_other_errors_know_their_parameter_too(folder):
    for parameter, wrong in elsewhere(folder).items():
        with pytest.raises(EmscoError) as caught:
            wrong()
        assert caught.value.parameter == parameter
        assert caught.value.with_names(OPTIONS).startswith(f"{OPTIONS[parameter]} ")


def test_every_parameter_in_the_table_has_an_option_and_an_error(folder):
    commands = [emsco_command.commands[name] for name in ("fit", "use")]
    known = {option for command in commands for parameter in command.params for option in parameter.opts}
    assert {option.lower() if option == "POINT" else option for option in OPTIONS.values()} <= known
    assert OPTIONS.keys() == parameters_of_fit().keys() | elsewhere(folder).keys()


def test_every_parameter_of_the_classifier_that_an_option_sets_is_in_the_table():
    not_set = {"choose", "cache_bytes", "verbose", "client"}  # choose is set by several options, a client by --cluster
    assert {*EMSCOClassifier().get_params()} - not_set <= OPTIONS.keys()


def test_a_copy_of_an_error_says_the_same():
    for error in (InvalidParameterError("must be 1; got 2.", parameter="C"), NoSuchPointError({"max_cost": 1}, {})):
        copy = pickle.loads(pickle.dumps(error))
        assert str(copy) == str(error)
        assert copy.with_names(OPTIONS) == error.with_names(OPTIONS)


def test_shares_are_for_all_classes_or_some():
    assert shares_of("--min-recall", ()) is None
    assert shares_of("--min-recall", ("0.5",)) == 0.5
    assert shares_of("--min-recall", ("a=b=0.5", " sick = 1")) == {"a=b": 0.5, "sick": 1.0}
    for wrong in (("high",), ("sick=",), ("0.5", "0.6"), ("0.5", "sick=0.6"), ("sick=0.5", "sick=0.6")):
        with pytest.raises(click.UsageError, match="--min-recall"):
            shares_of("--min-recall", wrong)
