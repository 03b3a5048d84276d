"""What a HugeCTR model is made of, and how each part reads in a model file."""

from __future__ import annotations

import difflib
import inspect
import math
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from ..arguments import integer, number
from ..errors import UsageError
from .callbacks import TrainingCallback
from .words import (Activation_t, Check_t, DataReaderType_t, Embedding_t, GroupLayer_t, Initializer_t, Layer_t, LrPolicy_t, MetricsType,
                    Optimizer_t, Regularizer_t, Update_t, ignored, note)

Json = Dict[str, Any]

_GPU = "it selects how HugeCTR uses GPUs"
# Arguments of HugeCTR's CreateSolver that have no effect here, and those of which nothing needs to be said.
_SILENT = ("drop_incomplete_batch", "kafka_brockers", "kafka_brokers", "is_dlrm", "perf_logging")
_SELECTS = ("all_reduce_algo", "async_mlp_wgrad", "device_layout", "embedding_collection_config", "eval_inter_iteration_overlap",
            "eval_intra_iteration_overlap", "eval_overlap", "gen_loss_summary", "grouped_all_reduce", "num_iterations_statistics",
            "overlap_ar_a2a", "overlap_init_wgrad", "overlap_lr", "train_inter_iteration_overlap",
            "train_intra_iteration_overlap", "use_embedding_collection", "use_holistic_cuda_graph", "use_overlapped_pipeline")


def _check_names(call: str, others: Json, function: Any) -> None:
    """Refuses a name that is nearly that of an argument, which would be passed over."""
    known = [name for name in inspect.signature(function).parameters if name not in ("self", "others")]
    for name in others:
        near = difflib.get_close_matches(name, known, 1, 0.75)
        if near and name not in _SILENT + _SELECTS:
            raise UsageError(f"{call}: there is no argument {name!r}", f"is it {near[0]}?")


def _value(word: Any) -> Any:
    return word.value if hasattr(word, "value") else word


class CreateSolver:
    """How long and how fast a model is trained. device: "cpu" or "cuda", a word of Cistern.

    training_callbacks: objects of classes that derive from TrainingCallback.
    """

    def __init__(self, model_name: str = "", seed: int = 0, lr_policy: Any = LrPolicy_t.fixed, lr: float = 0.001,
                 warmup_steps: int = 1, decay_start: int = 0, decay_steps: int = 1, decay_power: float = 2.0, end_lr: float = 0.0,
                 max_eval_batches: int = 100, batchsize_eval: int = 2048, batchsize: int = 2048, vvgpu: Any = None,
                 repeat_dataset: bool = True, use_mixed_precision: bool = False, enable_tf32_compute: bool = False,
                 scaler: float = 1.0, metrics_spec: Optional[Dict[Any, float]] = None, i64_input_key: bool = False,
                 use_algorithm_search: bool = True, use_cuda_graph: bool = True,
                 training_callbacks: Sequence[TrainingCallback] = (), **others: Any):
        self.model_name, self.seed = model_name or "model", seed
        self.lr, self.warmup_steps, self.decay_start = lr, warmup_steps, decay_start
        self.decay_steps, self.decay_power, self.end_lr = decay_steps, decay_power, end_lr
        self.max_eval_batches, self.batchsize_eval, self.batchsize = max_eval_batches, batchsize_eval, batchsize
        self.vvgpu, self.repeat_dataset = vvgpu or [[0]], repeat_dataset
        self.use_mixed_precision, self.enable_tf32_compute, self.scaler = use_mixed_precision, enable_tf32_compute, scaler
        self.metrics_spec = metrics_spec or {MetricsType.AUC: 1.0}
        self.i64_input_key, self.use_cuda_graph = i64_input_key, use_cuda_graph
        self.training_callbacks = list(training_callbacks)
        if sum(map(len, self.vvgpu)) > 1:
            note("vvgpu names several GPUs: this process is one worker; cistern-worker trains with one process a GPU")
        for name, number in (("lr", lr), ("decay_power", decay_power), ("end_lr", end_lr), ("scaler", scaler)):
            if isinstance(number, float) and not math.isfinite(number):
                raise UsageError(f"CreateSolver: {name} is {number}", "give a finite number")
        _check_names("CreateSolver", others, CreateSolver)
        ignored("CreateSolver", _GPU, others, {name: None for name in others if name not in _SILENT})

    def schedule(self) -> Json:
        """The learning rate, in the constants of an optimizer."""
        return {"learning_rate": self.lr, "warmup_steps": max(self.warmup_steps, 1), "decay_start": self.decay_start,
                "decay_steps": max(self.decay_steps, 1), "decay_power": self.decay_power, "end_lr": self.end_lr}

    def to_dict(self) -> Json:
        """The "solver" of a model file, without the length of the training."""
        metrics = []
        for metric, threshold in self.metrics_spec.items():
            name = _value(metric)
            metrics.append(f"{name}:{threshold}" if name == "AUC" and threshold < 1 else name)
        solver: Json = {"lr_policy": "fixed", "batchsize": self.batchsize, "batchsize_eval": self.batchsize_eval,
                        "eval_batches": self.max_eval_batches, "eval_metrics": metrics or ["AUC"], "seed": self.seed,
                        "input_key_type": "I64" if self.i64_input_key else "I32"}
        if self.use_mixed_precision:
            solver["mixed_precision"] = int(self.scaler) if self.scaler > 1 else 1024
        if self.enable_tf32_compute:
            solver["enable_tf32_compute"] = True
        if not self.use_cuda_graph:
            solver["cuda_graph"] = False
        return solver


