"""Check that every public name is documented as numpydoc asks and has an example that runs."""

import inspect
import sys

from numpydoc.validate import validate

import cbrank
from cbrank import datasets, metrics, onnx, river, streams, training

# Extended summaries, See Also sections and examples of methods are written where they help.
OPTIONAL = {"ES01", "SA01", "EX01", "GL08"}


def public():
    for module in (cbrank, metrics, datasets, streams, training, onnx, river):
        for name in module.__all__:
            item = getattr(module, name)
            if inspect.ismodule(item):
                continue
            yield f"{module.__name__}.{name}"
            if inspect.isclass(item):
                for method, value in vars(item).items():
                    if not method.startswith("_") and inspect.isfunction(value):
                        yield f"{module.__name__}.{name}.{method}"


def main():
    failures = []
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
