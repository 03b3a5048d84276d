"""Layers of HugeCTR 3.x that are several layers here: MLP, the cross network of DCN v2, and embedding collections."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Union

from ..errors import UsageError
from .settings import CreateOptimizer, DenseLayer, Json, SparseEmbedding
from .words import Embedding_t, Initializer_t, Layer_t, note

# Layers whose output is as wide as their first input.
_SAME_WIDTH = ("ReLU", "ELU", "Dropout", "BatchNorm", "Add", "Sub", "DotProduct", "ElementwiseMultiply", "Sigmoid", "Softmax", "Cast",
               "MultiCross", "PReLU_Dice")


class EmbeddingTableConfig:
    """A table of an embedding collection."""

    def __init__(self, name: str, max_vocabulary_size: int, ev_size: int, opt_params: Optional[CreateOptimizer] = None):
        self.name, self.max_vocabulary_size, self.ev_size, self.opt_params = name, max_vocabulary_size, ev_size, opt_params


class EmbeddingCollectionConfig:
    """Embeddings of several sizes. Each table becomes an embedding of its own; where HugeCTR places it has no effect here."""

    def __init__(self, use_exclusive_keys: bool = False, comm_strategy: Any = None):
        self.lookups: List[Json] = []
        self._tables: Dict[str, EmbeddingTableConfig] = {}

    def embedding_lookup(self, table_config: Union[EmbeddingTableConfig, Sequence[EmbeddingTableConfig]],
                         bottom_name: Union[str, Sequence[str]], top_name: str, combiner: Union[str, Sequence[str]]) -> None:
        """Rows of an input in a table: [b, slots, size]; of several inputs, side by side: [b, sum of sizes]."""
        one = isinstance(table_config, EmbeddingTableConfig)
        tables = [table_config] if isinstance(table_config, EmbeddingTableConfig) else list(table_config)
        bottoms = [bottom_name] if isinstance(bottom_name, str) else list(bottom_name)
        combiners = [combiner] if isinstance(combiner, str) else list(combiner)
        if not len(tables) == len(bottoms) == len(combiners):
            raise UsageError(f"embedding_lookup {top_name}: {len(tables)} tables, {len(bottoms)} inputs and {len(combiners)} combiners",
                             "give each table an input and a combiner")
        for table, how in zip(tables, combiners):
            if how not in ("sum", "mean"):
                raise UsageError(f"embedding_lookup {top_name}: the combiner {how!r} is not supported", "use sum or mean")
            if table.name in self._tables:
                raise UsageError(f"embedding_lookup {top_name}: table {table.name!r} is looked up twice",
                                 "look up the slots of one input, which share a table")
            self._tables[table.name] = table
        self.lookups.append({"tables": tables, "bottoms": bottoms, "top": top_name, "combiners": combiners, "one": one})

    def shard(self, shard_matrix: Any = None, shard_strategy: Any = None, **others: Any) -> None:
        """Nothing: rows are held by servers."""
        note("EmbeddingCollectionConfig.shard has no effect here: rows are held by servers")

    def layers(self, slots: Dict[str, int]) -> List[Any]:
        """SparseEmbedding and DenseLayer objects, in order. slots: of each input."""
        made: List[Any] = []
        for lookup in self.lookups:
            parts = []
            for table, bottom, combiner in zip(lookup["tables"], lookup["bottoms"], lookup["combiners"]):
                if bottom not in slots:
                    raise UsageError(f"embedding_lookup {lookup['top']}: there is no input {bottom!r}",
                                     f"the inputs are {', '.join(slots)}")
                top = lookup["top"] if lookup["one"] else f"{lookup['top']}_{table.name}"
                embedding = SparseEmbedding(Embedding_t.DistributedSlotSparseEmbeddingHash, embedding_vec_size=table.ev_size,
                                            combiner=combiner, sparse_embedding_name=top, bottom_name=bottom,
                                            optimizer=table.opt_params)
                made.append(embedding)
                if not lookup["one"]:
                    parts.append(f"{top}_row")
                    made.append(DenseLayer(Layer_t.Reshape, [top], parts[-1:], leading_dim=slots[bottom] * table.ev_size))
            if len(parts) == 1:
                made[-1].tops = [lookup["top"]]
            elif parts:
                made.append(DenseLayer(Layer_t.Concat, parts, [lookup["top"]]))
        return made


def width_of(tensor: str, input: Json, layers: Sequence[Json]) -> int:
    """The columns of a tensor of a model file."""
    if tensor == input["dense"]["top"]:
        return int(input["dense"]["dense_dim"])
    slots = {s["top"]: int(s["slot_num"]) for s in input["sparse"]}
    for layer in layers:
        tops = [layer["top"]] if isinstance(layer["top"], str) else layer["top"]
        if tensor not in tops:
            continue
        bottoms = [layer["bottom"]] if isinstance(layer["bottom"], str) else layer["bottom"]
        widths = [width_of(bottom, input, layers) for bottom in bottoms if bottom not in slots]
        kind = layer["type"]
        if "sparse_embedding_hparam" in layer:
            return slots[layer["bottom"]] * int(layer["sparse_embedding_hparam"]["embedding_vec_size"])
        if kind in _SAME_WIDTH:
            return widths[0]
        if kind in ("InnerProduct", "FusedInnerProduct"):
            return int(layer["fc_param"]["num_output"])
        if kind == "Concat":
            return sum(widths)
        if kind == "Reshape" and "selected" not in layer and "time_step" not in layer:
            return int(layer.get("leading_dim", widths[0]))
        if kind == "Slice":
            low, high = layer["ranges"][tops.index(tensor)]
            return int(high - low)
        raise UsageError(f"the width of {tensor!r}, the output of a {kind}, is not known here",
                         "put a Reshape with leading_dim after it")
    raise UsageError(f"there is no tensor {tensor!r}", "add the layer that makes it first")


def low_rank_crosses(layer: DenseLayer, width: int) -> List[Json]:
    """MultiCross with projection_dim k: x' = x0 * (U V x + b) + x, with V [k, n] and U [n, k] (DCN v2, Wang et al. 2021)."""
    rank, crosses = int(layer.parameters["projection_dim"]), int(layer.parameters.get("num_layers", 0))
    if rank < 1 or crosses < 1:
        raise UsageError(f"MultiCross {layer.tops[0]}: num_layers and projection_dim must be positive")
    inits = {"weight_init_type": layer.parameters.get("weight_init_type", Initializer_t.XavierUniform),
             "bias_init_type": layer.parameters.get("bias_init_type", Initializer_t.Zero)}
    first, top, made = layer.bottoms[0], layer.tops[0], []
    x = first
    for i in range(1, crosses + 1):
        v, u, product = (f"{top}_{i}_{part}" for part in ("v", "u", "product"))
        out = top if i == crosses else f"{top}_{i}"
        made += [DenseLayer(Layer_t.InnerProduct, [x], [v], num_output=rank, **inits),
                 DenseLayer(Layer_t.InnerProduct, [v], [u], num_output=width, **inits),
                 DenseLayer(Layer_t.ElementwiseMultiply, [first, u], [product]),
                 DenseLayer(Layer_t.Add, [product, x], [out])]
        x = out
    return [json for part in made for json in part.to_list()]
