"""Embeddings for PyTorch whose rows live on a fleet, and training sessions that commit everything at once."""

from .embedding import Embedding, EmbeddingBag, RowOptimizer, clip_grad_norm_, pad_rows
from .loader import IterableDataSet
from .session import Session

__all__ = ["Embedding", "EmbeddingBag", "IterableDataSet", "RowOptimizer", "Session", "clip_grad_norm_", "pad_rows"]
