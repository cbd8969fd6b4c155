"""Building ONNX graphs node by node."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cbrank.texts import coded
from cbrank.version import __version__

# Of 2022: what runs ONNX at all knows these.
_OPSETS = {"": 17, "ai.onnx.ml": 3}
_IR_VERSION = 8
_OF_ML = {"LabelEncoder", "TreeEnsembleRegressor"}


class Port(NamedTuple):
    """An input or output of a graph, with one value for each row."""

    name: str
    type: str  # "double", "int64" or "string"
    meaning: str


class Graph:
    """A graph under construction: tensors are known by name, arrays become constants.

    Parameters
    ----------
    taken : collection of str
        The names of inputs and outputs.
    """

    def __init__(self, taken: Collection[str]) -> None:
        from onnx import TensorProto, helper  # noqa: PLC0415

        self._tensor, self._helper = TensorProto, helper
        self._taken = {*taken}
        self._nodes = list[Any]()
        self._constants = list[Any]()

    def add(self, operator: str, *inputs: Any, output: str = "", **attributes: Any) -> str:
        """Add a node; return the name of its output."""
        names = [value if isinstance(value, str) else self._constant(value) for value in inputs]
        output = output or self._new_name(operator)
        domain = "ai.onnx.ml" if operator in _OF_ML else ""
        self._nodes.append(
            self._helper.make_node(operator, names, [output], output, domain=domain, **attributes)
        )
        return output

    def _constant(self, value: Any) -> str:
        array, name = np.asarray(value), self._new_name("constant")
        tensor = self._tensor(name=name, dims=array.shape)
        if array.dtype.kind == "U":
            tensor.data_type = self._tensor.STRING
            tensor.string_data.extend(map(coded, array.ravel().tolist()))
        else:
            tensor.data_type = self._helper.np_dtype_to_tensor_dtype(array.dtype)
            tensor.raw_data = array.astype(array.dtype.newbyteorder("<")).tobytes()
        self._constants.append(tensor)
        return name

    def _new_name(self, begin: str) -> str:
        name = f"{begin}_{len(self._taken)}"
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def cast(self, tensor: str, kind: str) -> str:
        """Return a tensor as "double", "float" or "int64"."""
        return self.add("Cast", tensor, to=self._type(kind))

    def code(self, words: str, codes: Mapping[str, int], other: int) -> str:
        """Return the code of each word, or that of all others."""
        return self.add(
            "LabelEncoder",
            words,
            keys_strings=[*map(coded, codes)],
            values_int64s=[*codes.values()],
            default_int64=other,
        )

    def side_by_side(self, columns: Sequence[str]) -> str:
        """Return the columns of a matrix as the matrix."""
        if len(columns) == 1:
            return columns[0]
        return self.add("Concat", *columns, axis=1)

    def model(
        self,
        inputs: Sequence[Port],
        outputs: Sequence[Port],
        description: str,
        facts: Mapping[str, str],
    ) -> Any:
        """Return the model, checked, with facts as its metadata."""
        from onnx import checker  # noqa: PLC0415

        helper = self._helper
        ports = [
            [
                helper.make_tensor_value_info(name, self._type(kind), ["rows"], doc_string=meaning)
                for name, kind, meaning in some
            ]
            for some in (inputs, outputs)
        ]
        model = helper.make_model(
            helper.make_graph(self._nodes, "scorer", *ports, self._constants),
            opset_imports=[helper.make_opsetid(*opset) for opset in _OPSETS.items()],
            ir_version=_IR_VERSION,
            producer_name="cbrank",
            producer_version=__version__,
            doc_string=description,
        )
        checker.check_model(model)
        helper.set_model_props(model, facts)
        return model

    def _type(self, name: str) -> int:
        return int(getattr(self._tensor, name.upper()))
