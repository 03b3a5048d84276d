#include "app/plan/description.h"

#include <nlohmann/json.hpp>

#include "common/base/types.h"
#include "common/io/file_system.h"

namespace cistern::app {
namespace {

constexpr size_t kIndexBytes = 10;

nlohmann::ordered_json JsonOf(const HugectrStart& start, const model::ModelSummary& summary) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  if (!start.dense_path.empty()) {
    all.push_back({{"file", start.dense_path}, {"weights", start.dense_weights}});
  }
  for (const HugectrStart::Rows& one : start.sparse) {
    all.push_back(
        {{"file", one.path}, {"table", summary.tables[one.embedding].name}, {"rows", one.rows}});
  }
  return all;
}

nlohmann::ordered_json JsonOf(const model::LayerSummary& layer) {
  nlohmann::ordered_json json;
  json["name"] = layer.name;
  json["type"] = layer.type;
  json["bottom"] = layer.bottoms;
  json["top"] = layer.tops;
  json["shape"] = nlohmann::ordered_json::array();
  for (const model::TensorShape& shape : layer.shapes) json["shape"].push_back(shape.ToString());
  json["parameters"] = layer.parameters;
  json["live"] = layer.live;
  return json;
}

nlohmann::ordered_json JsonOf(const model::TableSummary& table) {
  nlohmann::ordered_json json;
  json["name"] = table.name;
  json["input"] = table.input;
  json["slot_num"] = table.slots;
  json["embedding_vec_size"] = table.vec_size;
  json["combiner"] = table.combiner;
  json["accessor"] = table.accessor;
  json["rule"] = table.rule;
  json["value_bytes"] = table.value_bytes;
  json["server_bytes_per_row"] = ServerRowBytes(table.value_bytes);
  return json;
}

}  // namespace

size_t ServerRowBytes(size_t value_bytes) {
  return (sizeof(Key) + value_bytes + 7) / 8 * 8 + kIndexBytes;
}

std::string ActivationsText(const model::PrecisionConfig& precision) {
  return precision.activations == model::Activations::kFloat16    ? "float16"
         : precision.activations == model::Activations::kBfloat16 ? "bfloat16"
                                                                  : "float32";
}

std::string LossScaleText(const model::PrecisionConfig& precision) {
  return precision.loss_scale == 0 ? "dynamic" : absl::StrCat(precision.loss_scale);
}

absl::StatusOr<ModelDescription> DescribeModel(const model::ModelConfig& config) {
  CISTERN_ASSIGN_OR_RETURN(model::ModelSummary summary, model::Summarize(config));
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(HugectrStart start, ReadHugectrStart(files, config));
  return ModelDescription{config.path, config.notes, std::move(summary), config.precision,
                          std::move(start)};
}

nlohmann::ordered_json JsonOf(const ModelDescription& described) {
  const model::ModelSummary& summary = described.summary;
  nlohmann::ordered_json json;
  json["model"] = described.model;
  json["notes"] = described.notes;
  json["layers"] = nlohmann::ordered_json::array();
  for (const model::LayerSummary& layer : summary.layers) json["layers"].push_back(JsonOf(layer));
  json["tables"] = nlohmann::ordered_json::array();
  for (const model::TableSummary& table : summary.tables) json["tables"].push_back(JsonOf(table));
  json["dense_parameters"] = summary.parameters;
  json["dense_parameter_bytes"] = summary.parameter_bytes;
  json["activations"] = ActivationsText(described.precision);
  if (described.precision.activations == model::Activations::kFloat16) {
    json["loss_scale"] = LossScaleText(described.precision);
  }
  json["batchsize"] = summary.batchsize;
  json["step_value_bytes"] = summary.step.values * sizeof(float);
  json["step_gradient_bytes"] = summary.step.gradients * sizeof(float);
  json["step_scratch_bytes"] = summary.step.scratch * sizeof(float);
  json["step_bytes"] = summary.step_bytes();
  json["starts_from"] = JsonOf(described.start, summary);
  return json;
}

}  // namespace cistern::app
