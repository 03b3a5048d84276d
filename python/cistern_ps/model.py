"""Models of the JSON trainer, built in Python.

Layers are functions of tensors, and a tensor is the name of a layer's output, as in the file:

    m = cs.model.Model(batchsize=4096, num_epochs=1, optimizer=cs.Adam(lr=1e-3))
    data = m.data("train/file_list.txt", slots={"features": 10}, max_keys={"features": 10})
    x = m.embedding("features", dim=10)
    x = m.reshape(x, 100)
    for _ in range(3):
        x = m.relu(m.fc(x, 400))
    m.loss(m.fc(x, 1))
    cs.train(m, out="runs/a")

docs/configuration.md describes every layer and every setting; `Model.layer` adds those that have no function here.
"""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from .errors import UsageError
from .rules import Adam, Momentum, Rule, SGD

Tensor = str
Tensors = Union[Tensor, Sequence[Tensor]]

_HPARAM = {"ADAM": ("Adam", "adam_hparam"), "MOMENTUM": ("MomentumSGD", "momentum_sgd_hparam"), "SGD": ("SGD", "sgd_hparam")}


def optimizer_json(rule: Rule, update_type: str) -> Dict[str, Any]:
    """A rule as the "optimizer" of a model file: for this package."""
    if isinstance(rule, Adam):
        constants = {"learning_rate": rule.lr, "beta1": rule.beta1, "beta2": rule.beta2, "epsilon": rule.epsilon}
    elif isinstance(rule, Momentum):
        constants = {"learning_rate": rule.lr, "momentum_factor": rule.beta1}
    elif isinstance(rule, SGD):
        constants = {"learning_rate": rule.lr}
    else:
        raise UsageError(f"{rule!r} is a rule for tables only", "give Model an optimizer as a dict of the model file")
    name, hparam = _HPARAM[rule.kind]
    return {"type": name, "update_type": update_type, hparam: constants}


