"""What PyTorch sees of rows: a small parameter of each module, whose gradient stands for those of the rows.

torch.optim, GradScaler, clip_grad_norm_, zero_grad and requires_grad_ act on parameters, and a table is none. So each
embedding has a parameter of two elements, its stand-in. After a backward pass the stand-in's gradient has the norm of
all gradients of the module's rows. Whatever multiplies it multiplies theirs, whatever clears it clears theirs, and
rows whose stand-in requires no gradient are frozen. Its value means nothing.
"""

from __future__ import annotations

import math
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, List, Optional

import numpy as np
import torch

from .. import _native
from ..errors import Error, UsageError

if TYPE_CHECKING:
    import numpy.typing as npt

SHAPE = (1, 2)  # two dimensions: there are optimizers and initializers for matrices only
# A unit vector. Its elements differ, so that a change of them that is no multiplication shows.
_DIRECTION = torch.tensor([[math.sqrt(63 / 64), math.sqrt(1 / 64)]], dtype=torch.float64)


@dataclass(eq=False)
class Pending:
    """The gradients of one forward pass.

    Attributes:
        call: the number of the forward pass: gradients are added in their order.
        owner: the gradients of its module.
        rows, grads: int32 [rows] and float32 [rows, dim].
        shown: whether the stand-in's gradient counts them.
        summed: whether the owner's sums have them.
    """

    call: int
    owner: "RowGradients"
    rows: "npt.NDArray[Any]"
    grads: "npt.NDArray[Any]"
    shown: bool = False
    summed: bool = False


