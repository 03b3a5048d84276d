#include "cli/command/save_load_commands.h"

#include <memory>

#include "absl/time/clock.h"
#include "app/fleet/held_model.h"
#include "app/fleet/load_increments.h"
#include "app/model/model_source.h"
#include "cli/command/job_console.h"
#include "cli/command/shared_flags.h"
#include "cli/terminal/activity.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/progress.h"
#include "common/saved_model/model_folder.h"

namespace cistern {
namespace {

// Servers without tables create them from the schema in the files, or from a model file.
v1::LoadRequest LoadRequestOf(const LoadFlags& flags) {
  v1::LoadRequest request;
  request.set_name(flags.name);
  request.set_upgrade(flags.upgrade);
  request.set_foreign(flags.foreign);
  for (const std::string& table : flags.tables) request.add_tables(table);
  return request;
}

// The tables of a fleet never change, not even with --replace; adds a fix to the error that says
// so.
absl::Status WithOtherTablesFix(const absl::Status& status) {
  if (!absl::IsFailedPrecondition(status)) return status;
  return WithFix(
      status,
      "a fleet's tables cannot change: start servers on a new --data_dir, copy the saved "
      "model there, and load it with this --config (and --upgrade)");
}

absl::Status LoadFromHere(const LoadFlags& flags, ParameterClient& client, v1::LoadReply* reply) {
  CISTERN_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelArgument(flags.model));
  CISTERN_ASSIGN_OR_RETURN(const std::string folder, app::FindModelFolder(flags.model_dir));
  LocalFileSystem files;
  const LoadChoice choice = {flags.upgrade, flags.tables};
  std::vector<v1::TableLeftOut> left_out;
  CISTERN_RETURN_IF_ERROR(WithKind(LoadModel(files, config, client, folder, choice, &left_out),
                                   ErrorKind::kBadCheckpoint));
  for (const v1::TableLeftOut& table : left_out) *reply->add_left_out() = table;
  CISTERN_ASSIGN_OR_RETURN(const uint64_t rows, app::RowsOn(client));
  reply->set_rows(rows);
  return absl::OkStatus();
}

// Adds a fix to the error of a failed load.
absl::Status WithLoadFix(const absl::Status& status, const LoadFlags& flags) {
  if (absl::IsNotFound(status) && !flags.name.empty()) {
    return WithFix(MissingIsUsage(status),
                   "--name is a folder below each server's --data_dir: list them with cistern ckpt "
                   "ls DATA_DIR, or copy the saved model there");
  }
  return app::WithFleetFix(status, flags.fleet);
}

// Whether the servers already hold these rows, as after a repeated load.
absl::StatusOr<bool> IsLoaded(const LoadFlags& flags, ParameterClient& client) {
  LocalFileSystem files;
  if (flags.foreign || !flags.tables.empty()) return false;
  if (!flags.name.empty()) return app::HoldsSavedModel(files, client, flags.name);
  CISTERN_ASSIGN_OR_RETURN(const std::string folder, app::FindModelFolder(flags.model_dir));
  return app::HoldsModel(files, client, folder);
}

absl::Status RefuseToReplace(ParameterClient& client) {
  CISTERN_ASSIGN_OR_RETURN(const uint64_t rows, app::RowsOn(client));
  return WithFix(
      absl::InvalidArgumentError(absl::StrCat("the servers hold ", rows, " rows (pass ",
                                              client.committed_pass(), ") and would lose them")),
      "add --replace to remove those rows first");
}

// Checks that a server with rows could load the model if it were empty. A server checks for rows of
// its own last: kAlreadyExists means that only those are in the way. Servers without rows are not
// asked, because they would load.
absl::Status AskWhetherItLoads(const LoadFlags& flags, const v1::Identity& identity,
                               ControlPlane& server) {
  v1::StatsRequest stats;
  *stats.mutable_identity() = identity;
  v1::StatsReply holds;
  CISTERN_RETURN_IF_ERROR(server.Stats(stats, &holds));
  uint64_t rows = 0;
  for (const v1::TableStats& table : holds.tables()) rows += table.rows();
  if (rows == 0) return absl::OkStatus();
  v1::LoadRequest request = LoadRequestOf(flags);
  *request.mutable_identity() = identity;
  v1::LoadReply reply;
  const absl::Status loaded = server.Load(request, &reply);
  return absl::IsAlreadyExists(loaded) ? absl::OkStatus() : loaded;
}

// Empties the servers, after checking that the model to load exists and can be read.
absl::Status MakeEmpty(const LoadFlags& flags, ParameterClient& client) {
  if (!flags.model_dir.empty()) {
    CISTERN_RETURN_IF_ERROR(ReadModelArgument(flags.model).status());
    CISTERN_ASSIGN_OR_RETURN(const std::string folder, app::FindModelFolder(flags.model_dir));
    LocalFileSystem files;
    CISTERN_RETURN_IF_ERROR(WithKind(ReadParts(files, folder).status(), ErrorKind::kBadCheckpoint));
  } else {
    CISTERN_RETURN_IF_ERROR(WithKind(client.ForEachServer([&](size_t, ControlPlane& server) {
      return AskWhetherItLoads(flags, client.identity(), server);
    }),
                                     ErrorKind::kBadCheckpoint));
  }
  return client.Clear(0);
}

// Cleans up after a failed load. Durable servers return to their last commit at the next claim.
// Others are emptied: some of them may have read their part, and clients refuse a mixed fleet. The
// identity comes from each server, because a server may have created tables that the client does
// not know.
void UndoLoad(ParameterClient& client) {
  if (client.durable()) {
    client.ClaimTerm().IgnoreError();  // a server that is down returns at the next writer's claim
    return;
  }
  for (const ServerLink& server : client.servers()) {
    v1::HelloReply hello;
    if (!server.control->Hello({}, &hello).ok()) continue;
    v1::ClearRequest request;
    *request.mutable_identity() = hello.identity();
    request.mutable_identity()->set_secret(client.identity().secret());
    v1::PassReply reply;
    // The user must see the error of the load, not one of this cleanup.
    server.control->Clear(request, &reply).IgnoreError();
  }
}

// Commits increments on servers that hold the rows before.
absl::StatusOr<Report> RunLoadIncrements(const LoadFlags& flags, ParameterClient& client,
                                         Console* console) {
  LocalFileSystem files;
  const absl::Time start = absl::Now();
  absl::StatusOr<app::LoadedIncrements> loaded =
      app::LoadIncrements(files, client, flags.increments, JobConsole(console).calls());
  if (!loaded.ok()) return app::WithFleetFix(loaded.status(), flags.fleet);
  Report report;
  report.json["already_there"] = loaded->applied == 0;
  report.json["increments"] = loaded->applied;
  if (loaded->applied == 0) {
    report.json["rows"] = 0;
    report.text = "nothing to do: the servers hold the rows of the last increment\n";
    return report;
  }
  report.text =
      absl::StrCat(loaded->applied, " of ", flags.increments.size(), " increments applied\n");
  AppendTotals("loaded", loaded->rows, 0, absl::ToDoubleSeconds(absl::Now() - start), &report);
  return report;
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
void AppendLeftOut(const v1::LoadReply& reply, Report* report) {
  report->json["left_out"] = nlohmann::ordered_json::array();
  for (const v1::TableLeftOut& table : reply.left_out()) {
    report->json["left_out"].push_back({{"table", table.name()}, {"reason", table.reason()}});
    absl::StrAppend(&report->text, "left out: table '", table.name(), "' (", table.reason(),
                    "); it starts from initial values\n");
  }
}

absl::StatusOr<bool> IsEmpty(ParameterClient& client) {
  CISTERN_ASSIGN_OR_RETURN(const uint64_t rows, app::RowsOn(client));
  return rows == 0 && client.committed_pass() == 0;
}

absl::StatusOr<Report> NothingToDo(ParameterClient& client) {
  Report report;
  CISTERN_ASSIGN_OR_RETURN(const uint64_t rows, app::RowsOn(client));
  report.json["already_there"] = true;
  report.json["rows"] = rows;
  report.text = absl::StrCat("nothing to do: the servers hold exactly these rows (pass ",
                             client.committed_pass(), ")\n");
  return report;
}

// Creates the tables of the model file if the files to load define no tables, or other ones.
absl::Status CreateTablesFor(const LoadFlags& flags, ParameterClient& client) {
  if (flags.name.empty() || flags.model.config.empty()) return absl::OkStatus();
  CISTERN_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelArgument(flags.model));
  CISTERN_ASSIGN_OR_RETURN(const v1::Schema schema, SchemaOf(config));
  return WithOtherTablesFix(client.CreateTables(schema));
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
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<app::FleetSession> fleet,
                           app::FleetSession::Open(flags.fleet));
  ParameterClient& client = fleet->client();
  CISTERN_RETURN_IF_ERROR(app::CheckExpectedPass(client, flags.expected));
  if (!flags.increments.empty()) return RunLoadIncrements(flags, client, console);
  CISTERN_RETURN_IF_ERROR(CreateTablesFor(flags, client));
  CISTERN_ASSIGN_OR_RETURN(bool empty, IsEmpty(client));
  if (!empty && !flags.replace) {  // before ClaimTerm, which would stop a running training
    CISTERN_ASSIGN_OR_RETURN(const bool same, IsLoaded(flags, client));
    if (same) return NothingToDo(client);
    return RefuseToReplace(client);
  }
  CISTERN_RETURN_IF_ERROR(client.ClaimTerm());
  CISTERN_RETURN_IF_ERROR(app::CheckExpected(client, flags.expected));
  CISTERN_ASSIGN_OR_RETURN(empty, IsEmpty(client));  // again: now no other writer can change it
  if (!empty && !flags.replace) return RefuseToReplace(client);
  if (!empty) CISTERN_RETURN_IF_ERROR(WithLoadFix(MakeEmpty(flags, client), flags));
  const absl::Time start = absl::Now();
  v1::LoadReply reply;
  Activity activity(console, "loading", "models", 1);
  const absl::Status loaded =
      flags.model_dir.empty()
          ? WithKind(client.Load(LoadRequestOf(flags), &reply), ErrorKind::kBadCheckpoint)
          : LoadFromHere(flags, client, &reply);
  if (!loaded.ok()) {
    UndoLoad(client);
    return WithLoadFix(loaded, flags);
  }
  Report report;
  report.json["already_there"] = false;
  AppendLeftOut(reply, &report);
  AppendTotals("loaded", reply.rows(), 0, absl::ToDoubleSeconds(absl::Now() - start), &report);
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

}  // namespace cistern
