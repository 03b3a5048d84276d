#include "worker/model/graph/graph_check.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "absl/strings/str_join.h"
#include "common/base/nearest_name.h"
#include "worker/model/config/grammar.h"
#include "worker/model/layer/layer_site.h"

namespace cistern::model {
namespace {

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

absl::Status Error(const LayerConfig& layer, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(DescribeSite(layer), ": ", what));
}

// The names of the tensors defined so far, in order of definition.
class Defined {
 public:
  bool Contains(const std::string& name) const { return set_.count(name) > 0; }
  void Add(const std::string& name) {
    names_.push_back(name);
    set_.insert(name);
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
  std::unordered_set<std::string> set_;
};

// Returns whether `layer` depends on one of `tops`, directly or through the layers whose tops it
// reads. If so, appends the names of the tensors on the path to `way`, the nearest to `layer`
// first.
//
// The search uses its own stack instead of recursion, because the path can be as long as the number
// of layers.
bool Needs(const ModelConfig& config, const LayerConfig& layer,
           const std::vector<std::string>& tops, std::vector<std::string>* way) {
  std::unordered_map<std::string, const LayerConfig*> makers;
  for (const LayerConfig& maker : config.layers) {
    for (const std::string& top : maker.tops) makers.emplace(top, &maker);
  }
  struct Place {
    const LayerConfig* layer;
    size_t next = 0;  // index of its next bottom
  };
  std::vector<Place> places = {{&layer}};
  std::unordered_set<const LayerConfig*> seen = {&layer};
  while (!places.empty()) {
    Place& place = places.back();
    if (place.next == place.layer->bottoms.size()) {
      places.pop_back();
      if (!places.empty()) way->pop_back();
      continue;
    }
    const std::string& bottom = place.layer->bottoms[place.next++];
    const auto maker = makers.find(bottom);
    const bool found = Contains(tops, bottom);
    if (!found && (maker == makers.end() || !seen.insert(maker->second).second)) continue;
    way->push_back(bottom);
    if (found) return true;
    places.push_back({maker->second});
  }
  return false;
}

// Explains why `layer` cannot read `bottom`, which the layer `later` defines.
std::string DefinedLater(const ModelConfig& config, const std::string& bottom,
                         const LayerConfig& later, const LayerConfig& layer) {
  std::vector<std::string> way = {bottom};
  if (Needs(config, later, layer.tops, &way)) {
    return absl::StrCat("bottom '", bottom, "' closes a cycle: ", absl::StrJoin(way, " <- "),
                        " <- ", bottom);
  }
  return absl::StrCat("bottom '", bottom, "' is defined later, by ", DescribeSite(later),
                      "; layers are computed in the order of the file: move that layer up");
}

// Explains why `bottom` is not defined when `layer` reads it.
std::string Undefined(const ModelConfig& config, const LayerConfig& layer,
                      const std::string& bottom, const Defined& defined) {
  for (const SparseInputConfig& input : config.data.sparse) {
    if (input.top != bottom) continue;
    return absl::StrCat("bottom '", bottom, "' is a sparse input: only an embedding can read it");
  }
  for (const LayerConfig& later : config.layers) {
    if (Contains(later.tops, bottom)) return DefinedLater(config, bottom, later, layer);
  }
  return absl::StrCat("bottom '", bottom, "' is not defined", Suggest(bottom, defined.names()));
}

absl::Status CheckLayer(const ModelConfig& config, const LayerConfig& layer, Defined* defined) {
  for (const std::string& bottom : layer.bottoms) {
    if (Contains(layer.tops, bottom)) {
      return Error(layer, absl::StrCat("'", bottom,
                                       "' is both its bottom and its top; give the top "
                                       "another name"));
    }
    if (!defined->Contains(bottom)) return Error(layer, Undefined(config, layer, bottom, *defined));
  }
  if (layer.tops.empty()) return Error(layer, "has no top; add one");
  for (const std::string& top : layer.tops) {
    if (top.empty()) return Error(layer, "a top is an empty string; give it a name");
    if (defined->Contains(top)) {
      return Error(layer, absl::StrCat("top '", top, "' is already defined by an earlier layer"));
    }
    defined->Add(top);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckGraph(const ModelConfig& config) {
  Defined defined;
  defined.Add(config.data.label_top);
  if (!config.data.dense_top.empty()) defined.Add(config.data.dense_top);
  for (const SparseInputConfig& input : config.data.sparse) {
    if (!input.length_top.empty()) defined.Add(input.length_top);
  }
  for (const EmbeddingConfig& embedding : config.embeddings) {
    if (embedding.top.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "embedding '", embedding.name, "': its top is an empty string; give it a name"));
    }
    if (defined.Contains(embedding.top)) {
      return absl::InvalidArgumentError(absl::StrCat("embedding '", embedding.name, "': top '",
                                                     embedding.top,
                                                     "' is already defined by an earlier layer"));
    }
    defined.Add(embedding.top);
  }
  const LayerConfig* loss = nullptr;
  for (const LayerConfig& layer : config.layers) {
    CISTERN_RETURN_IF_ERROR(CheckLayer(config, layer, &defined));
    if (!layer.is_loss()) continue;
    if (loss != nullptr) {
      return Error(layer, absl::StrCat("is a second loss; the first is ", DescribeSite(*loss)));
    }
    loss = &layer;
  }
  if (loss != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "layers: no loss; add one, such as BinaryCrossEntropyLoss with the bottoms [logit, label]");
}

}  // namespace cistern::model
