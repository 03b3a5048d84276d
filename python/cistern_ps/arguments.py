"""Checks of arguments: a wrong type is a TypeError that names the argument, a wrong value a UsageError."""

from __future__ import annotations

import math
import operator
from typing import Any, Optional, Type, TypeVar

from .errors import UsageError

T = TypeVar("T")


def integer(name: str, value: Any, least: int = 0, most: int = 2**63 - 1) -> int:
    """`value` if it is an integer in [least, most]; numpy's integers are, bool is not."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}: expected an integer; got {type(value).__name__}")
    number = operator.index(value)
    if not least <= number <= most:
        raise UsageError(f"{name}={number}: expected " + (f"at least {least}" if number < least else f"at most {most}"))
    return number


def number(name: str, value: Any, least: float = -math.inf) -> Any:
    """`value` if it is a finite number that is at least `least`."""
    if isinstance(value, bool) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise TypeError(f"{name}: expected a number; got {type(value).__name__}")
    if not (math.isfinite(value) and value >= least):
        raise UsageError(f"{name}={value!r}: expected a finite number" + (f", at least {least}" if least > -math.inf else ""))
    return value


def instance(name: str, value: Any, kind: Type[T], example: str) -> T:
    """`value` if it is an object of `kind`."""
    if isinstance(value, kind):
        return value
    got = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
    raise TypeError(f"{name}: expected {example}; got {got}")


def optional(name: str, value: Any, kind: Type[T], example: str) -> Optional[T]:
    """The same; None is allowed."""
    return None if value is None else instance(name, value, kind, example)


def array_fix(value: Any, element: str) -> str:
    """What makes of `value` an array that the bindings read, of elements `element` (int64, int32 or float32)."""
    library = type(value).__module__.split(".")[0]
    if library == "torch":
        return _tensor_fix(value, element)
    if library == "numpy" and hasattr(value, "mask"):
        return "use .filled(...) or .compressed(), which say what becomes of masked elements"
    if library == "numpy" and hasattr(value, "dtype"):
        return _numpy_fix(value, element)
    if hasattr(value, "columns") and hasattr(value, "to_numpy"):
        return 'name one column: frame["item"].to_numpy()'
    if hasattr(value, "to_numpy"):  # pandas, polars, pyarrow
        if _has_missing(value):
            return "a value is missing: drop or fill it first"
        return "; ".join(filter(None, ["use .to_numpy()", array_fix(value.to_numpy(), element)]))
    if isinstance(value, str) and element == "int64":
        return _TEXT_KEYS
    if hasattr(value, "__index__") and element == "int64":
        return f"use numpy.array([{operator.index(value)}])"
    if isinstance(value, (list, tuple, range)):
        return _list_fix(value, element)
    if hasattr(value, "__array__"):
        return f"use numpy.asarray(..., numpy.{element})"
    if hasattr(value, "__iter__"):
        return f"use numpy.array(list(...), numpy.{element})"
    return ""


def _has_missing(column: Any) -> bool:
    """Of pandas, polars and pyarrow."""
    if hasattr(column, "isna"):
        return bool(column.isna().any())
    count = getattr(column, "null_count", 0)
    return bool(count() if callable(count) else count)


_FLOAT_KEYS = ("floats have lost the last digits of ids above 2**53: read ids as integers (pandas makes floats of a column "
               "with missing values, but for dtype=\"Int64\"); use .astype(numpy.int64) if all are below")
_TEXT_KEYS = "keys are integers; number or hash the texts first, as cs.data.convert(..., keys=\"hash\") does"


def _tensor_fix(tensor: Any, element: str) -> str:
    if str(tensor.dtype) not in (f"torch.{element}", f"torch.u{element}"):
        if element == "int64" and tensor.dtype.is_floating_point:
            return _FLOAT_KEYS
        return {"int64": "use .long()", "int32": "use .int()", "float32": "use .float()"}[element]
    if tensor.requires_grad:
        return "use .detach() on a tensor that requires grad"
    if tensor.device.type != "cpu":
        return "use .cpu()"
    if str(tensor.layout) != "torch.strided":
        return "use .to_dense()"
    if element != "float32" and tensor.dim() != 1:
        return "use .reshape(-1)"
    return "" if tensor.is_contiguous() else "use .contiguous()"


def _numpy_fix(array: Any, element: str) -> str:
    kind = array.dtype.kind
    if not array.dtype.isnative:
        return f"its byte order is not this machine's; use .astype(numpy.{element})"
    if kind == "O":
        return _list_fix(array.reshape(-1).tolist(), element)
    if kind in "US" and element == "int64":
        return _TEXT_KEYS
    if kind == "f" and element == "int64":
        return _FLOAT_KEYS
    if kind in "mM" and element == "int64":
        return "use .view(numpy.int64), which counts from 1970 in the array's unit"
    if kind in "biuf" and array.dtype.name not in (element, "u" + element):
        return f"use .astype(numpy.{element})"
    if element != "float32" and kind in "iu" and array.ndim != 1:
        return "use .reshape(-1)"
    return "" if array.flags["C_CONTIGUOUS"] else "use numpy.ascontiguousarray"


def _list_fix(values: Any, element: str) -> str:
    if element == "int64" and any(isinstance(v, (str, bytes)) for v in values):
        return _TEXT_KEYS
    if element == "int64" and any(isinstance(v, float) and v == v for v in values):
        return _FLOAT_KEYS
    if any(not hasattr(v, "__float__") and not hasattr(v, "__len__") or v is None for v in values):
        return "a value is missing: drop or fill it first"
    return f"use numpy.array(..., numpy.{element})"
