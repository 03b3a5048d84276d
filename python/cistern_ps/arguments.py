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
