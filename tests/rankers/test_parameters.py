"""Tables of parameters against the constructors that they stand for."""

import inspect
import math
import typing

import pytest
from numpydoc.docscrape import ClassDoc
from sklearn.utils._param_validation import make_constraint

from cbrank import parameters, rankers
from cbrank.parameters import Number, Parameter, is_plainly

RANKERS = [getattr(rankers, name) for name in rankers.__all__]


@pytest.mark.parametrize("ranker", RANKERS)
def test_constructors_take_what_the_table_says(ranker):
    taken = inspect.signature(ranker).parameters
    assert {name: given.default for name, given in taken.items()} == {
        parameter.name: parameter.default for parameter in ranker.PARAMETERS
    }
    kinds = [given.kind for given in taken.values()]
    assert kinds[0] is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert set(kinds[1:]) == {inspect.Parameter.KEYWORD_ONLY}
    for parameter in ranker.PARAMETERS:
        default = getattr(ranker(), parameter.name)
        assert default is parameter.default or default == parameter.default


@pytest.mark.parametrize("ranker", RANKERS)
def test_types_of_constructors_are_those_of_the_table(ranker):
    hints = typing.get_type_hints(ranker) | typing.get_type_hints(ranker.__init__)
    for parameter in ranker.PARAMETERS:
        if parameter.name not in hints:
            continue
        told = typing.get_args(hints[parameter.name]) or (hints[parameter.name],)
        literals = hints[parameter.name], *told
        words = {word for hint in literals for word in typing.get_args(hint) if type(word) is str}
        assert words == {kind for kind in parameter.kinds if isinstance(kind, str)}
        assert {kind.type for kind in parameter.kinds if isinstance(kind, Number)} <= set(told)


@pytest.mark.parametrize("ranker", RANKERS)
def test_docstrings_have_the_table(ranker):
    described = ClassDoc(ranker)["Parameters"]
    assert [(name, kind, " ".join(text)) for name, kind, text in described] == [
        (parameter.name, parameter.type_text, parameter.text) for parameter in ranker.PARAMETERS
    ]


@pytest.mark.parametrize("ranker", RANKERS)
def test_what_is_not_in_the_table_is_refused(ranker):
    for parameter in ranker.PARAMETERS:
        with pytest.raises(ValueError, match=f"The {parameter.name!r} parameter of"):
            ranker(**{parameter.name: object()}).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        ranker(colour="red")


@pytest.mark.parametrize("ranker", RANKERS)
def test_what_is_plainly_in_the_table_scikit_learn_takes_too(ranker):
    numbers = [-1, 0, 1, 2, 50, 2**32, -0.5, 0.0, 0.5, 0.7, 1.0, 1.5, math.inf, -math.inf, math.nan]
    values = [
        *numbers,
        None,
        True,
        False,
        {},
        {0: 1.0},
        [],
        "auto",
        "fifo",
        "full",
        "balanced",
        "no",
    ]
    accepted = 0
    for name, checks in ranker()._parameter_constraints.items():
        for value in values:
            if is_plainly(ranker.KINDS[name], value):
                assert any(make_constraint(check).is_satisfied_by(value) for check in checks)
                accepted += 1
    assert accepted > 10


def test_defaults_are_written_as_people_write_them():
    texts = {
        Parameter("p", (Number(float),), value, "").type_text
        for value in (2**-9, 0.7, 1e-4, 0.00025)
    }
    assert texts == {
        "float, default=1/512",
        "float, default=0.7",
        "float, default=0.0001",
        "float, default=0.00025",
    }


def test_parameters_of_a_class_without_attributes_come_last():
    table = (Parameter("p", (Number(float),), 0.5, "A share."),)
    assert parameters.documented("Rank.", table) == (
        "Rank.\n\nParameters\n----------\np : float, default=0.5\n    A share.\n"
    )


def test_a_docstring_that_was_taken_away_stays_away():
    assert parameters.documented(None, parameters.CBR) is None
