#include "worker/model/graph/fusion.h"

#include <string>
#include <unordered_map>

namespace cistern::model {
namespace {

// The readers of each tensor.
class Readers {
 public:
  explicit Readers(const std::vector<LayerConfig>& layers) : layers_(layers) {
    for (size_t i = 0; i < layers.size(); ++i) {
      for (const std::string& bottom : layers[i].bottoms) {
        Uses& uses = by_name_[bottom];
        ++uses.count;
        uses.last = static_cast<int>(i);
      }
    }
  }

  // The only layer that reads `top`, if it is a `type` with one input and one output; else -1.
  int Only(const std::string& top, const std::string& type) const {
    const auto found = by_name_.find(top);
    if (found == by_name_.end() || found->second.count != 1) return -1;
    const LayerConfig& reader = layers_[found->second.last];
    const bool simple = reader.bottoms.size() == 1 && reader.tops.size() == 1;
    return reader.type == type && simple ? found->second.last : -1;
  }

  // The ReLU that InnerProduct `i` absorbs, or -1. A ReLU followed by a Dropout stays a layer and
  // absorbs the Dropout, which an InnerProduct cannot compute.
  int ReluBehindProduct(size_t i) const {
    const int relu = Only(layers_[i].tops[0], "ReLU");
    if (relu < 0 || Only(layers_[relu].tops[0], "Dropout") >= 0) return -1;
    return relu;
  }

 private:
  struct Uses {
    int count = 0, last = -1;
  };

  const std::vector<LayerConfig>& layers_;
  std::unordered_map<std::string, Uses> by_name_;
};

}  // namespace

FusionPlan PlanFusion(const std::vector<LayerConfig>& layers) {
  FusionPlan plan;
  const Readers readers(layers);
  plan.epilogues.resize(layers.size());
  plan.absorbed.resize(layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    if (plan.absorbed[i] || layers[i].tops.size() != 1) continue;
    Epilogue& epilogue = plan.epilogues[i];
    if (layers[i].type == "InnerProduct") {
      const int relu = readers.ReluBehindProduct(i);
      if (relu < 0) continue;
      epilogue.relu = &layers[relu];
      plan.absorbed[relu] = true;
      continue;
    }
    const LayerConfig* relu = layers[i].type == "ReLU" ? &layers[i] : nullptr;
    if (layers[i].type == "BatchNorm") {
      const int reader = readers.Only(layers[i].tops[0], "ReLU");
      if (reader < 0) continue;
      epilogue.relu = relu = &layers[reader];
      plan.absorbed[reader] = true;
    }
    if (relu == nullptr) continue;
    const int reader = readers.Only(relu->tops[0], "Dropout");
    if (reader < 0) continue;
    epilogue.dropout = &layers[reader];
    epilogue.dropout_index = static_cast<uint32_t>(reader);
    plan.absorbed[reader] = true;
  }
  return plan;
}

}  // namespace cistern::model
