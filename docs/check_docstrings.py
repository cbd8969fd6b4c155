"""Check that every public name is in the API reference, documented as numpydoc asks, with an example."""

import inspect
import re
import sys
from pathlib import Path

from numpydoc.validate import validate

import cbrank
from cbrank import (
    dask,
    datasets,
    metrics,
    modelfile,
    onnx,
    paper,
    river,
    streams,
    training,
    uncertainty,
)
from cbrank.methods import ESTIMATORS
from cbrank.rankers.interface import SEAMS

# Extended summaries, See Also sections and examples of methods are written where they help.
OPTIONAL = {"ES01", "SA01", "EX01", "GL08"}

MODULES = (
    cbrank,
    paper,
    uncertainty,
    metrics,
    datasets,
    streams,
    training,
    onnx,
    river,
    dask,
    modelfile,
)
REFERENCE = Path(__file__).with_name("api.md")


def listed():
    """Yield the names that the API reference lists, each after the module that it says."""
    module = None
    for line in REFERENCE.read_text(encoding="utf-8").splitlines():
        if found := re.fullmatch(r"\.\. currentmodule:: (\S+)", line):
            module = found[1]
        elif found := re.fullmatch(r"   (\w+)", line):
            yield f"{module}.{found[1]}"


def unlisted():
    """Yield the public names that the API reference lacks."""
    known = {*listed(), *(f"cbrank.{name}" for name in ESTIMATORS)}  # docs/conf.py lists these
    for module in MODULES:
        for name in module.__all__:
            again = module is modelfile and name in cbrank.__all__
            if not inspect.ismodule(getattr(module, name)) and not again:
                full = f"{module.__name__}.{name}"
                if full not in known:
                    yield full


def public():
    for module in MODULES:
        for name in module.__all__:
            item = getattr(module, name)
            if inspect.ismodule(item):
                continue
            yield f"{module.__name__}.{name}"
            if inspect.isclass(item):
                for method, value in vars(item).items():
                    said = value.__doc__ or not hasattr(super(item, item), method)  # else inherited
                    offered = not method.startswith("_") and method not in SEAMS
                    if offered and inspect.isfunction(value) and said:
                        yield f"{module.__name__}.{name}.{method}"


def main():
    failures = [f"{name}: is not in {REFERENCE.name}" for name in unlisted()]
    for name in public():
        report = validate(name)
        optional = OPTIONAL - ({"EX01", "GL08"} if name.count(".") <= 2 else {"GL08"})
        if name.split(".")[-1].isupper():
            continue
        failures += [
            f"{name}: {code} {text}" for code, text in report["errors"] if code not in optional
        ]
    print(*failures, sep="\n", end="\n" if failures else "")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
