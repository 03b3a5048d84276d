"""Update rules, first values and bounds of tables, by the names of the model file (docs/configuration.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .arguments import integer, number
from .errors import UsageError


@dataclass(frozen=True)
class Rule:
    """How a row follows its gradient. `lr` is the learning rate; only workers know it, servers do not keep it."""

    lr: float = 0.001
    kind: ClassVar[str] = "SGD"

    def __post_init__(self) -> None:
        for name, value in self.__dict__.items():
            number(name, value, least=0)

    def spec(self) -> dict[str, Any]:
        """This rule as a field `rule` of a table's schema: for this package."""
        constants = {k: v for k, v in self.__dict__.items() if k != "lr"}
        return {"kind": self.kind, **constants}


@dataclass(frozen=True)
class SGD(Rule):
    """w -= lr * g. No state."""

    kind: ClassVar[str] = "SGD"


@dataclass(frozen=True)
class Adam(Rule):
    """Adam; keeps m and v for each weight. epsilon is outside the root."""

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-7
    kind: ClassVar[str] = "ADAM"


@dataclass(frozen=True)
class AdamW(Rule):
    """AdamW, as torch.optim.AdamW: a step also subtracts lr * weight_decay * w from each weight of its rows."""

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.01
    kind: ClassVar[str] = "ADAMW"


@dataclass(frozen=True)
class AdaGrad(Rule):
    """AdaGrad; keeps a sum of squared gradients for each weight."""

    initial_g2sum: float = 0.0
    epsilon: float = 1e-7
    kind: ClassVar[str] = "ADAGRAD"


@dataclass(frozen=True)
class AdaGradRowwise(Rule):
    """AdaGrad with one float of state a row, as FBGEMM's row-wise AdaGrad: the mean of the squared gradients is summed."""

    epsilon: float = 1e-7
    kind: ClassVar[str] = "ADAGRAD_ROWWISE"


@dataclass(frozen=True)
class Momentum(Rule):
    """Momentum SGD; keeps a velocity for each weight. beta1 is the momentum factor."""

    beta1: float = 0.9
    kind: ClassVar[str] = "MOMENTUM"


@dataclass(frozen=True)
class Ftrl(Rule):
    """FTRL-Proximal; keeps z and n for each weight. lambda1 makes weights exactly zero."""

    ftrl_beta: float = 0.0
    lambda1: float = 0.0
    lambda2: float = 0.0
    kind: ClassVar[str] = "FTRL"


@dataclass(frozen=True)
class Init:
    """First values of rows: a pure function of (table seed, key, position)."""

    kind: ClassVar[str] = "ZERO"

    def __post_init__(self) -> None:
        for name, value in self.__dict__.items():
            number(name, value, least=0)

    def spec(self) -> dict[str, Any]:
        """This object as a field `initializer` of a table's schema: for this package."""
        return {"kind": self.kind}


@dataclass(frozen=True)
class Zero(Init):
    """Rows start at zero."""


@dataclass(frozen=True)
class Uniform(Init):
    """Rows start uniformly in [-range, range)."""

    range: float = 0.05
    kind: ClassVar[str] = "UNIFORM"

    def spec(self) -> dict[str, Any]:
        """A field `initializer` of a table's schema: for this package."""
        return {"kind": self.kind, "range": self.range}


@dataclass(frozen=True)
class Normal(Init):
    """Rows start normally distributed with mean 0 and this standard deviation."""

    std: float = 0.01
    kind: ClassVar[str] = "NORMAL"

    def spec(self) -> dict[str, Any]:
        """A field `initializer` of a table's schema: for this package."""
        return {"kind": self.kind, "range": self.std}


@dataclass(frozen=True)
class Bounds:
    """Which rows of a table the servers remove on their own, at a commit (docs/streaming.md, "Bounded tables").

    max_rows: rows that the table keeps, besides those of the last commit; 0: any number. evict_by: which of the others
    go first: "age", those whose last commit is the oldest, or "norm", those with the smallest weights. expire_passes:
    rows that so many commits in a row did not change go; 0: none. expire_days: rows whose last commit was so many days
    (UTC) before the newest one go; 0: none.
    """

    max_rows: int = 0
    evict_by: str = "age"
    expire_passes: int = 0
    expire_days: int = 0

    def __post_init__(self) -> None:
        integer("max_rows", self.max_rows, most=2**64 - 1)
        integer("expire_passes", self.expire_passes, most=2**32 - 1)
        integer("expire_days", self.expire_days, most=2**32 - 1)
        if self.evict_by not in ("age", "norm"):
            raise UsageError(f'evict_by={self.evict_by!r}: expected "age" or "norm"')
        if self.max_rows == 0 and self.expire_passes == 0 and self.expire_days == 0:
            raise UsageError(
                "these bounds bound nothing", "give max_rows, expire_passes or expire_days, or no bounds at all"
            )

    def spec(self) -> dict[str, Any]:
        """A field `bounds` of a table's schema: for this package."""
        spec: dict[str, Any] = {"max_rows": str(self.max_rows), "evict_by": self.evict_by.upper()}
        if self.expire_days > 0:  # a table without it has the schema that it had before there was this field
            spec["expire_days"] = self.expire_days
        return {**spec, "expire_passes": self.expire_passes}
