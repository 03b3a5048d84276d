// A small model file for the tests of this folder.
#pragma once

#include <string>

namespace cistern::model {

// Returns a model with one sparse input of two slots, three dense features, an embedding "deep" of
// width 4, two fully connected layers and a loss. Tests change it through overrides.
inline std::string SmallModelText() {
  return R"({
  "solver": {"lr_policy": "fixed", "display": 10, "max_iter": 100, "gpu": [0], "batchsize": 8,
             "snapshot": 0, "snapshot_prefix": "./", "seed": 7},
  "optimizer": {"type": "Adam", "update_type": "Local",
                "adam_hparam": {"learning_rate": 0.001, "beta1": 0.9, "beta2": 0.999,
                                "epsilon": 1e-7}},
  "layers": [
    {"name": "data", "type": "Data", "source": "train.txt", "eval_source": "eval.txt",
     "check": "Sum",
     "label": {"top": "label", "label_dim": 1},
     "dense": {"top": "dense", "dense_dim": 3},
     "sparse": [{"top": "data1", "type": "DistributedSlot", "max_feature_num_per_sample": 30,
                 "slot_num": 2}]},
    {"name": "deep", "type": "DistributedSlotSparseEmbeddingHash", "bottom": "data1",
     "top": "emb",
     "sparse_embedding_hparam": {"max_vocabulary_size_per_gpu": 1000, "embedding_vec_size": 4,
                                 "combiner": 0}},
    {"name": "reshape1", "type": "Reshape", "bottom": "emb", "top": "reshape1", "leading_dim": 8},
    {"name": "concat1", "type": "Concat", "bottom": ["reshape1", "dense"], "top": "concat1"},
    {"name": "fc1", "type": "InnerProduct", "bottom": "concat1", "top": "fc1",
     "fc_param": {"num_output": 5}},
    {"name": "relu1", "type": "ReLU", "bottom": "fc1", "top": "relu1"},
    {"name": "fc2", "type": "InnerProduct", "bottom": "relu1", "top": "fc2",
     "fc_param": {"num_output": 1}},
    {"name": "loss", "type": "BinaryCrossEntropyLoss", "bottom": ["fc2", "label"], "top": "loss"}
  ]
})";
}

}  // namespace cistern::model
