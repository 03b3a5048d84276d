#include "app/demo/demo_model.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace cistern::app {
namespace {

constexpr uint32_t kVector = 8;

constexpr char kHead[] = R"({
  "solver": {
    "lr_policy": "fixed",
    "num_epochs": 3,
    "batchsize": 1000,
    "batchsize_eval": 4000,
    "display": 20,
    "eval_interval": 0,
    "snapshot": 1000000,
    "snapshot_prefix": "./",
    "input_key_type": "$key_type",
    "seed": 1
  },
  "optimizer": {
    "type": "Adam",
    "update_type": "Local",
    "adam_hparam": {"learning_rate": 0.002, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7}
  },
  "layers": [
    {"name": "data", "type": "Data", "format": "Norm", "check": "$check",
     "source": "$train",
     "eval_source": "$test",
     "label": {"top": "label", "label_dim": 1},
     "dense": {"top": "dense", "dense_dim": $dense_dim},
     "sparse": [{"top": "data1", "type": "DistributedSlot", "slot_num": $slot_num,
                 "max_feature_num_per_sample": $max_keys}]},
    {"name": "embedding", "type": "DistributedSlotSparseEmbeddingHash",
     "bottom": "data1", "top": "embedding",
     "sparse_embedding_hparam": {"max_vocabulary_size_per_gpu": 1000000,
                                 "embedding_vec_size": $row, "combiner": 0}},

    {"type": "Reshape", "bottom": "embedding", "top": "rows", "leading_dim": $row},
    {"type": "Slice", "bottom": "rows", "top": ["vectors", "weights"],
     "ranges": [[0, $vector], [$vector, $row]]},
    {"type": "Reshape", "bottom": "vectors", "top": "sparse_vectors", "leading_dim": $sparse_width},
    {"type": "Reshape", "bottom": "weights", "top": "sparse_weights", "leading_dim": $slot_num},
)";

constexpr char kDenseBranch[] = R"(
    {"type": "Slice", "bottom": "dense", "top": ["dense1", "dense2"],
     "ranges": [[0, $dense_dim], [0, $dense_dim]]},
    {"type": "Multiply", "bottom": "dense1", "top": "dense_vectors",
     "weight_dims": [$dense_dim, $vector]},
    {"type": "Multiply", "bottom": "dense2", "top": "dense_weights",
     "weight_dims": [$dense_dim, 1]},
    {"type": "Concat", "bottom": ["sparse_vectors", "dense_vectors"], "top": "all_vectors"},
    {"type": "Concat", "bottom": ["sparse_weights", "dense_weights"], "top": "all_weights"},
)";

constexpr char kTail[] = R"(
    {"type": "ReduceSum", "bottom": "$weights", "top": "first_order", "axis": 1},
    {"type": "Slice", "bottom": "$vectors", "top": ["for_dnn", "for_fm"],
     "ranges": [[0, $width], [0, $width]]},
    {"type": "FmOrder2", "bottom": "for_fm", "top": "fm", "out_dim": $vector},
    {"type": "ReduceSum", "bottom": "fm", "top": "second_order", "axis": 1},

    {"name": "fc1", "type": "InnerProduct", "bottom": "for_dnn", "top": "fc1",
     "fc_param": {"num_output": 64}},
    {"type": "ReLU", "bottom": "fc1", "top": "relu1"},
    {"name": "fc2", "type": "InnerProduct", "bottom": "relu1", "top": "fc2",
     "fc_param": {"num_output": 32}},
    {"type": "ReLU", "bottom": "fc2", "top": "relu2"},
    {"name": "fc3", "type": "InnerProduct", "bottom": "relu2", "top": "fc3",
     "fc_param": {"num_output": 1}},

    {"type": "Add", "bottom": ["first_order", "second_order", "fc3"], "top": "logit"},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}
  ]
}
)";

// The text as a JSON string holds it: paths may have quotes and backslashes.
std::string Escaped(const std::string& text) {
  const std::string quoted = nlohmann::json(text).dump();
  return quoted.substr(1, quoted.size() - 2);
}

}  // namespace

std::string DemoModel(const DemoModelShape& shape) {
  const bool dense = shape.dense_dim > 0;
  const uint32_t width = kVector * (shape.slot_num + shape.dense_dim);
  const auto number = [](uint64_t value) { return absl::StrCat(value); };
  // StrReplaceAll prefers the longest match, so $dense cannot replace the start of $dense_dim.
  return absl::StrReplaceAll(absl::StrCat(kHead, dense ? kDenseBranch : "", kTail),
                             {{"$key_type", shape.wide_keys ? "I64" : "I32"},
                              {"$check", shape.check},
                              {"$train", Escaped(shape.train)},
                              {"$test", Escaped(shape.test)},
                              {"$dense_dim", number(shape.dense_dim)},
                              {"$slot_num", number(shape.slot_num)},
                              {"$max_keys", number(shape.max_keys)},
                              {"$row", number(kVector + 1)},
                              {"$vectors", dense ? "all_vectors" : "sparse_vectors"},
                              {"$vector", number(kVector)},
                              {"$weights", dense ? "all_weights" : "sparse_weights"},
                              {"$sparse_width", number(kVector * shape.slot_num)},
                              {"$width", number(width)}});
}

}  // namespace cistern::app
