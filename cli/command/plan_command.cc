#include "cli/command/plan_command.h"

#include <algorithm>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "app/model/declared_rows.h"
#include "app/model/model_source.h"
#include "cli/command/dry_run.h"
#include "cli/command/plan_rows.h"
#include "cli/command/shared_flags.h"
#include "cli/terminal/aligned_text.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/progress.h"
#include "common/base/nearest_name.h"
#include "common/base/types.h"
#include "worker/model/graph/model_summary.h"
#include "worker/pass/data_source.h"

namespace cistern {
namespace {

// Bytes per row in addition to its value: in a row file, the key and the has_embedx byte
// (server/checkpoint/row_file.h); in a row record, length and key (docs/formats.md). Bytes per key
// of a pass: the key, its share of the index, and one byte.
constexpr size_t kRowFileBytes = sizeof(Key) + 1, kRowRecordBytes = sizeof(Key) + 4;
constexpr size_t kPassKeyBytes = 25;

struct PlannedTable {
  TableSummary table;
  uint64_t rows = 0;
  std::string source;      // where `rows` comes from
  std::string assumption;  // a sentence if it was not told
  uint64_t server_bytes() const { return rows * ServerRowBytes(table.value_bytes); }
  uint64_t commit_bytes() const { return rows * (table.value_bytes + kRowFileBytes); }
  uint64_t save_bytes() const { return rows * (table.value_bytes + kRowRecordBytes); }
};

absl::StatusOr<std::map<std::string, uint64_t>> ReadRows(const std::vector<std::string>& words,
                                                         const ModelSummary& summary) {
  std::vector<std::string> names;
  for (const TableSummary& table : summary.tables) names.push_back(table.name);
  std::map<std::string, uint64_t> rows;
  for (const std::string& word : words) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(word, absl::MaxSplits('=', 1));
    double count = 0;
    if (!absl::SimpleAtod(parts.second, &count) || !(count >= 0 && count < 1e18)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--rows ", word, ": expected TABLE=COUNT, as in --rows deep=1e9"));
    }
    if (std::find(names.begin(), names.end(), parts.first) == names.end()) {
      return absl::InvalidArgumentError(absl::StrCat("--rows ", word, ": the model has no table '",
                                                     parts.first, "'",
                                                     Suggest(parts.first, names)));
    }
    rows[parts.first] = static_cast<uint64_t>(count);
  }
  return rows;
}

absl::StatusOr<std::vector<PlannedTable>> PlanTables(const ModelConfig& config,
                                                     const ModelSummary& summary,
                                                     const PlanFlags& flags) {
  CISTERN_ASSIGN_OR_RETURN(const auto given, ReadRows(flags.rows, summary));
  const std::vector<app::DeclaredRows> declared = app::DeclaredRowsOf(config);
  std::vector<PlannedTable> plans;
  for (size_t i = 0; i < summary.tables.size(); ++i) {
    const EmbeddingConfig& embedding = config.embeddings[i];
    PlannedTable plan = {summary.tables[i], declared[i].rows, declared[i].source, ""};
    const auto found = given.find(embedding.name);
    if (found != given.end()) {
      plan.rows = found->second;
      plan.source = "--rows";
    }
    if (plan.source.empty()) {
      const CountedRows counted = CountRowsOf(config, embedding);
      plan.rows = counted.rows;
      plan.source = counted.source;
      plan.assumption = counted.assumption;
    }
    plans.push_back(std::move(plan));
  }
  return plans;
}

struct WorkerPlan {
  // Bytes of the pass in training, the next one, and one in commit or evaluation.
  uint64_t passes = 0;
  uint64_t step = 0, dense = 0;
  uint64_t pass_keys = 0;  // approximate number of keys that fit a pass
  uint64_t total() const { return passes + step + dense; }
};

WorkerPlan PlanWorker(const ModelConfig& config, const ModelSummary& summary) {
  WorkerPlan worker;
  const uint64_t budget = config.cistern.pass_memory_mb << 20;
  worker.passes = budget * 3;
  worker.step = summary.step_bytes();
  worker.dense = summary.parameter_bytes;
  size_t widest = 0;  // bytes; a key has a value in every table that reads its input
  for (size_t input = 0; input < config.data.sparse.size(); ++input) {
    size_t bytes = kPassKeyBytes;
    for (size_t i = 0; i < config.embeddings.size(); ++i) {
      if (config.embeddings[i].input == input) bytes += summary.tables[i].value_bytes;
    }
    widest = std::max(widest, bytes);
  }
  const uint64_t target = config.cistern.shuffle ? budget : PassTarget(budget);
  worker.pass_keys = widest == 0 ? 0 : target / widest;
  return worker;
}

nlohmann::ordered_json JsonOf(const PlannedTable& plan) {
  nlohmann::ordered_json json;
  json["name"] = plan.table.name;
  json["rows"] = plan.rows;
  json["rows_from"] = plan.source;
  if (!plan.assumption.empty()) json["assumption"] = plan.assumption;
  json["value_bytes"] = plan.table.value_bytes;
  json["server_bytes"] = plan.server_bytes();
  json["commit_bytes"] = plan.commit_bytes();
  json["save_bytes"] = plan.save_bytes();
  return json;
}

std::string TablesText(const std::vector<PlannedTable>& plans) {
  std::vector<std::vector<std::string>> rows = {{"table", "rows", "from", "value bytes",
                                                 "on the servers", "base of a commit",
                                                 "saved (binary)"}};
  for (const PlannedTable& plan : plans) {
    rows.push_back({plan.table.name, absl::StrCat(plan.rows), plan.source,
                    absl::StrCat(plan.table.value_bytes), BytesText(plan.server_bytes()),
                    BytesText(plan.commit_bytes()), BytesText(plan.save_bytes())});
  }
  return AlignedText(rows);
}

}  // namespace

