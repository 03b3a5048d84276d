#include "cli/command/dry_run.h"

#include "absl/strings/str_join.h"
#include "cli/terminal/aligned_text.h"
#include "cli/terminal/progress.h"
#include "common/base/types.h"
#include "common/io/file_system.h"
#include "worker/export/hugectr/hugectr_model.h"
#include "worker/model/graph/model_summary.h"

namespace cistern {
namespace {

constexpr size_t kIndexBytes = 10;

std::string JoinShapes(const LayerSummary& layer) {
  return absl::StrJoin(layer.shapes, " ", [](std::string* out, const TensorShape& shape) {
    absl::StrAppend(out, shape.ToString());
  });
}

std::string GraphText(const ModelSummary& summary) {
  std::vector<std::vector<std::string>> rows = {{"layer", "type", "reads", "shape", "parameters"}};
  for (const LayerSummary& layer : summary.layers) {
    rows.push_back({layer.name, layer.type + (layer.live ? "" : " (leads nowhere)"),
                    absl::StrJoin(layer.bottoms, " "), JoinShapes(layer),
                    layer.parameters == 0 ? "-" : absl::StrCat(layer.parameters)});
  }
  return AlignedText(rows);
}

std::string TablesText(const ModelSummary& summary) {
  std::vector<std::vector<std::string>> rows = {{"table", "input", "slots", "width", "pooled",
                                                 "accessor", "rule", "value bytes",
                                                 "server bytes a row"}};
  for (const TableSummary& table : summary.tables) {
    rows.push_back({table.name, table.input, absl::StrCat(table.slots),
                    absl::StrCat(table.vec_size), table.combiner, table.accessor, table.rule,
                    absl::StrCat(table.value_bytes),
                    absl::StrCat(ServerRowBytes(table.value_bytes))});
  }
  return AlignedText(rows);
}

std::string TotalsText(const ModelSummary& summary) {
  const StepMemory& step = summary.step;
  return absl::StrCat("dense parameters  ", summary.parameters, ", ",
                      BytesText(summary.parameter_bytes), " with gradients and optimizer state\n",
                      "memory of a step  ", BytesText(summary.step_bytes()), " for ",
                      summary.batchsize, " samples: values ",
                      BytesText(step.values * sizeof(float)), ", gradients ",
                      BytesText(step.gradients * sizeof(float)), ", scratch ",
                      BytesText(step.scratch * sizeof(float)), "\n");
}

std::string NameOf(Activations activations) {
  return activations == Activations::kFloat16    ? "float16"
         : activations == Activations::kBfloat16 ? "bfloat16"
                                                 : "float32";
}

std::string LossScaleText(const PrecisionConfig& precision) {
  return precision.loss_scale == 0 ? "dynamic" : absl::StrCat(precision.loss_scale);
}

// Describes mixed precision; "" in single precision.
std::string PrecisionText(const PrecisionConfig& precision) {
  if (precision.activations == Activations::kFloat32) return "";
  std::string text = absl::StrCat("activations       ", NameOf(precision.activations));
  if (precision.activations == Activations::kFloat16) {
    absl::StrAppend(&text, ", loss scale ", LossScaleText(precision));
  }
  return text + "; weights and sums are float32\n";
}

// Lists the model files that training starts from; "" if it starts from initial weights.
std::string StartText(const HugectrStart& start, const ModelSummary& summary) {
  std::vector<std::vector<std::string>> rows = {{"starts from", "holds", "for"}};
  if (!start.dense_path.empty()) {
    rows.push_back({start.dense_path,
                    absl::StrCat(start.dense_weights, " weights",
                                 start.has_dense_states ? " and their state" : ""),
                    "the layers"});
  }
  for (const HugectrStart::Rows& one : start.sparse) {
    rows.push_back({one.path, absl::StrCat(one.rows, " rows"), summary.tables[one.embedding].name});
  }
  return rows.size() == 1 ? "" : absl::StrCat("\n", AlignedText(rows));
}

nlohmann::ordered_json JsonOf(const HugectrStart& start, const ModelSummary& summary) {
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

nlohmann::ordered_json JsonOf(const LayerSummary& layer) {
  nlohmann::ordered_json json;
  json["name"] = layer.name;
  json["type"] = layer.type;
  json["bottom"] = layer.bottoms;
  json["top"] = layer.tops;
  json["shape"] = nlohmann::ordered_json::array();
  for (const TensorShape& shape : layer.shapes) json["shape"].push_back(shape.ToString());
  json["parameters"] = layer.parameters;
  json["live"] = layer.live;
  return json;
}

nlohmann::ordered_json JsonOf(const TableSummary& table) {
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

absl::StatusOr<Report> DryRun(const ModelConfig& config) {
  CISTERN_ASSIGN_OR_RETURN(const ModelSummary summary, Summarize(config));
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const HugectrStart start, LookAtHugectrModel(files, config));
  Report report;
  report.text =
      absl::StrCat(GraphText(summary), "\n", TablesText(summary), "\n", TotalsText(summary),
                   PrecisionText(config.precision), StartText(start, summary));
  nlohmann::ordered_json& json = report.json;
  json["model"] = config.path;
  json["notes"] = config.notes;
  json["layers"] = nlohmann::ordered_json::array();
  for (const LayerSummary& layer : summary.layers) json["layers"].push_back(JsonOf(layer));
  json["tables"] = nlohmann::ordered_json::array();
  for (const TableSummary& table : summary.tables) json["tables"].push_back(JsonOf(table));
  json["dense_parameters"] = summary.parameters;
  json["dense_parameter_bytes"] = summary.parameter_bytes;
  json["activations"] = NameOf(config.precision.activations);
  if (config.precision.activations == Activations::kFloat16) {
    json["loss_scale"] = LossScaleText(config.precision);
  }
  json["batchsize"] = summary.batchsize;
  json["step_value_bytes"] = summary.step.values * sizeof(float);
  json["step_gradient_bytes"] = summary.step.gradients * sizeof(float);
  json["step_scratch_bytes"] = summary.step.scratch * sizeof(float);
  json["step_bytes"] = summary.step_bytes();
  json["starts_from"] = JsonOf(start, summary);
  return report;
}

}  // namespace cistern
