"""What makes a class a scikit-learn estimator, and how the command line does without scikit-learn.

To import scikit-learn takes longer than all else that ``cbrank train`` does with a small file. So
nothing here, nor in what rankers, scalers and encoders need to learn and to score, asks scikit-learn
about what is plainly in order: it is imported to judge what is not, and to word the refusal. Only its
base classes must be there before a class can be made of them. In the process of the command ``cbrank``
(see `cbrank.optional.do_without`), small classes with the same methods take their place.
"""

import inspect
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from cbrank.optional import is_wanted
from cbrank.parameters import Kind, Number, Other, is_plainly

__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "Estimator",
    "OneToOneFeatureMixin",
    "TransformerMixin",
    "check_is_fitted",
    "check_random_state",
]

_NUMBERS = {int: Integral, float: Real}


# In the place of scikit-learn's base classes ------------------------------------------------------


class _Estimator:
    """What is called of scikit-learn's BaseEstimator, by the package or by scikit-learn."""

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        _, *taken = inspect.signature(cls.__init__).parameters.values()
        return {parameter.name: parameter.default for parameter in taken}

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(cls._defaults())

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        return {name: getattr(self, name) for name in self._get_param_names()}

    def set_params(self, **parameters: Any) -> Self:
        for name, value in parameters.items():
            if name not in self._get_param_names():
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}.")
            setattr(self, name, value)
        return self

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self) -> str:
        usual, given = self._defaults(), self.get_params().items()
        changed = [f"{name}={value!r}" for name, value in given if value != usual[name]]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator  # noqa: PLC0415

        return BaseEstimator.__sklearn_tags__(self)


class _Classifier:
    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags  # noqa: PLC0415

        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        tags.target_tags.required = True
        return tags


class _Transformer:
    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import TransformerTags  # noqa: PLC0415

        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.transformer_tags = TransformerTags()
        return tags


class _OneToOne:
    pass


if TYPE_CHECKING or is_wanted("sklearn"):
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        OneToOneFeatureMixin,
        TransformerMixin,
    )
else:
    BaseEstimator, ClassifierMixin = _Estimator, _Classifier
    TransformerMixin, OneToOneFeatureMixin = _Transformer, _OneToOne


def constraints(estimator: Any) -> dict[str, list[Any]]:
    """Return what scikit-learn checks parameters by: what `KINDS` says that they may be."""
    return {name: _constraints(kinds) for name, kinds in estimator.KINDS.items()}


def validate(estimator: Any) -> None:
    """Refuse parameters that are not what `KINDS` says."""
    if all(is_plainly(kinds, getattr(estimator, name)) for name, kinds in estimator.KINDS.items()):
        return
    from sklearn.utils._param_validation import validate_parameter_constraints  # noqa: PLC0415

    validate_parameter_constraints(
        constraints(estimator), estimator.get_params(deep=False), type(estimator).__name__
    )


class Estimator(BaseEstimator):
    """An estimator that says what its parameters may be; the mixins stand before it."""

    KINDS: ClassVar[dict[str, tuple[Kind, ...]]]
    _parameter_constraints, _validate_params = property(constraints), validate


def _constraints(kinds: tuple[Kind, ...]) -> list[Any]:
    from sklearn.utils._param_validation import Interval, StrOptions  # noqa: PLC0415

    words = {kind for kind in kinds if isinstance(kind, str)}
    found: list[Any] = [StrOptions(words)] if words else []
    for kind in kinds:
        if isinstance(kind, Number):
            found.append(Interval(_NUMBERS[kind.type], kind.low, kind.high, closed=kind.closed))
        elif not isinstance(kind, str):
            found.append(kind.check if isinstance(kind, Other) else kind)
    return found


# Checks that scikit-learn is asked for only if something is wrong ---------------------------------


def check_is_fitted(estimator: Any) -> None:
    """Raise scikit-learn's NotFittedError if an estimator of this package has learned nothing."""
    if not estimator.__sklearn_is_fitted__():
        from sklearn.utils import validation  # noqa: PLC0415

        validation.check_is_fitted(estimator)


def check_random_state(seed: Any) -> np.random.RandomState:
    """Return the source of random numbers that a parameter `random_state` stands for."""
    if type(seed) is int and 0 <= seed < 2**32:
        return np.random.RandomState(seed)
    from sklearn import utils  # noqa: PLC0415

    source: np.random.RandomState = utils.check_random_state(seed)
    return source
