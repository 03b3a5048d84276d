#include "worker/model/graph/model_summary.h"

#include "absl/strings/ascii.h"
#include "common/value/accessor.h"
#include "common/value/value_layout.h"
#include "worker/model/graph/graph.h"

namespace cistern::model {
namespace {

std::string RuleName(RuleKind kind) {
  std::string name = v1::UpdateRule::Kind_Name(static_cast<v1::UpdateRule::Kind>(kind));
  absl::AsciiStrToLower(&name);
  return name;
}

absl::StatusOr<TableSummary> SummarizeTable(const ModelConfig& config,
                                            const EmbeddingConfig& embedding) {
  CISTERN_ASSIGN_OR_RETURN(const ValueLayout layout, ValueLayout::CreateStored(embedding.spec));
  TableSummary table;
  table.name = embedding.name;
  table.input = embedding.bottom;
  table.slots = config.data.sparse[embedding.input].slot_num;
  table.vec_size = embedding.vec_size;
  table.combiner = embedding.combiner == Combiner::kMean ? "mean" : "sum";
  table.accessor = std::string(AccessorName(embedding.spec));
  table.rule = RuleName(embedding.optimizer.rule.kind);
  table.value_bytes = layout.full_floats() * sizeof(float);
  table.pass_value_bytes = layout.unpacked().full_floats() * sizeof(float);
  return table;
}

}  // namespace

absl::StatusOr<ModelSummary> Summarize(const ModelConfig& config) {
  ModelSummary summary;
  Parameters parameters;
  absl::StatusOr<std::unique_ptr<Graph>> graph = Graph::Create(config, &parameters);
  if (!graph.ok()) return AddContext(graph.status(), config.path);
  summary.layers = (*graph)->layers();
  summary.step = (*graph)->memory();
  summary.batchsize = (*graph)->planned_batch();
  summary.parameters = parameters.count();
  summary.running = parameters.running_count();
  const size_t columns = 2 + RuleStateFloats(config.optimizer.rule.kind, 1);
  summary.parameter_bytes = (parameters.count() * columns + 2 * summary.running) * sizeof(float);
  const ElementType activations = ActivationsOf(config);
  if (activations != ElementType::kFloat) {
    summary.parameter_bytes += parameters.count() * BytesOf(activations);
  }
  for (const EmbeddingConfig& embedding : config.embeddings) {
    CISTERN_ASSIGN_OR_RETURN(TableSummary table, SummarizeTable(config, embedding));
    summary.tables.push_back(std::move(table));
  }
  return summary;
}

}  // namespace cistern::model