class AsyncParam:
    """How HugeCTR reads a Raw file; only is_dense_float has an effect here."""

    def __init__(self, num_threads: int = 1, num_batches_per_thread: int = 1, max_num_requests_per_thread: int = 1,
                 io_depth: int = 1, io_alignment: int = 1, shuffle: bool = False, aligned_type: Any = None,
                 multi_hot_reader: bool = True, is_dense_float: bool = True):
        self.shuffle, self.is_dense_float = shuffle, is_dense_float


class DataSourceParams:
    """Where HugeCTR finds remote files; here the paths say it: s3://, gs://, hdfs://."""

    def __init__(self, *arguments: Any, **named: Any):
        pass


class HybridEmbeddingParam:
    """How HugeCTR places a hybrid embedding on GPUs; no effect here."""

    def __init__(self, *arguments: Any, **named: Any):
        note("HybridEmbeddingParam has no effect here: rows are held by servers")


class DenseLayerComputeConfig:
    """How HugeCTR orders products on a GPU; no effect here."""

    def __init__(self, *arguments: Any, **named: Any):
        pass


def _sources(source: Union[str, Sequence[str], None]) -> List[str]:
    if source is None or source == "":
        return []
    return [source] if isinstance(source, str) else [str(s) for s in source]


class DataReaderParams:
    """The data: its format and files."""

    def __init__(self, data_reader_type: Any, source: Union[str, Sequence[str]] = "", keyset: Union[str, Sequence[str]] = "",
                 eval_source: str = "", check_type: Any = Check_t.Non, cache_eval_data: int = 0, num_samples: int = 0,
                 eval_num_samples: int = 0, float_label_dense: bool = False, read_file_sequentially: bool = False,
                 num_workers: int = 12, slot_size_array: Sequence[int] = (), data_source_params: Any = None,
                 async_param: Optional[AsyncParam] = None):
        self.format = str(_value(data_reader_type))
        self.source, self.keyset, self.eval_source = _sources(source), _sources(keyset), eval_source
        self.check = str(_value(check_type))
        self.cache_eval_data, self.num_samples, self.eval_num_samples = cache_eval_data, num_samples, eval_num_samples
        self.float_label_dense = float_label_dense or (async_param is not None and async_param.is_dense_float)
        self.slot_size_array = [int(s) for s in slot_size_array]

    def to_dict(self) -> Json:
        """The part of the Data layer that says where the data is."""
        layer: Json = {"format": self.format, "source": ",".join(self.source),
                       "check": self.check if self.format == "Norm" else "None"}
        if self.eval_source:
            layer["eval_source"] = self.eval_source
        if self.keyset:
            layer["keyset"] = self.keyset
        if self.slot_size_array:
            layer["slot_size_array"] = self.slot_size_array
        if self.format == "Raw":
            layer["float_label_dense"] = self.float_label_dense
            for name in ("num_samples", "eval_num_samples"):
                if getattr(self, name) > 0:
                    layer[name] = getattr(self, name)
        if self.cache_eval_data:
            layer["cache_eval_data"] = self.cache_eval_data
        return layer


