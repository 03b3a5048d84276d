#include "worker/model/fusion.h"

namespace cistern {
namespace {

// The only layer that reads `top`, if it is a `type` with one input and one output; else -1.
int OnlyReader(const std::vector<LayerConfig>& layers, const std::string& top,
               const std::string& type) {
  int reader = -1, readers = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    for (const std::string& bottom : layers[i].bottoms) {
      if (bottom != top) continue;
      ++readers;
      reader = static_cast<int>(i);
    }
  }
  if (readers != 1 || layers[reader].type != type) return -1;
  const bool simple = layers[reader].bottoms.size() == 1 && layers[reader].tops.size() == 1;
  return simple ? reader : -1;
}

// The ReLU that an InnerProduct computes. One with a Dropout behind it computes that: the product
// cannot.
int ReluBehindProduct(const std::vector<LayerConfig>& layers, size_t i) {
  const int relu = OnlyReader(layers, layers[i].tops[0], "ReLU");
  if (relu < 0 || OnlyReader(layers, layers[relu].tops[0], "Dropout") >= 0) return -1;
  return relu;
}

}  // namespace

FusionPlan PlanFusion(const std::vector<LayerConfig>& layers) {
  FusionPlan plan;
  plan.epilogues.resize(layers.size());
  plan.absorbed.resize(layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    if (plan.absorbed[i] || layers[i].tops.size() != 1) continue;
    Epilogue& epilogue = plan.epilogues[i];
    if (layers[i].type == "InnerProduct") {
      const int relu = ReluBehindProduct(layers, i);
      if (relu < 0) continue;
      epilogue.relu = &layers[relu];
      plan.absorbed[relu] = true;
      continue;
    }
    const LayerConfig* relu = layers[i].type == "ReLU" ? &layers[i] : nullptr;
    if (layers[i].type == "BatchNorm") {
      const int reader = OnlyReader(layers, layers[i].tops[0], "ReLU");
      if (reader < 0) continue;
      epilogue.relu = relu = &layers[reader];
      plan.absorbed[reader] = true;
    }
    if (relu == nullptr) continue;
    const int reader = OnlyReader(layers, relu->tops[0], "Dropout");
    if (reader < 0) continue;
    epilogue.dropout = &layers[reader];
    epilogue.dropout_index = static_cast<uint32_t>(reader);
    plan.absorbed[reader] = true;
  }
  return plan;
}

}  // namespace cistern
