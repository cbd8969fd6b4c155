"""The options that follow from a table of `cbrank.parameters`, as a table of the documentation."""

from sphinx.util.docutils import SphinxDirective

from cbrank import parameters
from cbrank.parameters import FLAG, Number, Other


class ParameterTable(SphinxDirective):
    """Write a table, named as in `cbrank.parameters`, in Markdown."""

    required_arguments = 1

    def run(self):
        lines = ["| option | values | default | meaning |", "|---|---|---|---|"]
        for parameter in getattr(parameters, self.arguments[0]):
            if parameter.is_option:
                lines.append(f"| {' | '.join(_cells(parameter))} |")
        return self.parse_text_to_nodes("\n".join(lines))


def _cells(parameter):
    name = parameter.name.replace("_", "-")
    if FLAG in parameter.kinds:
        default = name if parameter.default else f"no-{name}"
        return f"`--{name}`, `--no-{name}`", "", f"`--{default}`", parameter.help
    values = ", ".join(filter(None, map(_value, parameter.kinds)))
    default = "none" if parameter.default is None else f"`{parameter.default}`"
    return f"`--{name}`", values, default, parameter.help


def _value(kind):
    match kind:
        case Number():
            less = "≤" if kind.closed in ("left", "both") else "<"
            low = "" if kind.low is None else f"{kind.low:g} {less} "
            less = "≤" if kind.closed in ("right", "both") else "<"
            high = "" if kind.high is None else f" {less} {kind.high:g}"
            return f"{low}{'integer' if kind.type is int else 'number'}{high}"
        case Other():
            return "number" if kind.check is dict else kind.words
        case _:
            return kind and f"`{kind}`"


def setup(app):
    app.add_directive("parameters", ParameterTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
