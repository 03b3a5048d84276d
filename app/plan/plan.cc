#include "app/plan/plan.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/model/declared_rows.h"
#include "app/plan/description.h"
#include "common/base/amount_text.h"
#include "common/base/machine_limits.h"
#include "common/base/nearest_name.h"
#include "common/base/types.h"
#include "server/checkpoint/row_file.h"
#include "worker/data/prepare/key_counter.h"
#include "worker/pass/data_source.h"

namespace cistern::app {
namespace {

// Bytes per row in addition to its value: in a row file, the key and the has_embedx byte
// (server/checkpoint/row_file.h); in a row record, length and key (docs/formats.md). Bytes per key
// of a pass: the key, its share of the index, and one byte.
constexpr size_t kRowFileBytes = sizeof(Key) + 1, kRowRecordBytes = sizeof(Key) + 4;
constexpr size_t kPassKeyBytes = 25;

// Of a server with a memory limit: the score of a row in memory.
constexpr uint64_t kScoreBytes = 4;

constexpr uint64_t kSamplesCounted = 2000000;
constexpr uint64_t kRowsAssumed = 1000000;

struct KeyCount {
  uint64_t samples = 0, keys = 0;
  bool is_whole = false;  // all samples were counted
};

absl::StatusOr<KeyCount> CountKeys(const model::ModelConfig& config, size_t input,
                                   const JobCalls& calls) {
  constexpr size_t kBlock = 20000;
  data::DataSetOptions data = model::DataSetOf(config, config.data.source);
  data.num_samples = config.data.num_samples;
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<data::SampleReader> reader,
                           data::OpenDataSet(data));
  KeyCount count;
  data::KeyCounter keys;
  while (count.samples < kSamplesCounted && !count.is_whole) {
    CISTERN_RETURN_IF_ERROR(calls.CheckStop());
    data::SampleBlock block;
    block.Reset(data.shape.slot_nums.size());
    CISTERN_ASSIGN_OR_RETURN(const size_t got, reader->Read(kBlock, &block));
    for (const Key key : block.sparse[input].keys) keys.Add(key);
    count.samples += got;
    count.is_whole = got == 0;
  }
  count.keys = keys.Distinct();
  return count;
}

// The rows of a table whose number the model file does not declare: the distinct keys of its input
// in the training data, or a guess.
absl::Status EstimateRows(const model::ModelConfig& config, const model::EmbeddingConfig& embedding,
                          const JobCalls& calls, PlannedTable* plan) {
  const std::string table = absl::StrCat("table '", embedding.name, "' has ");
  const absl::StatusOr<KeyCount> count = CountKeys(config, embedding.input, calls);
  if (absl::IsCancelled(count.status())) return count.status();
  if (!count.ok()) {
    plan->rows = kRowsAssumed;
    plan->source = "a guess";
    plan->assumption = absl::StrCat(
        table, kRowsAssumed, " rows: the model file does not declare them, and its training data ",
        "cannot be read: ", count.status().message());
    return absl::OkStatus();
  }
  plan->rows = count->keys;
  plan->source = "training data";
  plan->assumption =
      absl::StrCat(table, "a row for each distinct key in the ", count->is_whole ? "" : "first ",
                   count->samples, " samples of ", config.data.source);
  return absl::OkStatus();
}

absl::Status CheckOptions(const model::ModelSummary& summary, const PlanOptions& options) {
  if (options.servers == 0) {
    return WithOptions(absl::InvalidArgumentError("0 servers: expected 1 or more"), {"server_num"});
  }
  constexpr uint64_t kMaxLimitMb = uint64_t{1} << 40;
  if (options.memory_limit_mb > kMaxLimitMb) {
    return WithOptions(absl::InvalidArgumentError(absl::StrCat(options.memory_limit_mb,
                                                               " MB is more than any server has")),
                       {"memory_limit_mb"});
  }
  std::vector<std::string> names;
  for (const model::TableSummary& table : summary.tables) names.push_back(table.name);
  for (const auto& [name, rows] : options.rows) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    return WithOptions(absl::InvalidArgumentError(absl::StrCat("the model has no table '", name,
                                                               "'", Suggest(name, names))),
                       {"rows"});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PlannedTable>> PlanTables(const model::ModelConfig& config,
                                                     const model::ModelSummary& summary,
                                                     const PlanOptions& options,
                                                     const JobCalls& calls) {
  const std::vector<DeclaredRows> declared = DeclaredRowsOf(config);
  std::vector<PlannedTable> plans;
  for (size_t i = 0; i < summary.tables.size(); ++i) {
    PlannedTable plan;
    plan.table = summary.tables[i];
    const auto found = options.rows.find(plan.table.name);
    if (found != options.rows.end()) {
      plan.given = true;
      plan.rows = found->second;
    } else if (!declared[i].source.empty()) {
      plan.rows = declared[i].rows;
      plan.source = declared[i].source;
    } else {
      CISTERN_RETURN_IF_ERROR(EstimateRows(config, config.embeddings[i], calls, &plan));
    }
    plans.push_back(std::move(plan));
  }
  return plans;
}

PlannedWorker PlanWorker(const model::ModelConfig& config, const model::ModelSummary& summary) {
  PlannedWorker worker;
  const uint64_t budget = config.cistern.pass_memory_mb << 20;
  worker.passes = budget * 3;
  worker.step = summary.step_bytes();
  worker.dense = summary.parameter_bytes;
  size_t widest = 0;  // bytes; a key has a value in every table that reads its input
  for (size_t input = 0; input < config.data.sparse.size(); ++input) {
    size_t bytes = kPassKeyBytes;
    for (size_t i = 0; i < config.embeddings.size(); ++i) {
      if (config.embeddings[i].input == input) bytes += summary.tables[i].pass_value_bytes;
    }
    widest = std::max(widest, bytes);
  }
  const uint64_t target = config.cistern.shuffle ? budget : data::PassTarget(budget);
  worker.pass_keys = widest == 0 ? 0 : target / widest;
  return worker;
}

// Bytes of a server with a memory limit that find a row in files: its share of a block's first key,
// hash and size, and of a filter (12 bits in a base, 16 in a delta); a chain of files has some rows
// twice.
double FindingBytes(uint64_t value_bytes) {
  constexpr double kOfBlock = 24, kOfFilter = 2, kTwice = 1.28;
  const uint64_t in_block = server::IndexedBlockBytes(value_bytes) / (value_bytes + kRowFileBytes);
  return (kOfBlock / static_cast<double>(std::max<uint64_t>(1, in_block)) + kOfFilter) * kTwice;
}

PlannedLimit PlanLimit(const PlanResult& plan, uint64_t limit) {
  PlannedLimit planned;
  planned.limit = limit;
  uint64_t rows = 0, bytes = 0, widest = 0;
  double finding = 0;
  for (const PlannedTable& table : plan.tables) {
    rows += table.rows;
    bytes += table.server_bytes() + table.rows * kScoreBytes;
    widest = std::max<uint64_t>(widest, table.table.value_bytes);
    finding += FindingBytes(table.table.value_bytes) * static_cast<double>(table.rows);
  }
  planned.finding_rows = static_cast<uint64_t>(finding) / plan.servers;
  planned.pushes = std::min(plan.worker.pass_keys, rows) * (widest + kRowFileBytes) / plan.servers;
  planned.process = std::max(limit, planned.least()) + kMemoryBeyondLimit + planned.finding_rows;
  const uint64_t all = bytes / plan.servers + plan.dense_bytes;
  planned.rows = std::min(all, limit - std::min(limit, planned.least()));
  planned.share_in_memory =
      all == 0 ? 1 : static_cast<double>(planned.rows) / static_cast<double>(all);
  return planned;
}

nlohmann::ordered_json JsonOf(const PlannedLimit& planned) {
  return {{"limit_bytes", planned.limit},
          {"finding_rows_bytes", planned.finding_rows},
          {"pushes_bytes", planned.pushes},
          {"rows_in_memory_bytes", planned.rows},
          {"share_in_memory", planned.share_in_memory},
          {"process_bytes", planned.process}};
}

nlohmann::ordered_json JsonOf(const PlannedTable& plan) {
  nlohmann::ordered_json json;
  json["name"] = plan.table.name;
  json["rows"] = plan.rows;
  json["rows_from"] = plan.given ? "given" : plan.source;
  if (!plan.assumption.empty()) json["assumption"] = plan.assumption;
  json["value_bytes"] = plan.table.value_bytes;
  json["server_bytes"] = plan.server_bytes();
  json["commit_bytes"] = plan.commit_bytes();
  json["save_bytes"] = plan.save_bytes();
  return json;
}

}  // namespace

uint64_t PlannedTable::server_bytes() const {
  return rows * ServerRowBytes(table.value_bytes);
}

uint64_t PlannedTable::commit_bytes() const {
  return rows * (table.value_bytes + kRowFileBytes);
}

uint64_t PlannedTable::save_bytes() const {
  return rows * (table.value_bytes + kRowRecordBytes);
}

absl::StatusOr<PlanResult> Plan(const model::ModelConfig& config, const PlanOptions& options,
                                const JobCalls& calls) {
  CISTERN_ASSIGN_OR_RETURN(const model::ModelSummary summary, model::Summarize(config));
  CISTERN_RETURN_IF_ERROR(CheckOptions(summary, options));
  PlanResult plan;
  plan.model = config.path;
  CISTERN_ASSIGN_OR_RETURN(plan.tables, PlanTables(config, summary, options, calls));
  plan.worker = PlanWorker(config, summary);
  // The columns of the dense tables, without the gradients, which only the worker keeps.
  plan.dense_bytes =
      summary.parameter_bytes - (summary.parameters + summary.running) * sizeof(float);
  plan.servers = options.servers;
  plan.server_bytes = plan.commit_bytes = plan.dense_bytes;
  for (const PlannedTable& table : plan.tables) {
    plan.server_bytes += table.server_bytes();
    plan.commit_bytes += table.commit_bytes();
  }
  if (options.memory_limit_mb > 0) {
    plan.memory_limit = PlanLimit(plan, options.memory_limit_mb << 20);
    if (plan.memory_limit->rows == 0) {
      plan.warnings.push_back(
          absl::StrCat("the memory limit leaves nothing for rows, which are all read from files: "
                       "finding them and "
                       "the pushes of a pass take ",
                       BytesText(plan.memory_limit->least()),
                       " on each server; use a higher limit, more servers, ",
                       "or smaller passes (cistern.pass_memory_mb)"));
    }
  }
  plan.batchsize = summary.batchsize;
  const std::string few = FewStreamsWarning(config, options.workers);
  if (!few.empty()) plan.warnings.push_back(few);
  return plan;
}

nlohmann::ordered_json JsonOf(const PlanResult& plan) {
  nlohmann::ordered_json json;
  json["model"] = plan.model;
  json["tables"] = nlohmann::ordered_json::array();
  for (const PlannedTable& table : plan.tables) json["tables"].push_back(JsonOf(table));
  json["dense_bytes"] = plan.dense_bytes;
  json["server_num"] = plan.servers;
  json["server_bytes"] = plan.server_bytes;
  json["bytes_per_server"] = plan.server_bytes / plan.servers;
  if (plan.memory_limit) json["memory_limit"] = JsonOf(*plan.memory_limit);
  json["commit_bytes"] = plan.commit_bytes;
  json["worker_pass_bytes"] = plan.worker.passes;
  json["worker_step_bytes"] = plan.worker.step;
  json["worker_dense_bytes"] = plan.worker.dense;
  json["worker_bytes"] = plan.worker.total();
  json["keys_per_pass"] = plan.worker.pass_keys;
  json["warnings"] = plan.warnings;
  return json;
}

}  // namespace cistern::app
