"""Embedding collections of HugeCTR 3.x, which are several embeddings here."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Union

from ..errors import UsageError
from .settings import CreateOptimizer, DenseLayer, Json, SparseEmbedding
from .words import Embedding_t, Layer_t, note

_COMBINERS = ("sum", "mean", "concat")


class EmbeddingTableConfig:
    """A table of an embedding collection."""

    def __init__(self, name: str, max_vocabulary_size: int, ev_size: int, opt_params: Optional[CreateOptimizer] = None,
                 init_param: Any = None):
        if init_param is not None:
            raise UsageError(f"EmbeddingTableConfig {name}: init_param is not supported",
                             f'leave it out; in the model file it is cistern.embeddings.{name}.initializer')
        self.name, self.max_vocabulary_size, self.ev_size, self.opt_params = name, max_vocabulary_size, ev_size, opt_params


class EmbeddingCollectionConfig:
    """Embeddings of several sizes. Each table becomes an embedding of its own; where HugeCTR places it has no effect here."""

    def __init__(self, use_exclusive_keys: bool = False, comm_strategy: Any = None):
        self.lookups: List[Json] = []
        self._tables: Dict[str, EmbeddingTableConfig] = {}

    def embedding_lookup(self, table_config: Union[EmbeddingTableConfig, Sequence[EmbeddingTableConfig]],
                         bottom_name: Union[str, Sequence[str]], top_name: str, combiner: Union[str, Sequence[str]]) -> None:
        """Rows of an input in a table: [b, slots, size]; of several inputs, side by side: [b, sum of sizes].

        combiner: sum, mean, or concat: a slot's vectors side by side, [b, slots, nnz_per_slot * size]; zeros where it has fewer
        keys.
        """
        one = isinstance(table_config, EmbeddingTableConfig)
        tables = [table_config] if isinstance(table_config, EmbeddingTableConfig) else list(table_config)
        bottoms = [bottom_name] if isinstance(bottom_name, str) else list(bottom_name)
        combiners = [combiner] if isinstance(combiner, str) else list(combiner)
        if not len(tables) == len(bottoms) == len(combiners):
            raise UsageError(f"embedding_lookup {top_name}: {len(tables)} tables, {len(bottoms)} inputs and {len(combiners)} combiners",
                             "give each table an input and a combiner")
        for table, how in zip(tables, combiners):
            if how not in _COMBINERS:
                raise UsageError(f"embedding_lookup {top_name}: the combiner {how!r} is not supported", f"use {', '.join(_COMBINERS)}")
            if table.name in self._tables:
                raise UsageError(f"embedding_lookup {top_name}: table {table.name!r} is looked up twice",
                                 "look up the slots of one input, which share a table")
            self._tables[table.name] = table
        self.lookups.append({"tables": tables, "bottoms": bottoms, "top": top_name, "combiners": combiners, "one": one})

    def shard(self, shard_matrix: Any = None, shard_strategy: Any = None, **others: Any) -> None:
        """Nothing: rows are held by servers."""
        note("EmbeddingCollectionConfig.shard has no effect here: rows are held by servers")

    def layers(self, inputs: Sequence[Json]) -> List[Any]:
        """SparseEmbedding and DenseLayer objects, in order. inputs: "sparse" of the Data layer; those to concatenate become
        sequences."""
        by_name = {one["top"]: one for one in inputs}
        made: List[Any] = []
        pools: Dict[str, bool] = {}  # by input
        for lookup in self.lookups:
            parts = []
            for table, bottom, combiner in zip(lookup["tables"], lookup["bottoms"], lookup["combiners"]):
                if bottom not in by_name:
                    raise UsageError(f"embedding_lookup {lookup['top']}: there is no input {bottom!r}",
                                     f"the inputs are {', '.join(by_name)}")
                pooled = combiner != "concat"
                if pools.setdefault(bottom, pooled) != pooled:
                    raise UsageError(f"embedding_lookup {lookup['top']}: input {bottom!r} is looked up with concat and without",
                                     "use one of them for all tables of an input")
                top = lookup["top"] if lookup["one"] else f"{lookup['top']}_{table.name}"
                slots = by_name[bottom]["slot_num"]
                keys = 1 if pooled else _spread(by_name[bottom], lookup["top"])
                name = f"{top}_keys" if lookup["one"] and keys > 1 else top
                made.append(SparseEmbedding(Embedding_t.DistributedSlotSparseEmbeddingHash, embedding_vec_size=table.ev_size,
                                            combiner="sum" if combiner == "concat" else combiner, sparse_embedding_name=name,
                                            bottom_name=bottom, optimizer=table.opt_params))
                if not lookup["one"]:
                    parts.append(f"{top}_row")
                    made.append(DenseLayer(Layer_t.Reshape, [top], parts[-1:], leading_dim=slots * keys * table.ev_size))
                elif keys > 1:
                    made.append(DenseLayer(Layer_t.Reshape, [name], [top], time_step=slots, leading_dim=keys * table.ev_size))
            if len(parts) == 1:
                made[-1].tops = [lookup["top"]]
            elif parts:
                made.append(DenseLayer(Layer_t.Concat, parts, [lookup["top"]]))
        return made


def _spread(one: Json, where: str) -> int:
    """Makes an input's slots sequences; the places of each."""
    nnz = one["nnz_per_slot"]
    lengths = {nnz} if isinstance(nnz, int) else set(nnz)
    if len(lengths) != 1 or min(lengths) < 1:
        raise UsageError(f"embedding_lookup {where}: concat needs slots of one size, and nnz_per_slot of {one['top']!r} is {nnz}",
                         "give DataReaderSparseParam one number")
    keys: int = min(lengths)
    if keys > 1:
        one.update(sequence_lengths=keys, sequence_keeps="first")
    return keys
