"""The registry of rankers and methods: complete, and nothing in it twice."""

import importlib
import subprocess
import sys

import cbrank
from cbrank import methods, rankers
from cbrank.methods import ESTIMATORS, METHODS


def test_every_ranker_is_registered_with_its_module():
    assert sorted(ESTIMATORS) == sorted(rankers.__all__)
    for name, estimator in ESTIMATORS.items():
        module = importlib.import_module(f"cbrank.rankers.{estimator.module}")
        assert getattr(module, name) is getattr(cbrank, name)


def test_every_variant_and_method_makes_its_ranker():
    for estimator in ESTIMATORS.values():
        for variant, parameters in estimator.variants.items():
            ranker = estimator.new(variant)
            assert type(ranker).__name__ == estimator.name
            assert parameters.items() <= ranker.get_params().items()
    for method in METHODS.values():
        assert getattr(method.new(0.5, seed=0), method.tuned) == 0.5


def test_methods_look_different():
    assert len({method.look.colour for method in METHODS.values()}) == len(METHODS)
    for kind in ("benchmark", "high-dimensional"):
        drawn = [m.look for m in METHODS.values() if kind in m.kinds]
        assert len({look.marker for look in drawn}) == len(drawn)


def test_names_are_in_the_groups_they_say():
    assert methods.names("paper", "ceiling", "rival") == list(METHODS)
    dense = methods.names("rival", kind="benchmark")
    assert "SCW" in dense
    assert "SCW-diag" not in dense


def test_the_registry_is_light():
    code = (
        "import cbrank.methods, sys; print(sorted({'numpy', 'sklearn', 'click'} & {*sys.modules}))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"
