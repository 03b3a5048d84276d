"""`Model`: HugeCTR's training interface, on servers in this process and the trainer of `cistern train`."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import weakref
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Set, Tuple, Union

from .. import _native, fleet as fleets, jobs
from ..errors import Error, UsageError
from .callbacks import fit_with_callbacks
from .expansion import EmbeddingCollectionConfig
from .settings import (CreateETC, CreateOptimizer, CreateSolver, DataReaderParams, DenseLayer, Input, Json, SparseEmbedding,
                       _sources)
from .words import note

if TYPE_CHECKING:
    import numpy as np

_FOREVER = 1 << 40  # iterations


class LearningRateScheduler:
    """The learning rates of the solver, one after the other."""

    def __init__(self, model: "Model"):
        self._model = model
        self._next = 0

    def get_next(self) -> float:
        """The rate of the next iteration."""
        self._next += 1
        return _native.learning_rate_at(**self._model._schedule, step=self._next)


class DataReader:
    """The training or the evaluation data of a model."""

    def __init__(self, model: "Model", evaluates: bool):
        self._model, self._evaluates = model, evaluates

    def set_source(self, file_name: str = "") -> None:
        """Reads other data, or the same from its start."""
        if self._evaluates:
            self._model._set_evaluation(file_name)
        else:
            self._model._set_training(_sources(file_name) or self._model._reader.source)

    set_file_list_source = set_source  # HugeCTR 2.3

    def is_eof(self) -> bool:
        """Whether all of the data was read."""
        return self._model._evaluated_all if self._evaluates else self._model._data_is_over


class EmbeddingTrainingCache:
    """The passes of a model."""

    def __init__(self, model: "Model"):
        self._model = model

    def update(self, keyset: Union[str, Sequence[str]]) -> None:
        """Names the keyset files of the next pass. They are checked: keys that the data has and they lack are an error."""
        self._model._set_keyset(_sources(keyset))


class Model:
    """A model: its layers, its training, its files.

    It trains on servers inside this process, whose commits are in a temporary folder while it lives. `state_folder`, a word
    of Cistern, keeps them, and continues with what it holds.
    """

    def __init__(self, solver: CreateSolver, reader_params: DataReaderParams, opt_params: Optional[CreateOptimizer] = None,
                 etc_params: Optional[CreateETC] = None, state_folder: "str | os.PathLike[str] | None" = None):
        self._solver, self._reader = solver, reader_params
        self._optimizer = opt_params or CreateOptimizer()
        self._etc = etc_params
        self._input: Optional[Json] = None
        self._layers: List[Json] = []
        self._embedding_optimizers: Dict[str, CreateOptimizer] = {}
        self._unused: Set[str] = set()  # second outputs of Interaction, which HugeCTR uses for gradients
        self._frozen: Set[str] = set()  # embeddings, and "" for the dense network
        self._files: Json = {}          # of which the training starts
        self._schedule = solver.schedule()
        self._rate: Optional[float] = None
        self._folder = os.fspath(state_folder) if state_folder else tempfile.mkdtemp(prefix="cistern_hugectr_")
        if not state_folder:
            weakref.finalize(self, shutil.rmtree, self._folder, True)
        self._generation = _last_generation(self._folder)  # of servers: files of weights are for new ones
        self._fleet: Optional[fleets.Fleet] = None
        self._steps: Any = None
        self._again = False         # the next one reads its data from the start
        self._data_is_over = False
        self._loss = 0.0
        self._told: Optional[int] = None  # the commit of the last incremental model
        self._evaluation: Optional[Json] = None
        self._batches_evaluated = 0
        self._evaluated_all = False

    # The graph.

    def add(self, layer: Any) -> None:
        """Adds the Input, a SparseEmbedding, an EmbeddingCollectionConfig or a DenseLayer."""
        if isinstance(layer, Input):
            self._input = layer.to_dict()
        elif isinstance(layer, SparseEmbedding):
            self._layers.append(layer.to_dict())
            if layer.optimizer is not None:
                self._embedding_optimizers[layer.name] = layer.optimizer
        elif isinstance(layer, DenseLayer):
            layer.bottoms = [b for b in layer.bottoms if b not in self._unused] or layer.bottoms
            if layer.type == "Interaction":
                self._unused.update(layer.tops[1:])
                layer.tops = layer.tops[:1]
            self._layers.append(layer.to_dict())
        elif isinstance(layer, EmbeddingCollectionConfig):
            for part in layer.layers(self._data()["sparse"]):
                self.add(part)
        else:
            raise UsageError(f"Model.add takes Input, SparseEmbedding, EmbeddingCollectionConfig and DenseLayer, not {type(layer).__name__}")

    def compile(self, loss_names: Sequence[str] = (), loss_weights: Sequence[float] = ()) -> None:
        """Checks the model. loss_names, loss_weights: labels, and the factors of their losses."""
        if len(loss_names) != len(loss_weights):
            raise UsageError(f"compile: {len(loss_names)} loss_names, but {len(loss_weights)} loss_weights",
                             "give each name a weight")
        for name, weight in zip(loss_names, loss_weights):
            losses = [layer for layer in self._layers if layer["type"].endswith("CrossEntropyLoss") and layer["bottom"][-1] == name]
            if not losses:
                labels = [layer["bottom"][-1] for layer in self._layers if layer["type"].endswith("CrossEntropyLoss")]
                raise UsageError(f"compile: no loss has the label {name!r}", f"name labels of Input: {', '.join(labels)}")
            losses[0]["loss_weight"] = float(weight)
        if self._etc is not None and len(self._etc.sparse_models) != len(self._embeddings()):
            raise UsageError(f"CreateETC names {len(self._etc.sparse_models)} sparse_models, and the model has "
                             f"{len(self._embeddings())} embeddings", "give one for each, in the order in which they were added")
        jobs.plan(self._config(self._reader.source[:1]), rows={name: 1 for name in self._embeddings()})

    def summary(self) -> None:
        """Prints the layers."""
        rows = [("Label", "", _list(self._data()["label"]["top"])), ("Dense", "", self._data()["dense"]["top"]),
                *(("Sparse", "", s["top"]) for s in self._data()["sparse"]),
                *((layer["type"], _list(layer["bottom"]), _list(layer.get("top", ""))) for layer in self._layers)]
        width = [max(len(row[i]) for row in rows) for i in range(2)]
        print("\n".join(f"{a:<{width[0]}}  {b:<{width[1]}}  {c}" for a, b, c in [("Layer Type", "Input Name", "Output Name"), *rows]))

    def graph_to_json(self, graph_config_file: str) -> None:
        """Writes the model file, which `cistern train` reads, too."""
        with open(graph_config_file, "w", encoding="utf-8") as file:
            json.dump(self._config(self._reader.source), file, indent=2)
            file.write("\n")

    def construct_from_json(self, graph_config_file: str, include_dense_network: bool = True) -> None:
        """Takes the layers of a model file, of HugeCTR or of this package; without the dense network, data and embeddings."""
        with open(graph_config_file, encoding="utf-8") as file:
            content = json.load(file)
        for layer in content["layers"]:
            if layer["type"] == "Data":
                self._input = {name: layer[name] for name in ("label", "dense", "sparse") if name in layer}
            elif "sparse_embedding_hparam" in layer or include_dense_network:
                self._layers.append({k: v for k, v in layer.items() if k != "optimizer"})

    # Training.

    def fit(self, num_epochs: int = 0, max_iter: int = 2000, display: int = 200, eval_interval: int = 1000,
            snapshot: int = 10000, snapshot_prefix: str = "") -> None:
        """Trains num_epochs (repeat_dataset=False) or max_iter iterations, and prints loss and metrics.

        With training_callbacks of the solver, the same by single steps.
        """
        self._pause()
        epochs = not self._solver.repeat_dataset
        if epochs and num_epochs < 1:
            raise UsageError("fit: num_epochs is missing, and repeat_dataset is False", "fit(num_epochs=1)")
        eval_interval = eval_interval if self._reader.eval_source else 0
        if self._solver.training_callbacks:
            return fit_with_callbacks(self, self._solver.training_callbacks, num_epochs if epochs else 0, max_iter, display,
                                      eval_interval, snapshot, snapshot_prefix or "./")
        solver: Json = {"num_epochs": num_epochs} if epochs else {"max_iter": max_iter}
        solver.update({"display": display, "eval_interval": eval_interval})
        if snapshot and (epochs or snapshot <= max_iter):
            solver.update({"snapshot": snapshot, "snapshot_prefix": snapshot_prefix or "./"})
        config = self._config(self._reader.source, solver)
        fleet = self._open()
        with jobs._model_file(config) as path:
            try:
                summary = json.loads(_native.train(fleet.native, path, [], os.path.join(self._folder, "run"), 0,
                                                   self._has_commits(), True, True, "", False, print))
            finally:
                self._ended()  # also after Ctrl-C, and after an error in the data
        self._loss = summary["loss"]
        self._data_is_over = epochs

    def train(self, reset: bool = True) -> bool:
        """Trains one batch; False once the data is over. reset has no effect."""
        if self._data_is_over:
            return False
        try:
            loss = self._begun().step(self._rate)
        except Error:
            self._ended()
            raise
        self._evaluation = None
        if loss is not None:
            self._loss = loss
            return True
        self._ended()
        self._data_is_over = True
        return False

    def get_current_loss(self) -> float:
        """The loss of the last batch."""
        return self._loss

    def get_learning_rate_scheduler(self) -> LearningRateScheduler:
        """The learning rates of the solver."""
        return LearningRateScheduler(self)

    def reset_learning_rate_scheduler(self, base_lr: float, warmup_steps: int = 1, decay_start: int = 0, decay_steps: int = 1,
                                      decay_power: float = 2.0, end_lr: float = 0.0) -> None:
        """Other learning rates, from the first batch of the data on: training starts there again."""
        self._schedule = {"learning_rate": base_lr, "warmup_steps": max(warmup_steps, 1), "decay_start": decay_start,
                          "decay_steps": max(decay_steps, 1), "decay_power": decay_power, "end_lr": end_lr}
        self._retrained()

    def set_learning_rate(self, lr: float) -> None:
        """The learning rate of the next iterations."""
        self._rate = float(lr)

    def get_data_reader_train(self) -> DataReader:
        """The training data."""
        return DataReader(self, evaluates=False)

    def get_data_reader_eval(self) -> DataReader:
        """The evaluation data."""
        return DataReader(self, evaluates=True)

    def get_embedding_training_cache(self) -> EmbeddingTrainingCache:
        """The passes."""
        return EmbeddingTrainingCache(self)

    get_model_oversubscriber = get_embedding_training_cache  # HugeCTR 2.3

    def start_data_reading(self) -> None:
        """Nothing: data is read when it is needed."""

    def set_source(self, source: Union[str, Sequence[str]], keyset: Union[str, Sequence[str]] = "", eval_source: str = "") -> None:
        """Other data for the next training: from its start."""
        # set_source(source, eval_source) is HugeCTR's second form.
        if isinstance(source, str) and isinstance(keyset, str) and keyset and not eval_source:
            keyset, eval_source = "", keyset
        self._set_training(_sources(source))
        self._set_keyset(_sources(keyset))
        if eval_source:
            self._set_evaluation(eval_source)

    # Evaluation.

    def eval(self) -> bool:
        """Evaluates one batch; False once the evaluation data is over.

        All batches, at most the solver's max_eval_batches, are evaluated at the first call.
        """
        if self._evaluation is None:
            self._evaluation = self._evaluate()
            self._batches_evaluated, self._evaluated_all = 0, False
        self._batches_evaluated += 1
        batches = -(-self._evaluation["samples"] // self._solver.batchsize_eval)
        self._evaluated_all = self._batches_evaluated >= batches and batches < self._solver.max_eval_batches
        return not self._evaluated_all

    def get_eval_metrics(self) -> List[Tuple[str, float]]:
        """The metrics of the solver: [("AUC", 0.78)]."""
        result = self._evaluation or self._evaluate()
        self._evaluation = None
        names = {"AUC": "auc", "AverageLoss": "average_loss", "HitRate": "hit_rate", "NDCG": "ndcg", "SMAPE": "smape"}
        asked = [getattr(metric, "value", metric) for metric in self._solver.metrics_spec]
        return [(name, result[names[name]]) for name in asked if result.get(names.get(name, "")) is not None]

    def export_predictions(self, output_prediction_file_name: str, output_label_file_name: str) -> None:
        """Writes a prediction and a label a line, of the evaluation data."""
        self._pause()
        with tempfile.TemporaryDirectory() as folder, jobs._model_file(self._config(self._reader.source)) as path:
            both = os.path.join(folder, "both")
            _native.evaluate(self._open().native, path, [], 0, _sources(self._reader.eval_source), both)
            with open(both) as lines, open(output_prediction_file_name, "w") as predictions, open(output_label_file_name, "w") as labels:
                for line in lines:
                    fields = line.split()
                    labels.writelines(f"{label}\n" for label in fields[0::2])
                    predictions.writelines(f"{prediction}\n" for prediction in fields[1::2])

    # Weights.

    def get_incremental_model(self) -> "List[Tuple[np.ndarray, np.ndarray]]":
        """The rows that training has changed since the last call: for each embedding, keys [n] and vectors [n, dim].

        They are truly the changed rows: of keys that a keyset holds and no batch has read, there are none. All rows, if
        training has committed more than twice since then: servers keep three commits.
        """
        import numpy as np

        self._pause()
        dims = {layer["name"]: layer["sparse_embedding_hparam"]["embedding_vec_size"]
                for layer in self._layers if "sparse_embedding_hparam" in layer}
        nothing = [(np.empty(0, np.int64), np.empty((0, dim), np.float32)) for dim in dims.values()]
        if not self._is_trained():
            return nothing
        fleet = self._open()
        last = fleet.last_commit().number
        if self._told == last:
            return nothing
        before, self._told = self._told or self._first_commit(), last
        if before and before not in [one["commit"] for one in jobs.commits(fleet)]:
            note(f"get_incremental_model returns all rows: commit {before}, that of the last call, is no longer kept; call it "
                 "after each set_source")
            before = 0
        if not before:
            return [_all_rows(fleet, name, dim) for name, dim in dims.items()]
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "changes")
            jobs.save_changes(fleet.state, since=before, out=out, format="binary")
            changes = jobs.read_changes(out)
        return [changes[name][:2] if name in changes else none for name, none in zip(dims, nothing)]

    def save_params_to_files(self, prefix: str, iter: int = 0) -> None:
        """Writes HugeCTR 3.x's files: PREFIX_dense_ITER.model, PREFIX0_sparse_ITER.model/ and so on.

        With an embedding training cache, the sparse models are the folders that CreateETC names.
        """
        self._save(prefix, iter, "v3")
        for i, model in enumerate(self._etc.sparse_models if self._etc is not None else []):
            written = f"{prefix}{i}_sparse_{iter}.model"
            os.makedirs(model, exist_ok=True)
            for name in os.listdir(written):  # nothing else in the folder is touched
                shutil.move(os.path.join(written, name), os.path.join(model, name))
            os.rmdir(written)

    def load_dense_weights(self, dense_model_file: str) -> None:
        """The dense weights of a file, for the training from here on."""
        self._load("dense_model_file", dense_model_file)

    def load_dense_optimizer_states(self, dense_opt_states_file: str) -> None:
        """The optimizer state of the dense weights."""
        self._load("dense_opt_states_file", dense_opt_states_file)

    def load_sparse_weights(self, sparse_embedding_files: Union[Sequence[str], Dict[str, str]]) -> None:
        """The rows of all embeddings, in their order, or of some by name."""
        names = self._embeddings()
        if isinstance(sparse_embedding_files, dict):
            unknown = set(sparse_embedding_files) - set(names)
            if unknown:
                raise UsageError(f"load_sparse_weights: there is no embedding {sorted(unknown)[0]!r}",
                                 f"the embeddings are {', '.join(names)}")
            files = [sparse_embedding_files.get(name, "") for name in names]
        else:
            files = [str(f) for f in sparse_embedding_files]
            if len(files) != len(names):
                raise UsageError(f"load_sparse_weights: {len(files)} files for {len(names)} embeddings", "give one for each")
        self._load("sparse_model_file", files)

    def load_sparse_optimizer_states(self, sparse_opt_states_files: Any) -> None:
        """Nothing: the state of rows is read from the folder of their weights, if it holds any."""
        note("load_sparse_optimizer_states has no effect here: HugeCTR writes that file in the order of GPU memory")

    def freeze_dense(self) -> None:
        """Keeps the dense weights as they are. Training starts at the first batch of the data again, as after the calls below."""
        self._freeze({""})

    def freeze_embedding(self, embedding_name: str = "") -> None:
        """Keeps the rows of an embedding, or of all, as they are."""
        self._freeze(self._chosen(embedding_name))

    def unfreeze_dense(self) -> None:
        """The dense weights are trained again."""
        self._thaw({""})

    def unfreeze_embedding(self, embedding_name: str = "") -> None:
        """The rows of an embedding, or of all, are trained again."""
        self._thaw(self._chosen(embedding_name))

    def check_out_tensor(self, tensor_name: str, tensor_type: Any) -> Any:
        """Not supported."""
        raise UsageError("check_out_tensor is not supported here", "train with cistern_ps.torch to look at tensors")

    # What the parts above are made of.

    def _embeddings(self) -> List[str]:
        return [layer["name"] for layer in self._layers if "sparse_embedding_hparam" in layer]

    def _chosen(self, name: str) -> Set[str]:
        if name and name not in self._embeddings():
            raise UsageError(f"there is no embedding {name!r}", f"the embeddings are {', '.join(self._embeddings())}")
        return {name} if name else set(self._embeddings())

    def _data(self) -> Json:
        if self._input is None:
            raise UsageError("the model has no Input", "model.add(hugectr.Input(...))")
        return {"name": "data", "type": "Data", **self._reader.to_dict(), **self._input}

    def _config(self, source: Sequence[str], solver: Optional[Json] = None) -> Json:
        """The model file. solver: the length of the training; by default its data once, or for ever."""
        passes = self._etc is not None
        length: Json = {"num_epochs": 1} if not self._solver.repeat_dataset else {"max_iter": _FOREVER}
        layers: List[Json] = [{**self._data(), "source": ",".join(source)}]
        for layer in self._layers:
            layer = dict(layer)
            if "sparse_embedding_hparam" in layer:
                rule = self._embedding_optimizers.get(layer["name"], self._optimizer)
                layer["optimizer"] = rule.to_dict(self._schedule, passes, layer["name"] in self._frozen)
            layers.append(layer)
        return {"solver": {**self._solver.to_dict(), **(solver or {**length, "display": 0}), **self._files},
                "optimizer": self._optimizer.to_dict(self._schedule, passes, "" in self._frozen), "layers": layers}

    def _open(self) -> fleets.Fleet:
        if self._fleet is None:
            folder = os.path.join(self._folder, f"servers-{self._generation}")
            limit, caches = (self._etc.memory_limit_mb, self._etc.pass_caches(self._embeddings())) if self._etc else (0.0, [])
            self._fleet = fleets._embedded(folder, 1, limit, caches)
            if self._fleet.is_created:
                self._fleet.claim()  # finds the newest commit of a folder that was there
            models = self._etc.sparse_models if self._etc is not None else []
            if any(map(os.path.isdir, models)) and "sparse_model_file" not in self._files:
                self._files["sparse_model_file"] = [m if os.path.isdir(m) else "" for m in models]
        return self._fleet

    def _has_commits(self) -> bool:
        return self._fleet is not None and self._fleet.last_commit().number > 0

    def _is_trained(self) -> bool:
        """Whether the servers hold what was trained. Steps of a run that goes on are not there yet."""
        return self._fleet is not None and self._fleet.last_commit().number > self._first_commit()

    def _first_commit(self) -> int:
        """The commit before the first step: that of the files from which training starts, if there are any."""
        return 1 if self._files else 0

    def _begun(self) -> Any:
        """The run in which steps are trained."""
        if self._steps is None:
            fleet = self._open()
            with jobs._model_file(self._config(self._reader.source)) as path:
                self._steps = _native.start_steps(fleet.native, path, [], "", 0, self._has_commits(), self._again)
        return self._steps

    def _pause(self) -> None:
        """Commits what was trained; the next step continues with the next batch."""
        if self._steps is None:
            return
        steps, self._steps = self._steps, None
        trained = steps.iterations > 0
        steps.stop()
        self._fleet.refresh()  # type: ignore[union-attr]
        self._again = False if trained else self._again

    def _ended(self) -> None:
        """The run is over: its data is, or there was an error. The next one reads its data from the start."""
        self._steps = None
        self._open().refresh()
        self._evaluation = None
        self._again = True

    def _changed(self) -> None:
        """What the next steps are evaluated or checked with is another."""
        self._pause()
        self._evaluation = None

    def _retrained(self) -> None:
        """What the next steps are trained with is another: they start with the first batch of the data."""
        self._changed()
        self._again, self._data_is_over = True, False

    def _set_training(self, source: List[str]) -> None:
        self._changed()
        self._reader.source = source
        self._again, self._data_is_over = True, False

    def _set_keyset(self, keyset: List[str]) -> None:
        if keyset != self._reader.keyset:
            self._changed()
            self._reader.keyset = keyset

    def _set_evaluation(self, source: str) -> None:
        self._evaluated_all = False
        self._evaluation = None
        if source and source != self._reader.eval_source:
            self._changed()
            self._reader.eval_source = source

    def _evaluate(self) -> Json:
        if not self._reader.eval_source:
            raise UsageError("there is no evaluation data", "eval_source=... of DataReaderParams")
        if (self._steps is not None or not self._has_commits()) and not self._begun().has_ended:
            return dict(json.loads(self._steps.evaluate()))
        with jobs._model_file(self._config(self._reader.source)) as path:
            return dict(json.loads(_native.evaluate(self._open().native, path, [], 0, [], "")))

    def _save(self, prefix: str, iteration: int, version: str) -> None:
        self._pause()
        if not self._is_trained():
            raise UsageError("there is nothing to save: the model was not trained", "fit or train first")
        jobs.export(self._open(), prefix, form="hugectr", config=self._config(self._reader.source), version=version,
                    iteration=iteration)

    def _load(self, name: str, value: Any) -> None:
        """Starts anew from files: those named, and of the other parts what is there now."""
        for file in [value] if isinstance(value, str) else value:
            if file and "://" not in file and not os.path.exists(file):
                raise UsageError(f"there is no file {file!r} to load", "name what save_params_to_files or a snapshot of fit has "
                                 "written; paths are relative to the current folder")
        self._changed()
        self._data_is_over = False
        if self._is_trained():
            prefix = os.path.join(self._folder, f"before-{self._generation}")
            self._save(prefix, 0, "v3")
            self._files = {"dense_model_file": f"{prefix}_dense_0.model", "dense_opt_states_file": f"{prefix}_opt_dense_0.model",
                           "sparse_model_file": [f"{prefix}{i}_sparse_0.model" for i in range(len(self._embeddings()))]}
            if name == "dense_model_file":  # of other weights
                del self._files["dense_opt_states_file"]
        if self._fleet is not None:
            self._fleet.close()
            self._fleet, self._told = None, None
            self._generation += 1
        if name == "sparse_model_file":
            old = self._files.get(name, [""] * len(value))
            value = [new or before for new, before in zip(value, old)]
        self._files[name] = value

    def _freeze(self, names: Set[str]) -> None:
        self._retrained()
        self._frozen |= names

    def _thaw(self, names: Set[str]) -> None:
        self._retrained()
        self._frozen -= names


def _last_generation(folder: str) -> int:
    names = os.listdir(folder) if os.path.isdir(folder) else []
    found = [re.fullmatch("servers-([0-9]+)", name) for name in names]
    return max([1, *(int(match[1]) for match in found if match)])


def _all_rows(fleet: fleets.Fleet, name: str, dim: int) -> "Tuple[np.ndarray, np.ndarray]":
    import numpy as np

    pieces = list(fleet.table(name).scan()) or [(np.empty(0, np.int64), np.empty((0, dim), np.float32))]
    return np.concatenate([keys for keys, _ in pieces]), np.concatenate([values[:, :dim] for _, values in pieces])


def _list(names: Union[str, Sequence[str]]) -> str:
    return names if isinstance(names, str) else ",".join(names)