_HPARAM = {"Adam": "adam_hparam", "SGD": "sgd_hparam", "MomentumSGD": "momentum_sgd_hparam", "Nesterov": "nesterov_hparam",
           "AdaGrad": "adagrad_hparam", "Ftrl": "ftrl_hparam"}


class CreateOptimizer:
    """An update rule: of the dense weights, and of embeddings without one of their own."""

    def __init__(self, optimizer_type: Any = Optimizer_t.Adam, update_type: Any = Update_t.Global, beta1: float = 0.9,
                 beta2: float = 0.999, epsilon: float = 1e-7, initial_accu_value: float = 0.0, momentum_factor: float = 0.0,
                 beta: float = 0.0, lambda1: float = 0.0, lambda2: float = 0.0, atomic_update: bool = True):
        self.type, self.update_type = str(_value(optimizer_type)), str(_value(update_type))
        if self.type not in _HPARAM:
            raise UsageError(f"CreateOptimizer: there is no optimizer {self.type}", f"use one of {', '.join(_HPARAM)}")
        self.constants: Json = {}
        if self.type == "Adam":
            self.constants = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon}
        elif self.type in ("MomentumSGD", "Nesterov"):
            self.constants = {"momentum_factor": momentum_factor}
        elif self.type == "AdaGrad":
            self.constants = {"initial_accu_value": initial_accu_value, "epsilon": epsilon}
        elif self.type == "Ftrl":
            self.constants = {"beta": beta, "lambda1": lambda1, "lambda2": lambda2}

    def to_dict(self, schedule: Json, passes: bool, frozen: bool = False) -> Json:
        """An "optimizer" of a model file. passes: an embedding training cache holds the rows of a pass alone."""
        update = self.update_type
        if passes and update != "Local":
            note(f"update_type {update} and an embedding training cache: rows that are not in a pass are not there to be "
                 "updated; Local is used")
            update = "Local"
        rate = {**schedule, "learning_rate": 0.0} if frozen else schedule
        return {"type": self.type, "update_type": update, _HPARAM[self.type]: {**self.constants, **rate}}


class CreateHMemCache:
    """How much of a cached table is in memory.

    num_blocks: so many of the largest pass so far fit. When they are full, rows are exchanged for those of a pass that
    finds less than the share `target_hit_rate` of its rows in memory, at most `max_num_evict` times.
    """

    def __init__(self, num_blocks: int, target_hit_rate: float, max_num_evict: int):
        if not 0 <= number("target_hit_rate", target_hit_rate) <= 1:
            raise UsageError(f"CreateHMemCache: target_hit_rate is a rate from 0 to 1, not {target_hit_rate}")
        self.num_blocks, self.max_num_evict = integer("num_blocks", num_blocks, 1), integer("max_num_evict", max_num_evict)
        self.target_hit_rate = target_hit_rate


