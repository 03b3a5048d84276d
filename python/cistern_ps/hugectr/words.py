"""The words of HugeCTR's Python interface: its enums, and a note, said once, for each that has no effect here."""

from __future__ import annotations

import enum
import sys
from typing import Any, Dict, Set

_said: Set[str] = set()


def note(text: str) -> None:
    """Says something to the user, once."""
    if text not in _said:
        _said.add(text)
        print(f"note: {text}", file=sys.stderr)


def ignored(call: str, why: str, given: Dict[str, Any], defaults: Dict[str, Any]) -> None:
    """Notes the arguments that were given and have no effect. defaults: of these arguments."""
    names = [name for name, value in defaults.items() if given.get(name, value) != value]
    if names:
        note(f"{call}: {', '.join(names)} {'has' if len(names) == 1 else 'have'} no effect here: {why}")


class _Word(enum.Enum):
    """A word of a model file."""

    def __str__(self) -> str:
        return self.name


def _words(name: str, *names: str, **values: str) -> Any:
    return _Word(name, {**{n: n for n in names}, **values})  # type: ignore[call-overload]


LrPolicy_t = _words("LrPolicy_t", "fixed")
Optimizer_t = _words("Optimizer_t", "Adam", "MomentumSGD", "Nesterov", "SGD", "AdaGrad", "Ftrl", "Default")
Update_t = _words("Update_t", "Local", "Global", "LazyGlobal")
DataReaderType_t = _words("DataReaderType_t", "Norm", "Raw", "Parquet", RawAsync="Raw")
Check_t = _words("Check_t", "Sum", Non="None")
TrainPSType_t = _words("TrainPSType_t", "Staged", "Cached")
MetricsType = _words("MetricsType", "AUC", "AverageLoss", "HitRate", "NDCG", "SMAPE")
Embedding_t = _words("Embedding_t", "DistributedSlotSparseEmbeddingHash", "LocalizedSlotSparseEmbeddingHash",
                     "LocalizedSlotSparseEmbeddingOneHot", HybridSparseEmbedding="LocalizedSlotSparseEmbeddingOneHot")
Initializer_t = _words("Initializer_t", "Default", "Uniform", "XavierNorm", "XavierUniform", "Zero", "Sinusoidal")
Regularizer_t = _words("Regularizer_t", "L1", "L2", Non="None")
Activation_t = _words("Activation_t", "Relu", Non="None")
GroupLayer_t = _words("GroupLayer_t", "GroupFusedInnerProduct")
FcPosition_t = _words("FcPosition_t", "Head", "Body", "Tail", "Isolated", Non="None")
Distribution_t = _words("Distribution_t", "PowerLaw", "Uniform")
PowerLaw_t = _words("PowerLaw_t", "Long", "Medium", "Short", "Specific")
Alignment_t = _words("Alignment_t", "Auto", Non="None")
AllReduceAlgo = _words("AllReduceAlgo", "OneShot", "NCCL")
CommunicationStrategy = _words("CommunicationStrategy", "Uniform", "Hierarchical")
CommunicationType = _words("CommunicationType", "IB_NVLink", "IB_NVLink_Hier", "NVLink_SingleNode")
HybridEmbeddingType = _words("HybridEmbeddingType", "Distributed")
DeviceLayout = _words("DeviceLayout", "LocalFirst", "NodeFirst")
DataSourceType_t = _words("DataSourceType_t", "Local", "HDFS", "S3", "GCS", "Other")
Tensor_t = _words("Tensor_t", "Train", "Evaluate")
Layer_t = _words(
    "Layer_t", "Add", "BatchNorm", "BinaryCrossEntropyLoss", "Cast", "Concat", "CrossEntropyLoss", "Dropout", "ELU",
    "ElementwiseMultiply", "FmOrder2", "FusedInnerProduct", "FusedReshapeConcat", "FusedReshapeConcatGeneral", "GRU", "Gather",
    "InnerProduct", "Interaction", "LayerNorm", "MLP", "MatrixMultiply", "MultiCross", "MultiCrossEntropyLoss",
    "MultiHeadAttention", "PReLU_Dice", "ReLU", "ReLUHalf", "ReduceMean", "ReduceSum", "Reshape", "Scale", "Select",
    "SequenceMask", "Sigmoid", "Slice", "Softmax", "Sub", "DotProduct", "Multiply", WeightMultiply="Multiply")