class Model:
    """A model file under construction.

    solver: further settings of the "solver" object, such as eval_interval=1000. cistern: the "cistern" object.
    optimizer: a rule, or the "optimizer" object as a dict.
    """

    def __init__(self, optimizer: Union[Rule, Dict[str, Any], None] = None, update_type: str = "Local",
                 cistern: Optional[Dict[str, Any]] = None, name: str = "model", **solver: Any):
        rule = Adam() if optimizer is None else optimizer
        self.name = name
        self.solver: Dict[str, Any] = {"lr_policy": "fixed", "display": 100, **solver}
        self.optimizer = optimizer_json(rule, update_type) if isinstance(rule, Rule) else dict(rule)
        self.cistern = dict(cistern or {})
        self.layers: List[Dict[str, Any]] = []
        self._names: Dict[str, int] = {}
        self._label = "label"

    def data(self, source: "str | os.PathLike[str]", slots: Dict[str, int], max_keys: Optional[Dict[str, int]] = None,
             dense: int = 0, label: int = 1, eval_source: "str | os.PathLike[str] | None" = None, format: str = "Norm",
             sample_weight: bool = False, **more: Any) -> Tuple[Tensor, List[Tensor]]:
        """The Data layer. slots: of each sparse input, by name. max_keys: keys of a sample, at most (default: slots).
        sample_weight: the data holds the weight of each sample after its labels (cistern.sample_weights).

        Returns (the dense tensor, the inputs).
        """
        inputs = [{"top": n, "type": "DistributedSlot", "slot_num": s,
                   "max_feature_num_per_sample": (max_keys or {}).get(n, s)} for n, s in slots.items()]
        layer = {"name": "data", "type": "Data", "format": format, "source": os.fspath(source),
                 "check": more.pop("check", "Sum" if format == "Norm" else "None"),
                 "label": {"top": "label", "label_dim": label}, "dense": {"top": "dense", "dense_dim": dense},
                 "sparse": inputs, **more}
        if eval_source is not None:
            layer["eval_source"] = os.fspath(eval_source)
        if sample_weight:
            self.cistern["sample_weights"] = True
        self.layers.append(layer)
        return "dense", list(slots)

    def embedding(self, input: Tensor, dim: int, combiner: str = "sum", name: str = "",
                  table: Optional[Dict[str, Any]] = None) -> Tensor:
        """Rows of an input, pooled by slot: [slots, dim]. table: its settings in "cistern.embeddings"."""
        name = name or self._new("embedding")
        self.layers.append({"name": name, "type": "DistributedSlotSparseEmbeddingHash", "bottom": input, "top": name,
                            "sparse_embedding_hparam": {"embedding_vec_size": dim, "combiner": combiner}})
        if table:
            self.cistern.setdefault("embeddings", {})[name] = table
        return name

    def layer(self, type: str, bottoms: Tensors, tops: Union[int, Sequence[str]] = 1, name: str = "",
              **parameters: Any) -> Any:
        """Any layer of docs/configuration.md. tops: how many outputs, or their names. Returns its tensor or tensors."""
        name = name or self._new(type.lower())
        outputs = ([name] if tops == 1 else [f"{name}_{i}" for i in range(tops)]) if isinstance(tops, int) else list(tops)
        self.layers.append({"name": name, "type": type, "bottom": bottoms if isinstance(bottoms, str) else list(bottoms),
                            "top": outputs[0] if len(outputs) == 1 else outputs, **parameters})
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def fc(self, x: Tensor, outputs: int, weight_init: str = "XavierNorm", bias_init: str = "Zero") -> Tensor:
        """A fully connected layer."""
        return self.layer("InnerProduct", x, fc_param={"num_output": outputs, "weight_init": weight_init,
                                                       "bias_init": bias_init})

    def relu(self, x: Tensor) -> Tensor:
        """max(x, 0)."""
        return self.layer("ReLU", x)

    def prelu_dice(self, x: Tensor, alpha: float, eps: float = 1e-8, factor: float = 0.1) -> Tensor:
        """DIN's activation: p x + (1 - p) alpha x, p by the distribution of x. factor: as in batch_norm."""
        return self.layer("PReLU_Dice", x, prelu_dice_param={"alpha": alpha, "eps": eps, "factor": factor})

    def prelu(self, x: Tensor, slope: float = 0.25) -> Tensor:
        """x above 0, else a trained slope times x, one a column of the last dimension. slope: the first value of all."""
        return self.layer("PReLU", x, slope=slope)

    def sigmoid(self, x: Tensor) -> Tensor:
        """1 / (1 + exp(-x)). Not before a loss, which contains it."""
        return self.layer("Sigmoid", x)

    def softmax(self, x: Tensor, factor: float = 1) -> Tensor:
        """Shares that add up to 1 over the last dimension: of exp(factor * x)."""
        return self.layer("Softmax", x, factor=factor)

    def dropout(self, x: Tensor, rate: float = 0.5) -> Tensor:
        """Zeroes a share of the elements while training."""
        return self.layer("Dropout", x, rate=rate)

    def batch_norm(self, x: Tensor, factor: float = 0.1, eps: float = 1e-5) -> Tensor:
        """Batch normalization."""
        return self.layer("BatchNorm", x, bn_param={"factor": factor, "eps": eps})

    def layer_norm(self, x: Tensor, eps: float = 1e-5) -> Tensor:
        """Normalization over the last dimension."""
        return self.layer("LayerNorm", x, ln_param={"eps": eps})

    def reshape(self, x: Tensor, leading_dim: int, time_step: int = 0) -> Tensor:
        """Rows of `leading_dim` elements; with `time_step`, matrices of so many rows: three dimensions."""
        more = {"time_step": time_step} if time_step else {}
        return self.layer("Reshape", x, leading_dim=leading_dim, **more)

    def slice(self, x: Tensor, *ranges: Tuple[int, int]) -> Any:
        """Columns [lo, hi) of each range, as a tensor each."""
        return self.layer("Slice", x, tops=len(ranges), ranges=[list(r) for r in ranges])

    def concat(self, *tensors: Tensor, axis: int = 1) -> Tensor:
        """Tensors side by side, along a dimension."""
        more = {"axis": axis} if axis != 1 else {}
        return self.layer("Concat", tensors, **more)

    def select(self, x: Tensor, dim: int, index: Sequence[int]) -> Tensor:
        """Positions of a dimension, in this order."""
        return self.layer("Select", x, dim=dim, index=list(index))

    def gather(self, x: Tensor, indices: Sequence[int]) -> Tensor:
        """Rows of each sample, of a tensor with several."""
        return self.layer("Gather", x, indices=list(indices))

    def fused_reshape_concat(self, *embeddings: Tensor) -> Tuple[Tensor, Tensor]:
        """The vectors of embeddings with the same slots side by side: a row for each slot but the last (a history),
        and a row for the last (the item)."""
        history, item = self.layer("FusedReshapeConcat", embeddings, tops=2)
        return history, item

    def fused_reshape_concat_general(self, *embeddings: Tensor) -> Tensor:
        """The vectors of embeddings with the same slots side by side: a row for each slot."""
        return self.layer("FusedReshapeConcatGeneral", embeddings)

    def matrix_multiply(self, a: Tensor, b: Tensor) -> Tensor:
        """The matrix products of each sample: [m, k] times [k, n]."""
        return self.layer("MatrixMultiply", [a, b])

    def sequence_mask(self, lengths: Tensor, key_lengths: Tensor = "", queries: int = 1, keys: int = 1) -> Tensor:
        """1 within the lengths of two sequences, else 0: [b, 1, queries, keys]. Lengths are [b, 1]; key_lengths: by default
        the same."""
        return self.layer("SequenceMask", [lengths, key_lengths or lengths], max_sequence_len_from=queries,
                          max_sequence_len_to=keys)

    def attention(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor = "", heads: int = 1) -> Tensor:
        """softmax(Q K^T / sqrt(d)) V by head, of tensors [b, length, heads * d]; mask: a sequence_mask."""
        return self.layer("MultiHeadAttention", [query, key, value, *([mask] if mask else [])], num_attention_heads=heads)

    def hstu(self, uvqk: Tensor, mask: Tensor = "", heads: int = 1, causal: bool = True) -> Tensor:
        """The attention of HSTU: of [b, n, 4 h], U, V, Q and K side by side, LayerNorm(silu(Q K^T + bias) V / n) * U, [b, n, h];
        mask: a sequence_mask."""
        return self.layer("HSTU", [uvqk, mask] if mask else uvqk, num_attention_heads=heads, causal=causal)

    def gru(self, x: Tensor, outputs: int) -> Tensor:
        """A gated recurrent unit over the sequence of a sample: [b, steps, n] becomes [b, steps, outputs]."""
        return self.layer("GRU", x, gru_param={"num_output": outputs})

    def add(self, *tensors: Tensor) -> Tensor:
        """The sum of tensors of one shape."""
        return self.layer("Add", tensors)

    def sub(self, a: Tensor, b: Tensor) -> Tensor:
        """a - b, two tensors of one shape."""
        return self.layer("Sub", [a, b])

    def multiply(self, *tensors: Tensor) -> Tensor:
        """The product of tensors of one shape, element by element."""
        return self.layer("ElementwiseMultiply", tensors)

    def product_logit(self, a: Tensor, b: Tensor) -> Tensor:
        """The logit of the product of two probabilities, each given by its logit: of an event that needs both (ESMM)."""
        return self.layer("ProductLogit", [a, b])

    def scale(self, x: Tensor, axis: int, factor: int) -> Tensor:
        """Repetitions: of each value in its row (axis 0), or of each row (axis 1)."""
        return self.layer("Scale", x, scale_param={"axis": axis, "factor": factor})

    def multi_cross(self, x: Tensor, layers: int, rank: int = 0) -> Tensor:
        """The cross network of DCN; with a rank, that of DCN V2, whose matrices are products of two."""
        more = {"projection_dim": rank} if rank else {}
        return self.layer("MultiCross", x, mc_param={"num_layers": layers, **more})

    def mlp(self, x: Tensor, outputs: Sequence[int], relu_last: bool = True, bias: bool = True) -> Tensor:
        """Fully connected layers of these widths, each with a ReLU; the last one with relu_last."""
        activations = ["Relu"] * (len(outputs) - 1) + ["Relu" if relu_last else "None"]
        return self.layer("MLP", x, mlp_param={"num_outputs": list(outputs), "activations": activations, "use_bias": bias})

    def fm_order2(self, x: Tensor, out_dim: int) -> Tensor:
        """Pairwise products of a factorization machine."""
        return self.layer("FmOrder2", x, out_dim=out_dim)

    def reduce_sum(self, x: Tensor, axis: int = 1) -> Tensor:
        """Sums along an axis."""
        return self.layer("ReduceSum", x, axis=axis)

    def reduce_mean(self, x: Tensor, axis: int = 1) -> Tensor:
        """Means along an axis."""
        return self.layer("ReduceMean", x, axis=axis)

    def loss(self, x: Tensor, type: str = "BinaryCrossEntropyLoss", label: str = "label", **more: Any) -> Tensor:
        """The loss, last."""
        return self.layer(type, [x, label], name="loss", **more)

    def to_dict(self) -> Dict[str, Any]:
        """The content of the model file."""
        content: Dict[str, Any] = {"solver": self.solver, "optimizer": self.optimizer, "layers": self.layers}
        if self.cistern:
            content["cistern"] = self.cistern
        return content

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Writes the model file."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.to_dict(), file, indent=2)
            file.write("\n")

    def _new(self, kind: str) -> str:
        self._names[kind] = self._names.get(kind, 0) + 1
        return f"{kind}{self._names[kind]}"

    def __repr__(self) -> str:
        return f"<Model {self.name!r}: {len(self.layers)} layers: {', '.join(l['type'] for l in self.layers)}>"
