"""Embedding collections of HugeCTR 3.x, which are several embeddings here."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Union

from ..errors import UsageError
from .settings import CreateOptimizer, DenseLayer, Json, SparseEmbedding
from .words import Embedding_t, Layer_t, note


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
                raise UsageError(f"embedding_lookup {top_name}: the combiner {how!r} is not supported", "use sum or mean" if how != "concat"
                                 else "give the input a slot for each position (slot_num), with one key each, and use sum: its "
                                 "output [b, slots, size] has the vectors side by side")
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
