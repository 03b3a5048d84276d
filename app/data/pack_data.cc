#include "app/data/pack_data.h"

#include <utility>

#include "app/data/missing_file.h"
#include "worker/model/config/model_config.h"
#include "worker/model/layer/layer_list.h"

namespace cistern::app {

absl::StatusOr<data::PackSummary> PackData(PackDataOptions options, const JobCalls& calls) {
  for (const std::string& text : options.group_texts) {
    CISTERN_ASSIGN_OR_RETURN(options.groups.emplace_back(), data::ParseLengthGroup(text));
  }
  if (!options.model.empty()) {
    CISTERN_ASSIGN_OR_RETURN(
        const model::ModelConfig config,
        MissingIsWrong(model::LoadModelConfig(options.model, options.set, model::LayerGrammars())));
    options.data = model::DataSetOf(config, config.data.source);
    options.data->num_samples = config.data.num_samples;
  } else if (!options.set.empty()) {
    return WithOptions(absl::InvalidArgumentError("overrides need a model"), {"set", "model"});
  }
  return MissingIsWrong(Pack(options, [&](uint64_t samples) {
    if (calls.amount) calls.amount({"packing", "samples", samples, 0});
    return calls.CheckStop().ok();
  }));
}

uint64_t PackedBytes(const data::PackSummary& summary) {
  uint64_t bytes = 0;
  for (const auto& shard : summary.manifest.shards) bytes += shard.bytes;
  return bytes;
}

nlohmann::ordered_json JsonOf(const data::PackSummary& summary) {
  nlohmann::ordered_json json;
  json["samples"] = summary.manifest.samples();
  json["shards"] = summary.manifest.shards.size();
  json["resumed_shards"] = summary.resumed_shards;
  json["bytes"] = PackedBytes(summary);
  json["file_list"] = summary.file_list;
  json["skipped"] = nlohmann::ordered_json::array();
  for (const auto& one : summary.manifest.skipped) {
    json["skipped"].push_back(
        {{"cause", one.cause}, {"samples", one.samples}, {"first", one.first}});
  }
  return json;
}

}  // namespace cistern::app
