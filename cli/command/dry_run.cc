#include "cli/command/dry_run.h"

#include "absl/strings/str_join.h"
#include "cli/terminal/aligned_text.h"
#include "common/base/amount_text.h"

namespace cistern::cli {
namespace {

std::string JoinShapes(const model::LayerSummary& layer) {
  return absl::StrJoin(layer.shapes, " ", [](std::string* out, const model::TensorShape& shape) {
    absl::StrAppend(out, shape.ToString());
  });
}

std::string GraphText(const model::ModelSummary& summary) {
  std::vector<std::vector<std::string>> rows = {{"layer", "type", "reads", "shape", "parameters"}};
  for (const model::LayerSummary& layer : summary.layers) {
    rows.push_back({layer.name, layer.type + (layer.live ? "" : " (leads nowhere)"),
                    absl::StrJoin(layer.bottoms, " "), JoinShapes(layer),
                    layer.parameters == 0 ? "-" : absl::StrCat(layer.parameters)});
  }
  return AlignedText(rows);
}

std::string TablesText(const model::ModelSummary& summary) {
  std::vector<std::vector<std::string>> rows = {{"table", "input", "slots", "width", "pooled",
                                                 "accessor", "rule", "value bytes",
                                                 "server bytes a row"}};
  for (const model::TableSummary& table : summary.tables) {
    rows.push_back({table.name, table.input, absl::StrCat(table.slots),
                    absl::StrCat(table.vec_size), table.combiner, table.accessor, table.rule,
                    absl::StrCat(table.value_bytes),
                    absl::StrCat(app::ServerRowBytes(table.value_bytes))});
  }
  return AlignedText(rows);
}

std::string TotalsText(const model::ModelSummary& summary) {
  const model::StepMemory& step = summary.step;
  return absl::StrCat("dense parameters  ", summary.parameters, ", ",
                      BytesText(summary.parameter_bytes), " with gradients and optimizer state\n",
                      "memory of a step  ", BytesText(summary.step_bytes()), " for ",
                      summary.batchsize, " samples: values ",
                      BytesText(step.values * sizeof(float)), ", gradients ",
                      BytesText(step.gradients * sizeof(float)), ", scratch ",
                      BytesText(step.scratch * sizeof(float)), "\n");
}

// Describes mixed precision; "" in single precision.
std::string PrecisionText(const model::PrecisionConfig& precision) {
  if (precision.activations == model::Activations::kFloat32) return "";
  std::string text = absl::StrCat("activations       ", app::ActivationsText(precision));
  if (precision.activations == model::Activations::kFloat16) {
    absl::StrAppend(&text, ", loss scale ", app::LossScaleText(precision));
  }
  return text + "; weights and sums are float32\n";
}

// Lists the model files that training starts from; "" if it starts from initial weights.
std::string StartText(const HugectrStart& start, const model::ModelSummary& summary) {
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

}  // namespace

absl::StatusOr<Report> DryRun(const model::ModelConfig& config) {
  CISTERN_ASSIGN_OR_RETURN(const app::ModelDescription described, app::DescribeModel(config));
  const model::ModelSummary& summary = described.summary;
  return Report{
      app::JsonOf(described),
      absl::StrCat(GraphText(summary), "\n", TablesText(summary), "\n", TotalsText(summary),
                   PrecisionText(described.precision), StartText(described.start, summary)),
      absl::OkStatus()};
}

}  // namespace cistern::cli
