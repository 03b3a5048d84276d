"""Dense weights and optimizer state of a PyTorch model as one dense table and a little JSON.

The table has a row for each element of the parameters and float buffers, in the order of `named_parameters` and
`named_buffers`; its columns are the weight and every state of the optimizer that has the shape of the parameter
(exp_avg, ...). What has another shape (Adam's step) is in the JSON.
"""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import numpy as np
import numpy.typing as npt
import torch

from ..errors import UsageError
from .embedding import embeddings_of
from .plain import pack, unpack


def _state_columns(optimizer: torch.optim.Optimizer) -> List[str]:
    """The states of the optimizer that have the shape of their parameter, found by one step of a small one."""
    probe = torch.nn.Parameter(torch.zeros(3, 5))
    columns: List[str] = []
    for group in optimizer.param_groups:
        options = {k: v for k, v in group.items() if k != "params"}
        copy = type(optimizer)([dict(options, params=[probe])], **_arguments(optimizer))
        probe.grad = torch.ones_like(probe)
        copy.step()
        pack({k: v for k, v in copy.state[probe].items() if k not in columns}, f"the state of {type(optimizer).__name__}")
        columns += [k for k, v in copy.state[probe].items()
                    if isinstance(v, torch.Tensor) and v.shape == probe.shape and k not in columns]
    return columns


def _arguments(optimizer: torch.optim.Optimizer) -> Dict[str, Any]:
    """The arguments without a default of an optimizer's constructor, such as SGD's lr of older versions."""
    import inspect

    parameters = inspect.signature(type(optimizer)).parameters
    return {k: v for k, v in optimizer.defaults.items() if k in parameters}


class DenseState:
    """Moves a model and its optimizer to and from a dense table's values."""

    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer):
        self.model = model
        self.optimizer = optimizer
        stand_ins = {id(m.stand_in) for m in embeddings_of(model)}
        self.parameters: List[Tuple[str, torch.Tensor]] = [(n, p) for n, p in model.named_parameters() if id(p) not in stand_ins]
        self.buffers = [(n, b) for n, b in model.named_buffers() if b.is_floating_point()]
        self.other_buffers = [(n, b) for n, b in model.named_buffers() if not b.is_floating_point()]
        for name, tensor in self.parameters + self.buffers:
            if torch.nn.parameter.is_lazy(tensor):
                raise UsageError(f"{name} has no shape yet", "run a forward pass before the Session is made")
            if tensor.dtype not in (torch.float32, torch.float16, torch.bfloat16):
                raise UsageError(f"{name} has the type {tensor.dtype}: a commit keeps float32, float16 and bfloat16")
        self.columns = ["w", *_state_columns(optimizer)]
        self.rows = max(1, sum(t.numel() for _, t in self.parameters + self.buffers))

    def shapes(self) -> Dict[str, List[int]]:
        """What must agree with a commit."""
        return {name: list(tensor.shape) for name, tensor in self.parameters + self.buffers}

    def values(self) -> "npt.NDArray[Any]":
        """float32 [rows, columns]."""
        values = np.zeros((self.rows, len(self.columns)), np.float32)
        first = 0
        for name, tensor in self.parameters + self.buffers:
            last = first + tensor.numel()
            state = self.optimizer.state.get(tensor, {})
            for column, key in enumerate(self.columns):
                part = tensor if key == "w" else state.get(key)
                if part is not None:
                    values[first:last, column] = part.detach().reshape(-1).float().cpu().numpy()
            first = last
        return values

    def rest(self) -> Dict[str, Any]:
        """What is not in the table."""
        kept: Dict[str, Any] = {}
        for name, tensor in self.parameters:
            state = self.optimizer.state.get(tensor)
            if state is not None:
                kept[name] = {k: (None if k in self.columns and v is not None else v) for k, v in state.items()}
        groups = [{k: v for k, v in g.items() if k != "params"} for g in self.optimizer.param_groups]
        return {
            "shapes": self.shapes(),
            "columns": self.columns,
            "state": pack(kept),
            "groups": pack(groups),
            "buffers": pack({n: b for n, b in self.other_buffers}),
        }

    def load(self, values: "npt.NDArray[Any]", rest: Dict[str, Any]) -> None:
        """Puts a commit's values into the model and the optimizer."""
        if rest["shapes"] != self.shapes() or rest["columns"] != self.columns:
            raise UsageError("the commit holds another model or optimizer: " + self._difference(rest),
                             "build the model and the optimizer that were committed, or use another folder")
        kept = unpack(rest["state"])
        first = 0
        with torch.no_grad():
            for name, tensor in self.parameters + self.buffers:
                last = first + tensor.numel()
                parts = {c: torch.from_numpy(values[first:last, i].copy()).reshape(tensor.shape)
                         for i, c in enumerate(self.columns)}
                tensor.copy_(parts["w"])
                if name in kept:
                    self.optimizer.state[tensor] = {
                        k: parts[k].to(tensor.device, tensor.dtype) if k in parts and v is None else v
                        for k, v in kept[name].items()
                    }
                else:
                    self.optimizer.state.pop(tensor, None)
                first = last
            buffers = unpack(rest["buffers"])
            for name, tensor in self.other_buffers:
                tensor.copy_(buffers[name])
        for group, saved in zip(self.optimizer.param_groups, unpack(rest["groups"])):
            group.update(saved)

    def _difference(self, rest: Dict[str, Any]) -> str:
        mine, theirs = self.shapes(), rest["shapes"]
        for name in [*mine, *theirs]:
            if mine.get(name) != theirs.get(name):
                return f"{name} has the shape {theirs.get(name, 'none')} there and {mine.get(name, 'none')} here"
        return f"optimizer state {rest['columns'][1:]} there and {self.columns[1:]} here"
