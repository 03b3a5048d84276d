// The model files that benchmarks train, by name. They have the shape of the Criteo data: 13 dense
// features and 26 one-hot slots. The optimizer is AdaGrad.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "test/worker/model/model_texts.h"

namespace cistern::model {

inline constexpr size_t kSlots = 26, kDenseColumns = 13;

inline std::vector<std::string> CriteoModels() {
  return {"dlrm128", "dlrm64", "dlrm16", "dcn2", "dcn", "deepfm", "wdl"};
}

inline std::string Layers(const std::vector<std::string>& layers) {
  return absl::StrJoin(layers, ", ");
}

// Fully connected layers with ReLU from `bottom` to `top`; the last one has no ReLU if `linear`.
inline std::string Tower(const std::string& name, std::string bottom,
                         const std::vector<int>& widths, const std::string& top,
                         bool linear = false) {
  std::vector<std::string> layers;
  for (size_t i = 0; i < widths.size(); ++i) {
    const bool last = i + 1 == widths.size();
    const std::string fc = last && linear ? top : absl::StrCat(name, "_fc", i);
    layers.push_back(FullyConnected(bottom, fc, widths[i]));
    if (last && linear) break;
    const std::string relu = last ? top : absl::StrCat(name, "_relu", i);
    layers.push_back(Simple("ReLU", fc, relu));
    bottom = relu;
  }
  return Layers(layers);
}

inline std::string Flat(int dim) {
  return Simple("Reshape", "emb", "flat",
                absl::StrCat(R"("leading_dim": )", static_cast<int>(kSlots) * dim));
}

inline std::string Concat(const std::vector<std::string>& bottoms, const std::string& top) {
  return absl::StrCat(R"({"type": "Concat", "name": ")", top, R"(", "bottom": [")",
                      absl::StrJoin(bottoms, R"(", ")"), R"("], "top": ")", top, "\"}");
}

inline std::string Dlrm(int dim) {
  return Layers(
      {Embedding("emb", "data1", dim, "0"), Tower("bottom", "dense", {512, 256, dim}, "x"),
       R"({"type": "Interaction", "name": "pairs", "bottom": ["x", "emb"], "top": "pairs"})",
       Tower("top", "pairs", {1024, 1024, 512, 256, 1}, "logit", true)});
}

inline std::string Dcn() {
  return Layers({Embedding("emb", "data1", 16, "0"), Flat(16), Concat({"flat", "dense"}, "all"),
                 R"({"type": "Slice", "name": "slice", "bottom": "all", "top": ["in1", "in2"],
                     "ranges": [[0, 429], [0, 429]]})",
                 Simple("MultiCross", "in1", "cross", R"("mc_param": {"num_layers": 3})"),
                 Tower("deep", "in2", {1024, 1024, 1024}, "deep"),
                 Concat({"cross", "deep"}, "both"), FullyConnected("both", "logit", 1)});
}

// Three crosses x' = x0 (W x + b) + x, in parallel to a tower.
inline std::string Dcn2() {
  std::vector<std::string> layers = {Embedding("emb", "data1", 16, "0"), Flat(16),
                                     Concat({"flat", "dense"}, "cross0")};
  std::string in = "cross0";
  for (int i = 1; i <= 3; ++i) {
    const std::string out = absl::StrCat("cross", i), w = absl::StrCat("w", i),
                      product = absl::StrCat("product", i);
    layers.push_back(FullyConnected(in, w, kSlots * 16 + kDenseColumns));
    layers.push_back(Joining("DotProduct", {"cross0", w}, product));
    layers.push_back(Joining("Add", {product, in}, out));
    in = out;
  }
  layers.push_back(Tower("deep", "cross0", {1024, 1024, 1024}, "deep"));
  layers.push_back(Concat({in, "deep"}, "both"));
  layers.push_back(FullyConnected("both", "logit", 1));
  return Layers(layers);
}

inline std::string Mlp(const std::string& bottom, const std::string& top, const std::string& widths,
                       bool linear = false) {
  return Simple(
      "MLP", bottom, top,
      absl::StrCat(R"("mlp_param": {"num_outputs": [)", widths, linear ? ", 1]" : "]",
                   linear ? R"(, "activations": ["Relu", "Relu", "Relu", "Relu", "None"])" : "",
                   "}"));
}

// DLRM-DCNv2 of MLPerf: three crosses of rank 512 between two MLPs.
inline std::string DlrmDcnV2() {
  return Layers({Embedding("emb", "data1", 128, "0"), Mlp("dense", "low", "512, 256, 128"),
                 Flat(128), Concat({"flat", "low"}, "all"),
                 Simple("MultiCross", "all", "cross",
                        R"("mc_param": {"num_layers": 3, "projection_dim": 512})"),
                 Mlp("cross", "logit", "1024, 1024, 512, 256", true)});
}

inline std::string DeepFm() {
  return Layers(
      {Embedding("emb", "data1", 16, "0"), Flat(16), Concat({"flat", "dense"}, "all"),
       R"({"type": "Slice", "name": "slice", "bottom": "flat", "top": ["fm_in", "rest"],
                     "ranges": [[0, 416], [0, 416]]})",
       Simple("FmOrder2", "fm_in", "fm", R"("out_dim": 16)"),
       Simple("ReduceSum", "fm", "fm_sum", R"("axis": 1)"),
       Tower("deep", "all", {400, 400, 400, 1}, "deep", true),
       R"({"type": "Add", "name": "logit", "bottom": ["deep", "fm_sum"], "top": "logit"})"});
}

inline std::string Wdl() {
  return Layers({Embedding("emb", "data1", 16, "0"), Flat(16), Concat({"flat", "dense"}, "all"),
                 Tower("deep", "all", {1024, 1024, 1}, "logit", true)});
}

inline std::string CriteoModel(const std::string& name, size_t batch) {
  const std::string layers = name == "dlrm16"    ? Dlrm(16)
                             : name == "dlrm64"  ? Dlrm(64)
                             : name == "dlrm128" ? Dlrm(128)
                             : name == "dcnv2"   ? DlrmDcnV2()
                             : name == "dcn2"    ? Dcn2()
                             : name == "dcn"     ? Dcn()
                             : name == "deepfm"  ? DeepFm()
                                                 : Wdl();
  return absl::StrCat(
      R"({"solver": {"max_iter": 1, "seed": 5, "batchsize": )", batch, R"(, "batchsize_eval": )",
      batch,
      R"(}, "optimizer": {"type": "AdaGrad", "adagrad_hparam": {"learning_rate": 0.01,
          "initial_accu_value": 0.1, "epsilon": 1e-7}},
          "layers": [{"type": "Data", "source": "x", "label": {"top": "label", "label_dim": 1},
          "dense": {"top": "dense", "dense_dim": 13},
          "sparse": [{"top": "data1", "slot_num": 26, "type": "DistributedSlot"}]}, )",
      layers,
      R"(, {"type": "BinaryCrossEntropyLoss", "name": "loss", "bottom": ["logit", "label"]}]})");
}

}  // namespace cistern::model
