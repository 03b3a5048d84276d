#include "app/model/declared_rows.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace cistern::app {
namespace {

using Json = nlohmann::json;

// The number of GPUs in "gpu": [0, 1], or over all nodes in [[0, 1], [0, 1]].
uint64_t CountGpus(const Json& gpu) {
  if (!gpu.is_array()) return 1;
  uint64_t count = 0;
  for (const Json& one : gpu) count += CountGpus(one);
  return count;
}

uint64_t SumOf(const Json& sizes, size_t first, size_t count) {
  uint64_t sum = 0;
  for (size_t i = first; i < std::min(first + count, sizes.size()); ++i) {
    sum += sizes[i].get<uint64_t>();
  }
  return sum;
}

// The declarations of the model file that determine row counts.
struct Declarations {
  uint64_t gpus = 1;
  Json slot_sizes = Json::array();  // slot_size_array of the Data layer
  struct OfEmbedding {
    std::string layer;  // "layers[1]"
    Json slot_sizes = Json::array();
    uint64_t per_gpu = 0;
  };
  std::vector<OfEmbedding> embeddings;  // in file order
};

Declarations ReadDeclarations(const model::ModelConfig& config) {
  constexpr char kParameters[] = ".sparse_embedding_hparam.";
  Declarations found;
  for (const auto& [path, text] : config.values) {
    if (path == "solver.gpu") found.gpus = std::max<uint64_t>(1, CountGpus(Json::parse(text)));
    if (path == "layers[0].slot_size_array") found.slot_sizes = Json::parse(text);
    const size_t at = path.find(kParameters);
    if (at == std::string::npos) continue;
    if (found.embeddings.empty() || found.embeddings.back().layer != path.substr(0, at)) {
      found.embeddings.push_back({path.substr(0, at)});
    }
    Declarations::OfEmbedding& embedding = found.embeddings.back();
    if (absl::EndsWith(path, ".slot_size_array")) embedding.slot_sizes = Json::parse(text);
    if (absl::EndsWith(path, ".max_vocabulary_size_per_gpu")) {
      embedding.per_gpu = Json::parse(text).get<uint64_t>();
    }
  }
  return found;
}

}  // namespace

std::vector<DeclaredRows> DeclaredRowsOf(const model::ModelConfig& config) {
  const Declarations declared = ReadDeclarations(config);
  std::vector<DeclaredRows> all;
  for (size_t i = 0; i < config.embeddings.size(); ++i) {
    const Declarations::OfEmbedding& own = declared.embeddings[i];
    size_t first = 0;  // index of the input's first slot among all slots
    for (size_t input = 0; input < config.embeddings[i].input; ++input) {
      first += config.data.sparse[input].slot_num;
    }
    const size_t slots = config.data.sparse[config.embeddings[i].input].slot_num;
    if (!own.slot_sizes.empty()) {
      all.push_back({SumOf(own.slot_sizes, 0, own.slot_sizes.size()), "slot_size_array"});
    } else if (!declared.slot_sizes.empty()) {
      all.push_back({SumOf(declared.slot_sizes, first, slots), "slot_size_array"});
    } else if (own.per_gpu > 0) {
      all.push_back({own.per_gpu * declared.gpus, "max_vocabulary_size_per_gpu"});
    } else {
      all.push_back({});
    }
  }
  return all;
}

}  // namespace cistern::app
