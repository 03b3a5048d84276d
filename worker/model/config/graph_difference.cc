#include "worker/model/config/graph_difference.h"

#include <algorithm>

#include "absl/strings/str_join.h"

namespace cistern::model {
namespace {

// What a layer computes, as pairs of a name and a value.
using Facts = std::vector<std::pair<std::string, std::string>>;

Facts FactsOf(const LayerConfig& layer) {
  Facts facts = {{"type", layer.type},
                 {"bottom", absl::StrJoin(layer.bottoms, " ")},
                 {"top", absl::StrJoin(layer.tops, " ")}};
  facts.insert(facts.end(), layer.values.begin(), layer.values.end());
  return facts;
}

Facts FactsOf(const EmbeddingConfig& embedding) {
  return {{"bottom", embedding.bottom},
          {"top", embedding.top},
          {"embedding_vec_size", absl::StrCat(embedding.vec_size)},
          {"combiner", embedding.combiner == Combiner::kSum ? "sum" : "mean"}};
}

Facts FactsOf(const DataConfig& data) {
  return {{"label_dim", absl::StrCat(data.label_dim)},
          {"dense_dim", absl::StrCat(data.dense_dim)},
          {"sparse", absl::StrJoin(data.sparse, " ", [](std::string* out, const auto& sparse) {
             absl::StrAppend(out, sparse.top, ":", sparse.slot_num);
           })}};
}

std::string LayerDifference(const std::string& name, const Facts& mine, const Facts& other) {
  for (size_t i = 0; i < std::min(mine.size(), other.size()); ++i) {
    if (mine[i].second == other[i].second) continue;
    return absl::StrCat("layer '", name, "': ", mine[i].first, " is ", mine[i].second, ", not ",
                        other[i].second);
  }
  return "";
}

template <typename Layer>
std::string ListDifference(const char* what, const std::vector<Layer>& mine,
                           const std::vector<Layer>& other) {
  for (size_t i = 0; i < std::min(mine.size(), other.size()); ++i) {
    const std::string found = LayerDifference(mine[i].name, FactsOf(mine[i]), FactsOf(other[i]));
    if (!found.empty()) return found;
  }
  if (mine.size() == other.size()) return "";
  return absl::StrCat("it has ", mine.size(), " ", what, ", not ", other.size());
}

}  // namespace

std::string GraphDifference(const ModelConfig& mine, const ModelConfig& other) {
  std::string found = LayerDifference("data", FactsOf(mine.data), FactsOf(other.data));
  if (found.empty()) found = ListDifference("embeddings", mine.embeddings, other.embeddings);
  if (found.empty()) found = ListDifference("layers", mine.layers, other.layers);
  return found;
}

}  // namespace cistern::model
