"""Data sets for torch's DataLoader."""

from __future__ import annotations

from typing import Any, Dict, Iterator

import torch

from ..arguments import instance
from ..data import Batch, DataSet


class IterableDataSet(torch.utils.data.IterableDataset[Batch]):
    """A `cistern_ps.data` data set for DataLoader(batch_size=None) and torchdata's StatefulDataLoader.

    A DataLoader's worker processes would each read everything; use num_workers 0 or 1. They hold no fleet.
    """

    def __init__(self, data: DataSet):
        super().__init__()
        self.data = instance("data", data, DataSet, "a data set of cs.data")

    def __iter__(self) -> Iterator[Batch]:
        worker = torch.utils.data.get_worker_info()
        if worker is not None and worker.num_workers > 1:
            raise ValueError("a Cistern data set is read by one worker: num_workers must be 0 or 1")
        for batch in self.data:
            yield batch.torch()

    def state_dict(self) -> Dict[str, int]:
        """The place after the last batch."""
        return self.data.state_dict()

    def load_state_dict(self, state: Dict[str, int]) -> None:
        """The next iteration begins at this place."""
        self.data.load_state_dict(state)
