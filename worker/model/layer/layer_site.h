// The context in which a layer is built: its configuration, its inputs, and functions to declare
// its outputs and parameters.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/status.h"
#include "worker/model/config/model_config.h"
#include "worker/model/layer/layer.h"

namespace cistern::model {

// Owns tensors and their storage. Addresses stay valid.
class TensorSet {
 public:
  // activations: the element type of the tensors that Define creates.
  explicit TensorSet(ElementType activations) : activations_(activations) {}
  Tensor* Define(const std::string& name, const TensorShape& shape);
  // Defines another name and shape for the storage of `of`, with the same number of elements.
  Tensor* DefineView(const std::string& name, const TensorShape& shape, const Tensor& of);
  Tensor* Find(const std::string& name);

 private:
  const ElementType activations_;
  Tensor* Name(Tensor tensor);

  std::deque<Tensor> tensors_;
  std::unordered_map<std::string, Tensor*> by_name_;  // the first of each name
  std::deque<Storage> storages_;
};

// The ReLU and Dropout layers that are fused into a layer.
struct Epilogue {
  const LayerConfig* relu = nullptr;
  const LayerConfig* dropout = nullptr;
  uint32_t dropout_index = 0;  // position of the Dropout layer, which selects its random draws
};

// The place of one layer in the graph that is being built.
class LayerSite {
 public:
  LayerSite(const ModelConfig& model, uint32_t index, const Epilogue& epilogue,
            std::vector<Tensor*> bottoms, TensorSet* tensors, Parameters* parameters);

  const ModelConfig& model() const { return model_; }
  const LayerConfig& config() const { return config_; }
  // The keys of a type that was described by DenseLayerOf<Config>.
  template <typename Config>
  const Config& own() const {
    return config_.own<Config>();
  }
  uint32_t index() const { return index_; }
  const Epilogue& epilogue() const { return epilogue_; }
  const std::vector<Tensor*>& bottoms() const { return bottoms_; }
  const TensorShape& shape(size_t i = 0) const { return bottoms_[i]->shape; }
  Parameters& parameters() const { return parameters_; }

  // Define output i under the name of the layer's top, or of the top of the last layer in its
  // epilogue. DefineView makes it a view of bottom 0.
  Tensor* Define(const TensorShape& shape, size_t i = 0) const;
  Tensor* DefineView(const TensorShape& shape, size_t i = 0) const;

  bool exact_init() const { return model_.cistern.init_scheme != "hugectr"; }
  bool torch_init() const { return model_.cistern.init_scheme == "torch"; }

  // Returns kInvalidArgument: "layer 'fc1' (layers[4], InnerProduct): what".
  absl::Status Error(const std::string& what) const;
  // Returns an error unless the numbers of bottoms and tops are within these bounds.
  absl::Status CheckArity(size_t bottoms_min, size_t bottoms_max, size_t tops_min,
                          size_t tops_max) const;
  // Returns an error unless bottom i has `rank` dimensions.
  absl::Status CheckRank(size_t rank, size_t i = 0) const;
  // Returns an error unless all bottoms have the same shape.
  absl::Status CheckSameShapes() const;

 private:
  const std::string& top_name(size_t i) const;

  const ModelConfig& model_;
  const LayerConfig& config_;
  const uint32_t index_;
  const Epilogue epilogue_;
  const std::vector<Tensor*> bottoms_;
  TensorSet& tensors_;
  Parameters& parameters_;
};

// "layer 'fc1' (layers[4], InnerProduct)".
std::string DescribeSite(const LayerConfig& layer);

}  // namespace cistern::model
