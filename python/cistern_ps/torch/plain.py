"""States of optimizers, schedulers and loaders as JSON: no pickle, so reading a commit runs no code."""

from __future__ import annotations

import base64
from typing import Any, List

import numpy as np
import torch

from ..errors import UsageError

_MOST_BYTES = 1 << 20  # of one tensor


def pack(value: Any, name: str = "state") -> Any:
    """`value` as JSON. Numbers, strings, lists, tuples, dicts, tensors and numpy arrays keep their types and bits."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, list):
        return [pack(v, f"{name}[{i}]") for i, v in enumerate(value)]
    if isinstance(value, tuple):
        return {"tuple": pack(list(value), name)}
    if isinstance(value, dict):
        return {"dict": [[pack(k, name), pack(v, f"{name}[{k!r}]")] for k, v in value.items()]}
    if isinstance(value, torch.Tensor):
        return {"tensor": _array(value.detach().cpu().contiguous(), name), "dtype": str(value.dtype)[6:],
                "shape": list(value.shape)}
    if isinstance(value, np.ndarray):
        return {"array": _bytes(value.tobytes(), name), "dtype": str(value.dtype), "shape": list(value.shape)}
    if isinstance(value, np.generic):
        return value.item()
    raise UsageError(f"{name} is a {type(value).__name__}, which a commit cannot keep",
                     "keep numbers, strings, tensors, and lists and dicts of them")


def unpack(value: Any) -> Any:
    """The inverse of `pack`."""
    if isinstance(value, list):
        return [unpack(v) for v in value]
    if not isinstance(value, dict):
        return value
    if "tuple" in value:
        return tuple(unpack(value["tuple"]))
    if "dict" in value:
        return {unpack(k): unpack(v) for k, v in value["dict"]}
    data = bytearray(base64.b64decode(value["tensor"] if "tensor" in value else value["array"]))
    if "array" in value:
        return np.frombuffer(data, np.dtype(value["dtype"])).reshape(value["shape"]).copy()
    if not data:
        return torch.empty(value["shape"], dtype=getattr(torch, value["dtype"]))
    return torch.frombuffer(data, dtype=getattr(torch, value["dtype"])).reshape(value["shape"]).clone()


def _array(tensor: torch.Tensor, name: str) -> str:
    return _bytes(bytes(tensor.reshape(-1).view(torch.uint8).numpy()) if tensor.numel() else b"", name)


def _bytes(data: bytes, name: str) -> str:
    if len(data) > _MOST_BYTES:
        raise UsageError(f"{name} has {len(data)} bytes, which is too much beside a commit's rows",
                         "keep large state in parameters or buffers of the model")
    return base64.b64encode(data).decode()