class CreateETC:
    """The embedding training cache: passes, whose rows come from and go to a parameter server.

    sparse_models: a folder for each embedding, which `Model.save_params_to_files` writes; those that exist are where the
    training starts. Rows of cached tables that find no room in memory (CreateHMemCache) stay in files. memory_limit_mb: a
    word of Cistern: the memory for the rows of all tables, in place of that; 0: none.
    """

    def __init__(self, ps_types: Sequence[Any], sparse_models: Sequence[str], local_paths: Sequence[str] = (),
                 hmem_cache_configs: Sequence[CreateHMemCache] = (), memory_limit_mb: float = 0):
        if len(ps_types) != len(sparse_models):
            raise UsageError(f"CreateETC: {len(ps_types)} ps_types, but {len(sparse_models)} sparse_models",
                             "give both one entry for each embedding")
        self.ps_types = [str(_value(p)) for p in ps_types]
        self.sparse_models = [str(s) for s in sparse_models]
        self.memory_limit_mb = memory_limit_mb
        cached = self.ps_types.count("Cached")
        if cached and len(hmem_cache_configs) not in (1, cached):
            raise UsageError(f"CreateETC: {len(hmem_cache_configs)} hmem_cache_configs for {cached} cached tables",
                             "give one for all, or one for each")
        if cached and not local_paths:
            raise UsageError("CreateETC: cached tables need local_paths", 'local_paths=["./"]')
        self._caches = list(hmem_cache_configs) * (cached if len(hmem_cache_configs) == 1 else 1)

    def pass_caches(self, embeddings: Sequence[str]) -> List[Tuple[str, int, float, int]]:
        """The cached tables: name, num_blocks, target_hit_rate and max_num_evict."""
        if self.memory_limit_mb:
            return []
        names = [name for name, kind in zip(embeddings, self.ps_types) if kind == "Cached"]
        return [(name, c.num_blocks, c.target_hit_rate, c.max_num_evict) for name, c in zip(names, self._caches)]


class DataReaderSparseParam:
    """A sparse input. nnz_per_slot: the most keys of a slot, or of each."""

    def __init__(self, top_name: str, nnz_per_slot: Union[int, Sequence[int]], is_fixed_length: bool, slot_num: int):
        self.top_name, self.slot_num, self.is_fixed_length = top_name, slot_num, is_fixed_length
        self.nnz_per_slot = nnz_per_slot if isinstance(nnz_per_slot, int) else [int(n) for n in nnz_per_slot]

    def to_dict(self) -> Json:
        """The input in the Data layer."""
        return {"top": self.top_name, "type": "DistributedSlot", "slot_num": self.slot_num, "nnz_per_slot": self.nnz_per_slot,
                "is_fixed_length": self.is_fixed_length}


class Input:
    """The names and sizes of labels, dense features and sparse inputs."""

    def __init__(self, label_dim: Any = None, label_name: Any = None, dense_dim: int = 0, dense_name: str = "dense",
                 data_reader_sparse_param_array: Sequence[DataReaderSparseParam] = (), label_dims: Any = None,
                 label_names: Any = None):
        label_dim = label_dims if label_dim is None else label_dim
        label_name = label_names if label_name is None else label_name
        if label_dim is None or label_name is None:
            raise UsageError("Input: label_dim and label_name are missing", 'label_dim=1, label_name="label"')
        dims = [label_dim] if isinstance(label_dim, int) else list(label_dim)
        names = [label_name] if isinstance(label_name, str) else list(label_name)
        if len(dims) != len(names) or not names:
            raise UsageError(f"Input: {len(names)} names for {len(dims)} labels", "give each label a name and a number of columns")
        self.label_dims, self.label_names = dims, names
        self.dense_dim, self.dense_name = dense_dim, dense_name
        self.sparse = list(data_reader_sparse_param_array)

    def to_dict(self) -> Json:
        """The part of the Data layer that says what a sample is."""
        several = len(self.label_names) > 1
        return {"label": {"top": self.label_names if several else self.label_names[0],
                          "label_dim": self.label_dims if several else self.label_dims[0]},
                "dense": {"top": self.dense_name, "dense_dim": self.dense_dim}, "sparse": [s.to_dict() for s in self.sparse]}


