#include "cli/command/save_load_commands.h"

#include <memory>

#include "absl/time/clock.h"
#include "app/admin/load_fleet.h"
#include "cli/command/job_console.h"
#include "cli/command/shared_flags.h"
#include "cli/terminal/progress.h"

namespace cistern::cli {
namespace {

app::LoadFleetOptions LoadOptionsOf(const LoadFlags& flags) {
  app::LoadFleetOptions options;
  options.fleet = flags.fleet;
  options.name = flags.name;
  options.model_dir = flags.model_dir;
  options.increments = flags.increments;
  options.model = flags.model;
  options.replace = flags.replace;
  options.upgrade = flags.upgrade;
  options.foreign = flags.foreign;
  options.tables = flags.tables;
  options.expected = flags.expected;
  return options;
}

absl::Status CheckLoadFlags(const LoadFlags& flags) {
  if (!flags.increments.empty() && flags.name.empty() && flags.model_dir.empty()) {
    return absl::OkStatus();
  }
  if (!flags.increments.empty()) {
    return WithFix(absl::InvalidArgumentError("--increments goes without --name and --model"),
                   "load the model first, and its increments with a second command");
  }
  if (flags.name.empty() == flags.model_dir.empty()) {
    return WithFix(absl::InvalidArgumentError("load requires exactly one of --name and --model"),
                   "--name: what cistern save wrote on the servers; --model: a folder on this "
                   "machine");
  }
  if (flags.foreign && flags.name.empty()) {
    return WithFix(absl::InvalidArgumentError("--foreign requires --name"),
                   "put the folder below each server's data_dir and name it");
  }
  const bool takes_config =
      !flags.model_dir.empty() || flags.foreign || flags.upgrade || !flags.tables.empty();
  if (!flags.model_dir.empty() && flags.model.config.empty()) {
    return WithFix(absl::InvalidArgumentError("--model requires --config"),
                   "name both the model folder and the model file that it was trained from");
  }
  if (takes_config || flags.model.config.empty()) return absl::OkStatus();
  return WithFix(absl::InvalidArgumentError(
                     "--config requires --model, or --name with --foreign, --upgrade or --tables"),
                 "leave it out: the files of cistern save define their tables");
}

// Reports the tables that start empty, because their saved rows do not fit or were not requested.
void AppendLeftOut(const app::LoadedFleet& loaded, Report* report) {
  report->json["left_out"] = nlohmann::ordered_json::array();
  for (const v1::TableLeftOut& table : loaded.left_out) {
    report->json["left_out"].push_back({{"table", table.name()}, {"reason", table.reason()}});
    absl::StrAppend(&report->text, "left out: table '", table.name(), "' (", table.reason(),
                    "); it starts from initial values\n");
  }
}

Report NothingToDo(const app::LoadedFleet& loaded, bool increments) {
  Report report;
  report.json["already_there"] = true;
  if (increments) report.json["increments"] = 0;
  report.json["rows"] = loaded.rows;
  report.text = increments
                    ? "nothing to do: the servers hold the rows of the last increment\n"
                    : absl::StrCat("nothing to do: the servers hold exactly these rows (pass ",
                                   loaded.pass, ")\n");
  return report;
}

}  // namespace

void AppendTotals(const char* verb, uint64_t rows, uint64_t bytes, double seconds, Report* report) {
  report->json["rows"] = rows;
  if (bytes > 0) report->json["bytes"] = bytes;
  report->json["seconds"] = seconds;
  absl::StrAppend(&report->text, verb, " ", rows, " rows",
                  bytes > 0 ? absl::StrCat(", ", BytesText(bytes)) : "", " in ",
                  DurationText(seconds), "\n");
}

absl::StatusOr<Report> RunLoad(const LoadFlags& flags, Console* console) {
  CISTERN_RETURN_IF_ERROR(CheckLoadFlags(flags));
  const absl::Time start = absl::Now();
  const absl::StatusOr<app::LoadedFleet> loaded =
      app::LoadFleet(LoadOptionsOf(flags), JobConsole(console).calls());
  if (!loaded.ok()) return WithTrainFix(loaded.status(), flags.model);
  const bool increments = !flags.increments.empty();
  if (loaded->already_there) return NothingToDo(*loaded, increments);
  Report report;
  report.json["already_there"] = false;
  if (increments) {
    report.json["increments"] = loaded->increments;
    report.text =
        absl::StrCat(loaded->increments, " of ", flags.increments.size(), " increments applied\n");
  } else {
    AppendLeftOut(*loaded, &report);
  }
  AppendTotals("loaded", loaded->rows, 0, absl::ToDoubleSeconds(absl::Now() - start), &report);
  return report;
}

void AddLoadCommand(Command& root) {
  auto flags = std::make_shared<LoadFlags>();
  Command& command =
      root.Add("load", "Loads a saved model into an empty fleet with any number of servers.",
               "cistern load --servers 127.0.0.1:7700 --name monday");
  AddFleetFlags(command, &flags->fleet, false);
  AddTakeOverFlag(command, &flags->fleet);
  command.Flag(
      "--name,--from", &flags->name,
      {"NAME", "Folder below each server's data_dir, written by cistern save.", "--name monday"});
  command.Flag("--model", &flags->model_dir,
               {"DIR", "Instead of --name: a model folder on this machine (from cistern train).",
                "--model runs/deepfm"});
  command.Flag(
      "--config", &flags->model.config,
      {"FILE",
       "With --model: the model file that it was trained from. With --foreign, --upgrade or "
       "--tables: the model file whose tables are created if the servers have none.",
       "--config deepfm.json"});
  command.List(
      "--set", &flags->model.set, false,
      {"PATH=VALUE", "With --config: replaces a value of the model file.", "--set seed=7"});
  command.List("--increments", &flags->increments, true,
               {"DIR,...",
                "Instead of --name: what cistern save --since wrote, the oldest first, for servers "
                "that hold the rows before. Each is committed as one pass; those that the servers "
                "have are left out.",
                "--increments changes13,changes14"});
  command.Switch(
      "--replace", &flags->replace,
      {"",
       "Removes what the servers hold first. If the load then fails, durable servers return to "
       "their last commit; other servers stay empty.",
       "--replace"});
  AddPreconditionFlags(command, &flags->expected);
  command.Switch("--upgrade", &flags->upgrade,
                 {"",
                  "Converts rows of a table that has changed since: another dim or rule, an older "
                  "format. Dense tables with another number of rows are left out and start empty.",
                  "--upgrade"});
  command.List("--tables", &flags->tables, true,
               {"NAME,...", "Reads these tables only; the others start empty.", "--tables deep"});
  command.Switch(
      "--foreign", &flags->foreign,
      {"", "NAME is a folder written by PSLib or Paddle: NAME/000/part-*, 001 ...", "--foreign"});
  command.Does([flags](Console& console) { return RunLoad(*flags, &console); });
}

}  // namespace cistern::cli