absl::StatusOr<Report> Plan(const ModelConfig& config, const PlanFlags& flags) {
  if (flags.servers == 0) return absl::InvalidArgumentError("--server-num 0: expected 1 or more");
  CISTERN_ASSIGN_OR_RETURN(const ModelSummary summary, Summarize(config));
  CISTERN_ASSIGN_OR_RETURN(const std::vector<PlannedTable> plans,
                           PlanTables(config, summary, flags));
  const WorkerPlan worker = PlanWorker(config, summary);
  // The columns of the dense tables, without the gradients, which only the worker keeps.
  const uint64_t dense =
      summary.parameter_bytes - (summary.parameters + summary.running) * sizeof(float);
  uint64_t servers = dense, commit = dense;
  Report report;
  report.json["model"] = config.path;
  report.json["tables"] = nlohmann::ordered_json::array();
  for (const PlannedTable& plan : plans) {
    servers += plan.server_bytes();
    commit += plan.commit_bytes();
    report.json["tables"].push_back(JsonOf(plan));
  }
  report.json["dense_bytes"] = dense;
  report.json["server_num"] = flags.servers;
  report.json["server_bytes"] = servers;
  report.json["bytes_per_server"] = servers / flags.servers;
  report.json["commit_bytes"] = commit;
  report.json["worker_pass_bytes"] = worker.passes;
  report.json["worker_step_bytes"] = worker.step;
  report.json["worker_dense_bytes"] = worker.dense;
  report.json["worker_bytes"] = worker.total();
  report.json["keys_per_pass"] = worker.pass_keys;
  report.text = absl::StrCat(
      TablesText(plans), "\n", "servers  ", BytesText(servers), " with the dense tables, ",
      BytesText(servers / flags.servers), " on each of ", flags.servers, "\n", "disk     ",
      BytesText(2 * commit), " while a base of ", BytesText(commit),
      " is merged; a pass adds what it touches\n", "worker   ", BytesText(worker.total()),
      ": passes ", BytesText(worker.passes), ", a step of ", summary.batchsize, " samples ",
      BytesText(worker.step), ", dense parameters ", BytesText(worker.dense), "\n",
      "a pass   about ", CountText(static_cast<double>(worker.pass_keys)),
      " distinct keys fit (cistern.pass_memory_mb)\n");
  for (const PlannedTable& plan : plans) {
    if (plan.assumption.empty()) continue;
    absl::StrAppend(&report.text, "assumed  ", plan.assumption, "\n");
  }
  const std::string few = FewStreamsWarning(config, flags.workers);
  report.json["warnings"] = nlohmann::ordered_json::array();
  if (!few.empty()) {
    report.json["warnings"].push_back(few);
    absl::StrAppend(&report.text, "warning: ", few, "\n");
  }
  return report;
}

void AddPlanCommand(Command& root) {
  auto flags = std::make_shared<PlanFlags>();
  Command& command =
      root.Add("plan", "Estimates rows, memory and disk of a model before anything starts.",
               "cistern plan deepfm.json --rows deep=1e9 --server-num 8");
  command.Argument("MODEL", &flags->config,
                   {"FILE|DIR",
                    "The model file: HugeCTR 2.3 JSON, see docs/configuration.md. Or the folder of "
                    "a run.",
                    "deepfm.json", kRequired});
  command.List("--set", &flags->set, false,
               {"PATH=VALUE", "Replaces a value of the model file; may be repeated.",
                "--set solver.batchsize=4096"});
  command.List("--rows", &flags->rows, true,
               {"TABLE=COUNT,...",
                "Number of rows of a table; by default what the model file declares: "
                "slot_size_array, or max_vocabulary_size_per_gpu of every GPU; else the distinct "
                "keys of the training data.",
                "--rows deep=1e9"});
  command.Flag("--server-num", &flags->servers,
               {"INT", "Number of servers that share the rows.", "--server-num 8"});
  command.Flag(
      "--workers", &flags->workers,
      {"INT", "Number of workers; warns if the training data has fewer streams.", "--workers 4"});
  command.Does([flags](Console& console) -> absl::StatusOr<Report> {
    app::ModelOptions model;
    model.config = flags->config;
    model.set = flags->set;
    std::string unused;
    CISTERN_RETURN_IF_ERROR(app::TakeRunFolder(&model, &unused));
    CISTERN_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelArgument(model));
    for (const std::string& note : config.notes) console.Say("note: " + note);
    return Plan(config, *flags);
  });
}

}  // namespace cistern
