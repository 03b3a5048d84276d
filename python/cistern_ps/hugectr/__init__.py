"""HugeCTR's Python interface, on Cistern: in a script for HugeCTR, change the import.

    from cistern_ps import hugectr

    solver = hugectr.CreateSolver(batchsize=1024, batchsize_eval=1024, lr=0.001, repeat_dataset=False)
    reader = hugectr.DataReaderParams(hugectr.DataReaderType_t.Norm, source=["train.txt"], eval_source="test.txt",
                                      check_type=hugectr.Check_t.Sum)
    model = hugectr.Model(solver, reader, hugectr.CreateOptimizer(hugectr.Optimizer_t.Adam))
    model.add(hugectr.Input(1, "label", 13, "dense", [hugectr.DataReaderSparseParam("data1", 1, True, 26)]))
    ...
    model.compile()
    model.fit(num_epochs=1)

It writes a model file, and the trainer of `cistern train` trains it. What has no effect here is said once. docs/hugectr.md
lists what is there, and what is not.
"""

from . import tools
from .callbacks import TrainingCallback
from .expansion import EmbeddingCollectionConfig, EmbeddingTableConfig
from .session import Session, solver_parser_helper
from .settings import (AsyncParam, CreateETC, CreateHMemCache, CreateOptimizer, CreateSolver, DataReaderParams,
                       DataReaderSparseParam, DataSourceParams, DenseLayer, DenseLayerComputeConfig, GroupDenseLayer,
                       HybridEmbeddingParam, Input, SparseEmbedding)
from .training import Model
from .words import (Activation_t, Alignment_t, AllReduceAlgo, Check_t, CommunicationStrategy, CommunicationType, DataReaderType_t, DataSourceType_t,
                    DeviceLayout, Distribution_t, Embedding_t, FcPosition_t, GroupLayer_t, HybridEmbeddingType, Initializer_t, Layer_t,
                    LrPolicy_t, MetricsType, Optimizer_t, PowerLaw_t, Regularizer_t, Tensor_t, TrainPSType_t, Update_t)

# What a script may look for, and what does it here.
_ELSEWHERE = {
    "inference": 'cs.export(run, "served") and cs.serve.open("served") predict',
    "CompressionStrategy": "leave it out: it selects how HugeCTR's GPUs exchange rows",
    "EmbeddingPlanner": "use EmbeddingCollectionConfig: servers hold the rows",
    "CreateMOS": "it is CreateETC",
    "MultiHot": "give DataReaderSparseParam a nnz_per_slot above 1",
}


def __getattr__(name: str) -> object:
    if name.startswith("_"):
        raise AttributeError(name)
    fix = _ELSEWHERE.get(name, "docs/hugectr.md lists what is, and what differs")
    raise AttributeError(f"cistern_ps.hugectr has no {name}: {fix}")


__all__ = [
    "Activation_t", "Alignment_t", "AllReduceAlgo", "AsyncParam", "Check_t", "CommunicationStrategy", "CommunicationType", "CreateETC", "CreateHMemCache",
    "CreateOptimizer", "CreateSolver", "DataReaderParams", "DataReaderSparseParam", "DataReaderType_t", "DataSourceParams",
    "DataSourceType_t", "DenseLayer", "DenseLayerComputeConfig", "DeviceLayout", "Distribution_t", "EmbeddingCollectionConfig", "EmbeddingTableConfig", "Embedding_t", "FcPosition_t",
    "GroupDenseLayer", "GroupLayer_t", "HybridEmbeddingParam", "HybridEmbeddingType", "Initializer_t", "Input", "Layer_t", "LrPolicy_t",
    "MetricsType", "Model", "Optimizer_t", "PowerLaw_t", "Regularizer_t", "Session", "SparseEmbedding", "Tensor_t",
    "TrainPSType_t", "TrainingCallback", "Update_t", "solver_parser_helper", "tools",
]