class SparseEmbedding:
    """Rows of an input's keys, combined by slot."""

    def __init__(self, embedding_type: Any, workspace_size_per_gpu_in_mb: int = 0, embedding_vec_size: int = 0,
                 combiner: Union[str, int] = "sum", sparse_embedding_name: str = "", bottom_name: str = "",
                 slot_size_array: Sequence[int] = (), optimizer: Optional[CreateOptimizer] = None,
                 hybrid_embedding_param: Any = None, max_vocabulary_size_per_gpu: int = 0):
        self.type = str(_value(embedding_type))
        self.name, self.bottom, self.optimizer = sparse_embedding_name, bottom_name, optimizer
        self.hparam: Json = {"embedding_vec_size": embedding_vec_size, "combiner": combiner}
        if workspace_size_per_gpu_in_mb:
            self.hparam["workspace_size_per_gpu_in_mb"] = workspace_size_per_gpu_in_mb
        if max_vocabulary_size_per_gpu:
            self.hparam["max_vocabulary_size_per_gpu"] = max_vocabulary_size_per_gpu
        if len(slot_size_array):
            self.hparam["slot_size_array"] = [int(s) for s in slot_size_array]

    def to_dict(self) -> Json:
        """The layer, without its optimizer, whose rate is the solver's."""
        return {"name": self.name, "type": self.type, "bottom": self.bottom, "top": self.name,
                "sparse_embedding_hparam": self.hparam}


# Where a parameter of DenseLayer belongs in a layer of the file: (object, name).
_PLACES = {
    "InnerProduct": {"num_output": ("fc_param", "num_output"), "weight_init_type": ("fc_param", "weight_init"),
                     "bias_init_type": ("fc_param", "bias_init")},
    "BatchNorm": {"factor": ("bn_param", "factor"), "eps": ("bn_param", "eps"), "gamma_init_type": ("bn_param", "gamma_init"),
                  "beta_init_type": ("bn_param", "beta_init")},
    "MultiCross": {"num_layers": ("mc_param", "num_layers"), "weight_init_type": ("mc_param", "weight_init"),
                   "bias_init_type": ("mc_param", "bias_init"), "projection_dim": ("mc_param", "projection_dim")},
    "LayerNorm": {"eps": ("ln_param", "eps"), "gamma_init_type": ("ln_param", "gamma_init"),
                  "beta_init_type": ("ln_param", "beta_init")},
    "MLP": {"num_outputs": ("mlp_param", "num_outputs"), "act_type": ("mlp_param", "activation"),
            "activations": ("mlp_param", "activations"), "use_bias": ("mlp_param", "use_bias"),
            "biases": ("mlp_param", "biases"), "weight_init_type": ("mlp_param", "weight_init"),
            "bias_init_type": ("mlp_param", "bias_init")},
    "GRU": {name: ("gru_param", name.replace("_init_type", "_init")) for name in (
        "num_output", "batchsize", "SeqLength", "vector_size", "weight_init_type", "bias_init_type")},
    "ELU": {"elu_alpha": ("elu_param", "alpha")},
    "PReLU_Dice": {"elu_alpha": ("prelu_dice_param", "alpha"), "eps": ("prelu_dice_param", "eps")},
    "Scale": {"axis": ("scale_param", "axis"), "factor": ("scale_param", "factor")},
    "Dropout": {"dropout_rate": ("", "rate")},
    "Multiply": {"weight_dims": ("", "weight_dims"), "weight_init_type": ("", "weight_init")},
    "MultiCrossEntropyLoss": {"target_weight_vec": ("", "target_weight")},
}
_PLACES["FusedInnerProduct"] = _PLACES["InnerProduct"]
_LOSSES = ("BinaryCrossEntropyLoss", "CrossEntropyLoss", "MultiCrossEntropyLoss")
# Objects that a layer of the file always has, and what HugeCTR's Python has for a parameter that is not given.
_DEFAULTS: Dict[str, Json] = {
    "BatchNorm": {"factor": 1.0, "eps": 1e-5}, "ELU": {"elu_alpha": 1.0}, "Dropout": {"dropout_rate": 0.5},
    "InnerProduct": {"num_output": 1}, "FusedInnerProduct": {"num_output": 1}, "ReduceSum": {"axis": 1},
    "ReduceMean": {"axis": 1},
}
# Parameters that choose between kernels of HugeCTR.
_KERNELS = {"pos_type", "act_type", "compute_config", "use_bias"}
_SAME_TYPE = {"ReLUHalf": "ReLU"}


