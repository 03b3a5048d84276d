#include "worker/export/onnx/network_description.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/base/hash_text.h"
#include "common/value/accessor.h"

namespace cistern {
namespace {

using Json = nlohmann::ordered_json;

Json DescribeEmbedding(const model::ModelConfig& config, const model::EmbeddingConfig& embedding,
                       const std::string& input) {
  uint32_t first_slot = 0;
  for (size_t i = 0; i < embedding.input; ++i) first_slot += config.data.sparse[i].slot_num;
  Json json;
  json["input"] = input;
  json["table"] = embedding.name;
  json["accessor"] = std::string(AccessorName(embedding.spec));
  json["sparse"] = embedding.bottom;
  json["first_slot"] = first_slot;
  json["slots"] = config.data.sparse[embedding.input].slot_num;
  json["vec_size"] = embedding.vec_size;
  json["combiner"] = embedding.combiner == model::Combiner::kMean ? "mean" : "sum";
  if (config.data.sparse[embedding.input].key_weights) json["key_weights"] = true;
  const data::SequenceSlots& sequences = config.data.sparse[embedding.input].sequences;
  if (sequences.any()) {
    json["sequence_lengths"] = sequences.lengths;
    json["sequence_keeps"] = sequences.keeps_last ? "last" : "first";
    json["sequence_reversed"] = sequences.reversed;
  }
  return json;
}

Json DescribeOutput(const onnx::Value& output) {
  Json json;
  json["output"] = output.name();
  json["columns"] = output.type().tensor_type().shape().dim(1).dim_value();
  return json;
}

}  // namespace

std::string TrainedIn(const model::ModelConfig& config) {
  switch (config.precision.activations) {
    case model::Activations::kFloat16:
      return "float16";
    case model::Activations::kBfloat16:
      return "bfloat16";
    case model::Activations::kFloat32:
      break;
  }
  return "float32";
}

void AddProperties(const model::ModelConfig& config, const CommittedModel& source,
                   onnx::Model* model) {
  const auto add = [model](const std::string& key, const std::string& value) {
    onnx::Property* property = model->add_metadata_props();
    property->set_key(absl::StrCat("cistern.", key));
    property->set_value(value);
  };
  const CommittedVersion version = source.version();
  add("commit", absl::StrCat(version.commit));
  add("manifest_xxh3", HashText(version.manifest_xxh3));
  add("pass", absl::StrCat(version.pass));
  add("source", source.name());
  add("model_file", config.path);
  add("trained_in", TrainedIn(config));
}

std::string DescribeNetwork(const model::ModelConfig& config, const CommittedModel& source,
                            const NetworkModel& network, const std::string& name,
                            const std::string& bytes) {
  const CommittedVersion version = source.version();
  Json json;
  json["format"] = 1;
  json["onnx"] = name;
  json["bytes"] = bytes.size();
  json["xxh3"] = HashText(HashBytes(bytes));
  json["commit"] = version.commit;
  json["manifest_xxh3"] = HashText(version.manifest_xxh3);
  json["pass"] = version.pass;
  json["source"] = source.name();
  json["model_file"] = config.path;
  json["trained_in"] = TrainedIn(config);
  if (!network.inputs.dense.empty()) {
    json["dense"] = {{"input", network.inputs.dense}, {"columns", config.data.dense_dim}};
  }
  json["embeddings"] = Json::array();
  for (const auto& [index, input] : network.inputs.embeddings) {
    json["embeddings"].push_back(DescribeEmbedding(config, config.embeddings[index], input));
  }
  for (const auto& [index, input] : network.inputs.lengths) {
    const model::SparseInputConfig& sparse = config.data.sparse[index];
    json["lengths"].push_back(
        {{"input", input}, {"sparse", sparse.top}, {"columns", sparse.sequence_num()}});
  }
  json["outputs"] = Json::array();
  for (const onnx::Value& output : network.model.graph().output()) {
    json["outputs"].push_back(DescribeOutput(output));
  }
  // A path need not be UTF-8.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace cistern
