#include "worker/model/layer/layer_site.h"

#include "common/base/check.h"

namespace cistern::model {

Tensor* TensorSet::Define(const std::string& name, const TensorShape& shape) {
  Storage& storage = storages_.emplace_back();
  storage.size = shape.size();
  storage.type = activations_;
  return Name({name, shape, &storage});
}

Tensor* TensorSet::DefineView(const std::string& name, const TensorShape& shape, const Tensor& of) {
  CISTERN_CHECK(shape.size() == of.shape.size());
  return Name({name, shape, of.storage});
}

Tensor* TensorSet::Find(const std::string& name) {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

Tensor* TensorSet::Name(Tensor tensor) {
  tensors_.push_back(std::move(tensor));
  by_name_.try_emplace(tensors_.back().name, &tensors_.back());
  return &tensors_.back();
}

LayerSite::LayerSite(const ModelConfig& model, uint32_t index, const Epilogue& epilogue,
                     std::vector<Tensor*> bottoms, TensorSet* tensors, Parameters* parameters)
    : model_(model),
      config_(model.layers[index]),
      index_(index),
      epilogue_(epilogue),
      bottoms_(std::move(bottoms)),
      tensors_(*tensors),
      parameters_(*parameters) {}

const std::string& LayerSite::top_name(size_t i) const {
  if (epilogue_.dropout != nullptr) return epilogue_.dropout->tops[i];
  if (epilogue_.relu != nullptr) return epilogue_.relu->tops[i];
  return config_.tops[i];
}

Tensor* LayerSite::Define(const TensorShape& shape, size_t i) const {
  return tensors_.Define(top_name(i), shape);
}

Tensor* LayerSite::DefineView(const TensorShape& shape, size_t i) const {
  return tensors_.DefineView(top_name(i), shape, *bottoms_[0]);
}

std::string DescribeSite(const LayerConfig& layer) {
  return absl::StrCat("layer '", layer.name, "' (", layer.path, ", ", layer.type, ")");
}

absl::Status LayerSite::Error(const std::string& what) const {
  return absl::InvalidArgumentError(absl::StrCat(DescribeSite(config_), ": ", what));
}

namespace {

std::string Range(size_t min, size_t max) {
  if (min == max) return absl::StrCat(min);
  return max == SIZE_MAX ? absl::StrCat(min, " or more") : absl::StrCat(min, " to ", max);
}

}  // namespace

absl::Status LayerSite::CheckArity(size_t bottoms_min, size_t bottoms_max, size_t tops_min,
                                   size_t tops_max) const {
  const size_t bottoms = config_.bottoms.size(), tops = config_.tops.size();
  if (bottoms < bottoms_min || bottoms > bottoms_max) {
    return Error(
        absl::StrCat("has ", bottoms, " bottoms; must have ", Range(bottoms_min, bottoms_max)));
  }
  if (tops < tops_min || tops > tops_max) {
    return Error(absl::StrCat("has ", tops, " tops; must have ", Range(tops_min, tops_max)));
  }
  return absl::OkStatus();
}

absl::Status LayerSite::CheckRank(size_t rank, size_t i) const {
  if (shape(i).rank() == rank) return absl::OkStatus();
  return Error(absl::StrCat("bottom '", bottoms_[i]->name, "' is ", shape(i).ToString(),
                            "; it must have ", rank, " dimensions",
                            rank == 2 ? ": put a Reshape before it" : ""));
}

absl::Status LayerSite::CheckSameShapes() const {
  for (size_t i = 1; i < bottoms_.size(); ++i) {
    if (shape(i) == shape()) continue;
    return Error(absl::StrCat("bottoms '", bottoms_[0]->name, "' ", shape().ToString(), " and '",
                              bottoms_[i]->name, "' ", shape(i).ToString(),
                              " have different shapes"));
  }
  return absl::OkStatus();
}

}  // namespace cistern::model