class DenseLayer:
    """A layer of the network, or its loss. Parameters: those of HugeCTR's layer."""

    def __init__(self, layer_type: Any, bottom_names: Sequence[str], top_names: Sequence[str], **parameters: Any):
        self.type = _SAME_TYPE.get(str(_value(layer_type)), str(_value(layer_type)))
        self.bottoms = [bottom_names] if isinstance(bottom_names, str) else list(bottom_names)
        self.tops = [top_names] if isinstance(top_names, str) else list(top_names)
        self.parameters = parameters

    def to_dict(self) -> Json:
        """The layer of the file."""
        layer: Json = {"name": self.tops[0], "type": self.type, "bottom": self.bottoms[0] if len(self.bottoms) == 1 else
                       self.bottoms, "top": self.tops[0] if len(self.tops) == 1 else self.tops}
        given = {**_DEFAULTS.get(self.type, {}), **self.parameters}
        if self.type == "Reshape" and given.pop("shape", None) is not None:
            given.update(self._of_shape(self.parameters["shape"]))
        if self.type == "Reshape" and not given.pop("selected", bool(given.get("selected_slots"))):
            given.pop("selected_slots", None)
        if self.type == "Reshape" and given.pop("selected_slots", None):
            layer["selected"] = list(self.parameters["selected_slots"])
        if self.type in _LOSSES:
            self._regularize(given, layer)
        for name, value in given.items():
            self._put(name, value, layer)
        return layer

    def _put(self, name: str, value: Any, layer: Json) -> None:
        place = _PLACES.get(self.type, {}).get(name)
        if place is None and name in _KERNELS:
            return
        if value is Initializer_t.Default or (name in ("activations", "biases") and not value):
            return
        group, key = place or ("", name)
        value = [_value(one) for one in value] if isinstance(value, (list, tuple)) else _value(value)
        (layer.setdefault(group, {}) if group else layer)[key] = value

    def _of_shape(self, shape: Sequence[int]) -> Json:
        if list(shape[:-1]).count(-1) != 1 or shape[0] != -1 or len(shape) not in (2, 3):
            raise UsageError(f"Reshape {self.tops[0]}: shape is [-1, n] or [-1, time_step, n], not {list(shape)}")
        return {"leading_dim": shape[-1], **({"time_step": shape[1]} if len(shape) == 3 else {})}

    def _regularize(self, given: Json, layer: Json) -> None:
        kind, factor, use = given.pop("regularizer_type", None), given.pop("lambda", None), given.pop("use_regularizer", False)
        factor = given.pop("lambda_", factor)
        if use and kind is not None and kind is not Regularizer_t.Non:
            layer["regularizer"], layer["lambda"] = _value(kind), factor or 0.0


class GroupDenseLayer(DenseLayer):
    """Fused layers of HugeCTR 3.x before MLP: an MLP of which each output has a name."""

    def __init__(self, group_layer_type: Any = GroupLayer_t.GroupFusedInnerProduct, bottom_name_list: Sequence[str] = (),
                 top_name_list: Sequence[str] = (), num_outputs: Sequence[int] = (), last_act_type: Any = Activation_t.Relu,
                 bottom_name: Sequence[str] = ()):
        if len(top_name_list) != len(num_outputs) or len(num_outputs) < 2:
            raise UsageError(f"GroupDenseLayer: {len(top_name_list)} top_name_list, but {len(num_outputs)} num_outputs",
                             "give both an entry for each layer, two or more")
        super().__init__(Layer_t.MLP, list(bottom_name_list or bottom_name), list(top_name_list), num_outputs=list(num_outputs),
                         activations=[Activation_t.Relu] * (len(num_outputs) - 1) + [last_act_type])


__all__ = ["AsyncParam", "CreateETC", "CreateHMemCache", "CreateOptimizer", "CreateSolver", "DataReaderParams",
           "DataReaderSparseParam", "DataReaderType_t", "DataSourceParams", "DenseLayer", "DenseLayerComputeConfig", "Embedding_t",
           "GroupDenseLayer", "HybridEmbeddingParam", "Input", "SparseEmbedding"]
