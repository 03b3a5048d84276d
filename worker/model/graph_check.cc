#include "worker/model/graph_check.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_join.h"
#include "worker/config/grammar.h"
#include "worker/config/nearest_name.h"
#include "worker/model/layer_site.h"

namespace cistern {
namespace {

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

absl::Status Error(const LayerConfig& layer, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(DescribeSite(layer), ": ", what));
}

// Whether `layer` needs one of `tops`, itself or through the layers that it reads; then `way` ends
// in the names of the tensors between, the nearest to `layer` first.
bool Needs(const ModelConfig& config, const LayerConfig& layer,
           const std::vector<std::string>& tops, std::set<const LayerConfig*>* seen,
           std::vector<std::string>* way) {
  if (!seen->insert(&layer).second) return false;
  for (const std::string& bottom : layer.bottoms) {
    way->push_back(bottom);
    if (Contains(tops, bottom)) return true;
    for (const LayerConfig& maker : config.layers) {
      if (Contains(maker.tops, bottom) && Needs(config, maker, tops, seen, way)) return true;
    }
    way->pop_back();
  }
  return false;
}

// Why `bottom`, which `later` makes, is not defined where `layer` reads it.
std::string DefinedLater(const ModelConfig& config, const std::string& bottom,
                         const LayerConfig& later, const LayerConfig& layer) {
  std::set<const LayerConfig*> seen;
  std::vector<std::string> way = {bottom};
  if (Needs(config, later, layer.tops, &seen, &way)) {
    return absl::StrCat("bottom '", bottom, "' closes a cycle: ", absl::StrJoin(way, " <- "),
                        " <- ", bottom);
  }
  return absl::StrCat("bottom '", bottom, "' is defined further down, by ", DescribeSite(later),
                      "; layers are computed in the order of the file");
}

// Why `bottom` is not defined where `layer` reads it.
std::string Undefined(const ModelConfig& config, const LayerConfig& layer,
                      const std::string& bottom, const std::vector<std::string>& defined) {
  for (const SparseInputConfig& input : config.data.sparse) {
    if (input.top != bottom) continue;
    return absl::StrCat("bottom '", bottom, "' is a sparse input: only an embedding reads it");
  }
  for (const LayerConfig& later : config.layers) {
    if (Contains(later.tops, bottom)) return DefinedLater(config, bottom, later, layer);
  }
  return absl::StrCat("bottom '", bottom, "' is not defined", Suggest(bottom, defined));
}

absl::Status CheckLayer(const ModelConfig& config, const LayerConfig& layer,
                        std::vector<std::string>* defined) {
  for (const std::string& bottom : layer.bottoms) {
    if (Contains(layer.tops, bottom)) {
      return Error(layer, absl::StrCat("'", bottom,
                                       "' is both its bottom and its top; give the top "
                                       "a name of its own"));
    }
    if (!Contains(*defined, bottom))
      return Error(layer, Undefined(config, layer, bottom, *defined));
  }
  if (layer.tops.empty()) return Error(layer, "it has no top; give it one");
  for (const std::string& top : layer.tops) {
    if (top.empty()) return Error(layer, "a top is the empty string; give it a name");
    if (Contains(*defined, top)) {
      return Error(layer, absl::StrCat("top '", top, "' is defined by an earlier layer too"));
    }
    defined->push_back(top);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckGraph(const ModelConfig& config) {
  std::vector<std::string> defined = {config.data.label_top};
  if (!config.data.dense_top.empty()) defined.push_back(config.data.dense_top);
  for (const EmbeddingConfig& embedding : config.embeddings) {
    if (embedding.top.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "embedding '", embedding.name, "': its top is the empty string; give it a name"));
    }
    if (Contains(defined, embedding.top)) {
      return absl::InvalidArgumentError(absl::StrCat("embedding '", embedding.name, "': top '",
                                                     embedding.top,
                                                     "' is defined by an earlier layer too"));
    }
    defined.push_back(embedding.top);
  }
  const LayerConfig* loss = nullptr;
  for (const LayerConfig& layer : config.layers) {
    CISTERN_RETURN_IF_ERROR(CheckLayer(config, layer, &defined));
    if (!IsLoss(layer.type)) continue;
    if (loss != nullptr) {
      return Error(layer, absl::StrCat("a second loss; the first is ", DescribeSite(*loss)));
    }
    loss = &layer;
  }
  if (loss != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "layers: no loss; a model ends in one, such as a BinaryCrossEntropyLoss of [logit, label]");
}

}  // namespace cistern
