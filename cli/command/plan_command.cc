#include "app/plan/plan.h"

#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "cli/command/commands.h"
#include "cli/command/job_console.h"
#include "cli/command/shared_flags.h"
#include "cli/terminal/aligned_text.h"
#include "common/base/amount_text.h"

namespace cistern::cli {
namespace {

struct PlanFlags {
  app::ModelOptions model;
  std::vector<std::string> rows;  // "TABLE=COUNT"
  app::PlanOptions plan;
};

absl::Status ReadRows(PlanFlags* flags) {
  for (const std::string& word : flags->rows) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(word, absl::MaxSplits('=', 1));
    double count = 0;
    if (!absl::SimpleAtod(parts.second, &count) || !(count >= 0 && count < 1e18)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--rows ", word, ": expected TABLE=COUNT, as in --rows deep=1e9"));
    }
    flags->plan.rows[parts.first] = static_cast<uint64_t>(count);
  }
  return absl::OkStatus();
}

std::string AssumptionText(const app::PlannedTable& plan) {
  return absl::StrCat(plan.assumption, " (another number: --rows ", plan.table.name, "=COUNT)");
}

std::string TablesText(const std::vector<app::PlannedTable>& plans) {
  std::vector<std::vector<std::string>> rows = {{"table", "rows", "from", "value bytes",
                                                 "on the servers", "base of a commit",
                                                 "saved (binary)"}};
  for (const app::PlannedTable& plan : plans) {
    rows.push_back({plan.table.name, absl::StrCat(plan.rows), plan.given ? "--rows" : plan.source,
                    absl::StrCat(plan.table.value_bytes), BytesText(plan.server_bytes()),
                    BytesText(plan.commit_bytes()), BytesText(plan.save_bytes())});
  }
  return AlignedText(rows);
}

std::string LimitText(const app::PlannedLimit& limit) {
  return absl::StrCat("limit    ", BytesText(limit.limit),
                      " on each server: ", absl::StrFormat("%.0f %%", 100 * limit.share_in_memory),
                      " of the rows in memory (", BytesText(limit.rows), "), finding the others ",
                      BytesText(limit.finding_rows), ", pushes of a pass up to ",
                      BytesText(limit.pushes), "; the process takes ", BytesText(limit.process),
                      "\n");
}

std::string TextOf(const app::PlanResult& plan) {
  const app::PlannedWorker& worker = plan.worker;
  std::string text = absl::StrCat(
      TablesText(plan.tables), "\n", "servers  ", BytesText(plan.server_bytes),
      " with the dense tables, ", BytesText(plan.server_bytes / plan.servers), " on each of ",
      plan.servers, "\n", "disk     ", BytesText(2 * plan.commit_bytes), " while a base of ",
      BytesText(plan.commit_bytes), " is merged; a pass adds what it touches\n", "worker   ",
      BytesText(worker.total()), ": passes ", BytesText(worker.passes), ", a step of ",
      plan.batchsize, " samples ", BytesText(worker.step), ", dense parameters ",
      BytesText(worker.dense), "\n", "a pass   about ",
      CountText(static_cast<double>(worker.pass_keys)),
      " distinct keys fit (cistern.pass_memory_mb)\n");
  if (plan.memory_limit) absl::StrAppend(&text, LimitText(*plan.memory_limit));
  for (const app::PlannedTable& table : plan.tables) {
    if (table.assumption.empty()) continue;
    absl::StrAppend(&text, "assumed  ", AssumptionText(table), "\n");
  }
  for (const std::string& warning : plan.warnings) {
    absl::StrAppend(&text, "warning: ", warning, "\n");
  }
  return text;
}

// With the flags that a user of this command types.
nlohmann::ordered_json JsonWithFlags(const app::PlanResult& plan) {
  nlohmann::ordered_json json = app::JsonOf(plan);
  for (size_t i = 0; i < plan.tables.size(); ++i) {
    const app::PlannedTable& table = plan.tables[i];
    if (table.given) json["tables"][i]["rows_from"] = "--rows";
    if (!table.assumption.empty()) json["tables"][i]["assumption"] = AssumptionText(table);
  }
  return json;
}

}  // namespace

void AddPlanCommand(Command& root) {
  auto flags = std::make_shared<PlanFlags>();
  Command& command =
      root.Add("plan", "Estimates rows, memory and disk of a model before anything starts.",
               "cistern plan deepfm.json --rows deep=1e9 --server-num 8");
  command.Argument("MODEL", &flags->model.config,
                   {"FILE|DIR",
                    "The model file: HugeCTR 2.3 JSON, see docs/configuration.md. Or the folder of "
                    "a run.",
                    "deepfm.json", kRequired});
  command.List("--set", &flags->model.set, false,
               {"PATH=VALUE", "Replaces a value of the model file; may be repeated.",
                "--set solver.batchsize=4096"});
  command.List("--rows", &flags->rows, true,
               {"TABLE=COUNT,...",
                "Number of rows of a table; by default what the model file declares: "
                "slot_size_array, or max_vocabulary_size_per_gpu of every GPU; else the distinct "
                "keys of the training data.",
                "--rows deep=1e9"});
  command.Flag("--server-num", &flags->plan.servers,
               {"INT", "Number of servers that share the rows.", "--server-num 8"});
  command.Flag(
      "--memory-limit-mb", &flags->plan.memory_limit_mb,
      {"INT", "Memory for rows on each server, as in cistern-server --memory_limit_mb; 0: for all.",
       "--memory-limit-mb 4096"});
  command.Flag(
      "--workers", &flags->plan.workers,
      {"INT", "Number of workers; warns if the training data has fewer streams.", "--workers 4"});
  command.Does([flags](Console& console) -> absl::StatusOr<Report> {
    CISTERN_RETURN_IF_ERROR(ReadRows(flags.get()));
    std::string unused;
    CISTERN_RETURN_IF_ERROR(app::ResolveRunFolder(&flags->model, &unused));
    CISTERN_ASSIGN_OR_RETURN(const model::ModelConfig config, ReadModelArgument(flags->model));
    for (const std::string& note : config.notes) console.Say("note: " + note);
    CISTERN_ASSIGN_OR_RETURN(const app::PlanResult plan,
                             app::Plan(config, flags->plan, JobConsole(console).calls()));
    return Report{JsonWithFlags(plan), TextOf(plan), absl::OkStatus()};
  });
}

}  // namespace cistern::cli
