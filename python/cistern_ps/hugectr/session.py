"""HugeCTR 2.3's interface: a model file, and `Session` to train it."""

from __future__ import annotations

import json
from typing import Any, List, Sequence, Tuple

from ..errors import UsageError
from .settings import CreateETC, CreateOptimizer, CreateSolver, DataReaderParams, Json
from .training import Model
from .words import DataReaderType_t, note


class solver_parser_helper:
    """The settings of a training that a model file of HugeCTR 2.3 leaves to Python."""

    def __init__(self, seed: int = 0, max_eval_batches: int = 100, batchsize_eval: int = 16384, batchsize: int = 16384,
                 model_file: str = "", embedding_files: Sequence[str] = (), vvgpu: Any = None, use_mixed_precision: bool = False,
                 scaler: float = 1.0, i64_input_key: bool = False, use_algorithm_search: bool = True, use_cuda_graph: bool = True,
                 repeat_dataset: bool = True, **others: Any):
        self.settings: Json = {
            "seed": seed, "max_eval_batches": max_eval_batches, "batchsize_eval": batchsize_eval, "batchsize": batchsize,
            "vvgpu": vvgpu, "use_mixed_precision": use_mixed_precision, "scaler": scaler, "i64_input_key": i64_input_key,
            "use_cuda_graph": use_cuda_graph, "repeat_dataset": repeat_dataset}
        self.max_eval_batches = max_eval_batches
        self.model_file, self.embedding_files = model_file, list(embedding_files)


class _FileOptimizer(CreateOptimizer):
    """The optimizer of a model file, as it stands there."""

    def __init__(self, content: Json):
        self.content = content

    def to_dict(self, schedule: Json, passes: bool, frozen: bool = False) -> Json:
        content = dict(self.content)
        if passes and content.get("update_type", "Local") != "Local":
            note(f"update_type {content['update_type']} and model oversubscribing: rows that are not in a pass are not there "
                 "to be updated; Local is used")
            content["update_type"] = "Local"
        return content


class Session(Model):
    """The training of a model file.

    use_model_oversubscriber, temp_embedding_dir: HugeCTR's passes; here every training has passes, and the folder is not used.
    """

    def __init__(self, solver_config: solver_parser_helper, config_file: str, use_model_oversubscriber: bool = False,
                 temp_embedding_dir: str = ""):
        with open(config_file, encoding="utf-8") as file:
            content = json.load(file)
        data = [layer for layer in content.get("layers", []) if layer.get("type") == "Data"]
        if len(data) != 1 or "optimizer" not in content:
            raise UsageError(f"{config_file}: a model file has an optimizer, and one Data layer")
        reader = DataReaderParams(getattr(DataReaderType_t, data[0].get("format", "Norm")), data[0].get("source", ""),
                                  eval_source=data[0].get("eval_source", ""))
        super().__init__(CreateSolver(**solver_config.settings), reader, _FileOptimizer(content["optimizer"]))
        self._passes = use_model_oversubscriber
        self._data_layer = {k: v for k, v in data[0].items() if k not in ("source", "eval_source")}
        constants = next(v for k, v in content["optimizer"].items() if k.endswith("_hparam"))
        self._schedule.update({name: value for name, value in constants.items() if name in self._schedule})
        self.construct_from_json(config_file)
        self._input = self._data_layer
        if self._passes:
            self._etc = CreateETC([], [])
        if solver_config.model_file:
            self._load("dense_model_file", solver_config.model_file)
        if any(solver_config.embedding_files):
            self.load_sparse_weights(list(solver_config.embedding_files))

    def evaluation(self) -> List[Tuple[str, float]]:
        """The metrics on the evaluation data."""
        return self.get_eval_metrics()

    def copy_weights_for_evaluation(self) -> None:
        """Nothing: there is one copy of the weights."""

    def download_params_to_files(self, prefix: str, iter: int = 0) -> None:
        """Writes HugeCTR 2.3's files: PREFIX_dense_ITER.model, PREFIX0_sparse_ITER.model and so on."""
        self._save(prefix, iter, "v2")