class RowGradients:
    """The gradients of one module's rows since the last step, and their stand-in.

    pending: those of all modules of the table. (Not the table: graphs of autograd keep this object, and would keep a
    fleet beyond its end.)
    """

    def __init__(self, table: str, dim: int, pending: List[Pending], stand_in: Optional[torch.nn.Parameter] = None):
        self.table = table
        self.dim = dim
        self.pending = pending
        self.stand_in = torch.nn.Parameter(torch.zeros(SHAPE)) if stand_in is None else stand_in
        self._hooked: Optional[torch.Tensor] = None  # the stand-in that calls _show
        self._shown: Optional[List[float]] = None  # the stand-in's gradient, as it was set
        self._version = 0  # of the stand-in's value then
        self._sums: Optional[_native.GradientSums] = None

    def __deepcopy__(self, memo: Dict[int, Any]) -> "RowGradients":
        import copy

        return RowGradients(self.table, self.dim, self.pending, copy.deepcopy(self.stand_in, memo))  # without gradients, as in torch

    def watch(self) -> torch.nn.Parameter:
        """The stand-in, for a forward pass whose backward pass adds gradients."""
        if self._hooked is not self.stand_in:
            me = weakref.ref(self)

            def show(grad: torch.Tensor) -> Optional[torch.Tensor]:
                gradients = me()
                return None if gradients is None else gradients._show(grad)

            self.stand_in.register_hook(show)  # once for each backward pass, after its last module
            self._hooked = self.stand_in
        return self.stand_in

    def has_other_hooks(self) -> bool:
        """Whether somebody else has put a hook on the gradient of the stand-in."""
        own = 1 if self._hooked is self.stand_in else 0
        return (len(self.stand_in._backward_hooks or ()) > own
                or bool(getattr(self.stand_in, "_post_accumulate_grad_hooks", None)))

    def add(self, call: int, rows: "npt.NDArray[Any]", grads: "npt.NDArray[Any]") -> None:
        """Gradients of a forward pass."""
        self.pending.append(Pending(call, self, rows, grads))

    def _mine(self) -> List[Pending]:
        return [p for p in self.pending if p.owner is self]

    def _show(self, grad: torch.Tensor) -> torch.Tensor:
        """The stand-in's gradient after this backward pass; autograd adds it to the one before, which is removed."""
        self.settle()
        mine = self._mine()
        norm = math.sqrt(self._square_sum(mine))
        value = torch.full(SHAPE, norm, dtype=torch.float64)
        value = (torch.mul(value, _DIRECTION) if math.isfinite(norm) else value).to(grad.dtype)
        for pending in mine:
            pending.shown = True
        self._shown = _numbers(value)
        self._version = self.stand_in._version
        self.stand_in.grad = None
        return value.to(grad.device)

    def _square_sum(self, mine: List[Pending]) -> float:
        """Of the gradients; keeps the sums of several forward passes, to which the next ones are added."""
        if len(mine) == 1:
            return float(_native.square_sum(mine[0].grads))
        if self._sums is None:
            self._sums = _native.GradientSums(self.dim)
        if not any(pending.summed for pending in mine):
            self._sums.clear()  # keeps its memory
        for pending in mine:
            if not pending.summed:
                self._sums.add(pending.rows, pending.grads)
                pending.summed = True
        return float(self._sums.square_sum())

    @property
    def has_stepped(self) -> bool:
        """Whether an optimizer has moved the stand-in since the last backward pass."""
        return self._shown is not None and self.stand_in._version != self._version

    def settle(self) -> bool:
        """Does to the gradients what PyTorch did to the stand-in's; false if that was to clear them."""
        if self._shown is None:
            return True
        factor = self._factor()
        if factor == 0:
            self.pending[:] = [p for p in self.pending if p.owner is not self or not p.shown]
            self._shown = None
            return False
        if factor != 1:
            self._multiply(factor)
        return True

    def scale(self, factor: float) -> None:
        """Multiplies the gradients, and the stand-in's."""
        if self.stand_in.grad is not None:
            self.stand_in.grad.mul_(factor)
        self._multiply(factor)

    def _multiply(self, factor: float) -> None:
        for pending in self._mine():
            pending.summed = False
            if pending.shown:
                pending.grads = pending.grads * np.float32(factor)
        self._shown = None if self.stand_in.grad is None else _numbers(self.stand_in.grad)

    def _factor(self) -> float:
        """By what the stand-in's gradient was multiplied since it was set."""
        assert self._shown is not None
        if self.stand_in.grad is None:
            return 0.0
        now, shown = _numbers(self.stand_in.grad), self._shown
        if now == shown or not all(map(math.isfinite, shown)):  # the step reports one that is not finite
            return 1.0
        if not any(now):
            return 0.0
        factor = now[0] / shown[0] if shown[0] else math.inf
        if math.isnan(now[0]) and math.isnan(now[1]):
            raise Error(f"the gradients of table {self.table!r} were multiplied by NaN: a gradient of the dense "
                        "weights is not finite", "skip such a batch (zero_grad instead of a step), or find its cause")
        if math.isfinite(factor) and abs(now[1] - factor * shown[1]) <= 1e-3 * abs(now[1]) + 1e-37:
            return factor
        raise UsageError(f"gradients were changed element by element, as clip_grad_value_ does, which does not reach the "
                         f"rows of table {self.table!r}",
                         "clip by norm (torch.nn.utils.clip_grad_norm_), or leave out the parameters named stand_in")

    def forget(self) -> None:
        """No gradient from here on; the entries in `Table.pending` are the caller's."""
        self._shown = None
        self.stand_in.grad = None
        with torch.no_grad():
            self.stand_in.zero_()  # an optimizer has moved it


def _numbers(grad: torch.Tensor) -> List[float]:
    return [float(x) for x in grad.detach().reshape(-1).tolist()]


def square_sum(pending: List[Pending]) -> float:
    """Of the gradients of a table's rows; those of one row, from several forward passes, are added first, in float64."""
    if not pending:
        return 0.0
    grads = np.concatenate([p.grads for p in pending]).astype(np.float64)
    if len(pending) > 1:
        rows, place = np.unique(np.concatenate([p.rows for p in pending]), return_inverse=True)
        summed = np.zeros((len(rows), grads.shape[1]))
        np.add.at(summed, place.reshape(-1), grads)
        grads = summed
    return float(np.square(grads).sum())
