#include "cli/save_load_commands.h"

#include <memory>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "cli/activity.h"
#include "cli/exit_code.h"
#include "cli/held_model.h"
#include "cli/model_source.h"
#include "cli/progress.h"
#include "common/check.h"
#include "common/model_folder.h"

namespace cistern {
namespace {

// Rows, bytes and rate of a save or load, in both forms.
void AppendTotals(const char* verb, uint64_t rows, uint64_t bytes, double seconds, Report* report) {
  report->json["rows"] = rows;
  if (bytes > 0) report->json["bytes"] = bytes;
  report->json["seconds"] = seconds;
  absl::StrAppend(&report->text, verb, " ", rows, " rows",
                  bytes > 0 ? absl::StrCat(", ", BytesText(bytes)) : "", " in ",
                  DurationText(seconds), "\n");
}

absl::Status WithSaveFix(const absl::Status& status, const SaveFlags& flags) {
  if (status.code() == absl::StatusCode::kAlreadyExists) {
    return WithFix(status, "a saved model never changes: choose another --name");
  }
  if (status.code() == absl::StatusCode::kResourceExhausted) {
    return WithFix(status,
                   "make room under the server's data_dir and save under another --name; "
                   "the servers' state is untouched");
  }
  return WithFleetFix(status, flags.fleet);
}

v1::SaveRequest SaveRequestOf(const SaveFlags& flags) {
  v1::SaveRequest request;
  request.set_name(flags.name);
  v1::SaveMode mode = v1::ALL;
  v1::SaveFormat::Kind kind = v1::SaveFormat::TEXT;
  // Choice flags: one of the words.
  CISTERN_CHECK(v1::SaveMode_Parse(absl::AsciiStrToUpper(flags.mode), &mode));
  CISTERN_CHECK(v1::SaveFormat::Kind_Parse(absl::AsciiStrToUpper(flags.rows), &kind));
  request.set_mode(mode);
  request.set_day(static_cast<uint32_t>(flags.day));
  request.mutable_format()->set_kind(kind);
  request.mutable_format()->set_gzip(flags.gzip);
  request.mutable_format()->set_six_digits(flags.six_digits);
  return request;
}

absl::Status CheckSaveFlags(const SaveFlags& flags) {
  CISTERN_RETURN_IF_ERROR(CheckDayFlag(flags.day));
  if (!flags.six_digits || flags.rows == "text") return absl::OkStatus();
  return WithFix(absl::InvalidArgumentError("--six-digits is of --format text"),
                 "leave one of them out: a binary save holds every bit");
}

// The passes that the servers have saved: one, unless a training commits meanwhile.
std::set<uint64_t> PassesOf(const std::vector<v1::SaveReply>& replies) {
  std::set<uint64_t> passes;
  for (const v1::SaveReply& reply : replies) passes.insert(reply.pass());
  return passes;
}

// Every server saves what it has committed. While a training commits some may have the pass before
// that of the others, and then all save once more.
absl::Status SaveOnePass(ParameterClient& client, const v1::SaveRequest& save, Console* console,
                         std::vector<v1::SaveReply>* replies) {
  constexpr int kAttempts = 20;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Activity activity(console, "saving", "servers", replies->size());
    CISTERN_RETURN_IF_ERROR(
        client.ForEachServer([&](size_t rank, ControlPlane& server) -> absl::Status {
          v1::SaveRequest request = save;
          *request.mutable_identity() = client.identity();
          v1::SaveReply& reply = (*replies)[rank];
          if (attempt > 0) request.set_instead_of_pass(reply.pass());
          reply.Clear();
          CISTERN_RETURN_IF_ERROR(server.Save(request, &reply));
          activity.Done();
          return absl::OkStatus();
        }));
    if (PassesOf(*replies).size() == 1) return absl::OkStatus();
  }
  return WithFix(
      absl::AbortedError(absl::StrCat(
          "the servers have saved passes ", absl::StrJoin(PassesOf(*replies), " and "), ", and so ",
          kAttempts, " times: a training commits faster than they save; what is in '", save.name(),
          "' is no state of the fleet")),
      "save under another --name while nothing trains, or give the training longer passes");
}

// What follows a save once all of its files are on disk.
absl::Status UpdateAfterSave(ParameterClient& client, const v1::SaveRequest& save) {
  const absl::Status updated =
      client.ChangeInPlace([&](size_t, ControlPlane& server, uint64_t changes) {
        v1::UpdateAfterSaveRequest request;
        *request.mutable_identity() = client.identity();
        request.set_mode(save.mode());
        request.set_day(save.day());
        request.set_changes(changes);
        v1::PassReply reply;
        return server.UpdateAfterSave(request, &reply);
      });
  return AddContext(updated, absl::StrCat("the files of '", save.name(),
                                          "' are saved, but the statistics of their rows were not "
                                          "reset"));
}

// Servers without tables make them from the schema that the files carry, or from a model file.
v1::LoadRequest LoadRequestOf(const LoadFlags& flags) {
  v1::LoadRequest request;
  request.set_name(flags.name);
  request.set_upgrade(flags.upgrade);
  request.set_foreign(flags.foreign);
  for (const std::string& table : flags.tables) request.add_tables(table);
  return request;
}

// A fleet keeps the tables that it was made with, --replace or not.
absl::Status WithOtherTablesFix(const absl::Status& status) {
  if (!absl::IsFailedPrecondition(status)) return status;
  return WithFix(status,
                 "tables of a fleet do not change: start servers on a new --data_dir, copy the "
                 "saved model there, and load it with this --config (and --upgrade)");
}

absl::Status LoadFromHere(const LoadFlags& flags, ParameterClient& client, v1::LoadReply* reply) {
  CISTERN_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(flags.model));
  CISTERN_ASSIGN_OR_RETURN(const std::string folder, FindModelFolder(flags.model_dir));
  LocalFileSystem files;
  const LoadChoice choice = {flags.upgrade, flags.tables};
  std::vector<v1::TableLeftOut> left_out;
  CISTERN_RETURN_IF_ERROR(
      FromCheckpoint(LoadModel(files, config, client, folder, choice, &left_out)));
  for (const v1::TableLeftOut& table : left_out) *reply->add_left_out() = table;
  CISTERN_ASSIGN_OR_RETURN(const uint64_t rows, RowsOn(client));
  reply->set_rows(rows);
  return absl::OkStatus();
}

// What a failed load says beside its error.
absl::Status WithLoadFix(const absl::Status& status, const LoadFlags& flags) {
  if (absl::IsNotFound(status) && !flags.name.empty()) {
    return WithFix(absl::InvalidArgumentError(status.message()),
                   "--name is a folder below each server's --data_dir: see what is there with "
                   "cistern ckpt ls DATA_DIR, or copy the saved model there");
  }
  return WithFleetFix(status, flags.fleet);
}

// Whether a load step is run again on servers that kept what it loaded.
absl::StatusOr<bool> IsLoaded(const LoadFlags& flags, ParameterClient& client) {
  LocalFileSystem files;
  if (flags.foreign || !flags.tables.empty()) return false;
  if (!flags.name.empty()) return HoldsSavedModel(files, client, flags.name);
  CISTERN_ASSIGN_OR_RETURN(const std::string folder, FindModelFolder(flags.model_dir));
  return HoldsModel(files, client, folder);
}

absl::Status RefuseToReplace(ParameterClient& client) {
  CISTERN_ASSIGN_OR_RETURN(const uint64_t rows, RowsOn(client));
  return WithFix(
      absl::InvalidArgumentError(absl::StrCat("the servers hold ", rows, " rows (pass ",
                                              client.committed_pass(), ") and would lose them")),
      "add --replace to remove them first");
}

// Whether a server that holds rows would load this, if it held none: that is what it says last. One
// without rows is not asked, for it would load.
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

// Servers that hold something are emptied once it is known that there is a model to load.
absl::Status MakeEmpty(const LoadFlags& flags, ParameterClient& client) {
  if (!flags.model_dir.empty()) {
    CISTERN_RETURN_IF_ERROR(ReadModelConfig(flags.model).status());
    CISTERN_ASSIGN_OR_RETURN(const std::string folder, FindModelFolder(flags.model_dir));
    LocalFileSystem files;
    CISTERN_RETURN_IF_ERROR(FromCheckpoint(ReadParts(files, folder).status()));
  } else {
    CISTERN_RETURN_IF_ERROR(FromCheckpoint(client.ForEachServer([&](size_t, ControlPlane& server) {
      return AskWhetherItLoads(flags, client.identity(), server);
    })));
  }
  return client.Clear(0);
}

// After a load that failed. Durable servers go back to their last commit with the next claim. Of
// the others some may have read their part, and an empty fleet is better than a mixed one, which no
// client accepts. Each is asked for its identity, because it may have made tables that the client
// does not know.
void UndoLoad(ParameterClient& client) {
  if (client.durable()) {
    client.ClaimEpoch().IgnoreError();  // a server that is down does it when somebody claims
    return;
  }
  for (const ServerLink& server : client.servers()) {
    v1::HelloReply hello;
    if (!server.control->Hello({}, &hello).ok()) continue;
    v1::ClearRequest request;
    *request.mutable_identity() = hello.identity();
    v1::PassReply reply;
    // The cause of the failed load is what people must see.
    server.control->Clear(request, &reply).IgnoreError();
  }
}

absl::Status CheckLoadFlags(const LoadFlags& flags) {
  if (flags.name.empty() == flags.model_dir.empty()) {
    return WithFix(absl::InvalidArgumentError("load takes one of --name and --model"),
                   "--name: what cistern save wrote on the servers; --model: a folder here");
  }
  if (flags.foreign && flags.name.empty()) {
    return WithFix(absl::InvalidArgumentError("--foreign is of --name"),
                   "put the folder below each server's data_dir and name it");
  }
  const bool takes_config =
      !flags.model_dir.empty() || flags.foreign || flags.upgrade || !flags.tables.empty();
  if (!flags.model_dir.empty() && flags.model.config.empty()) {
    return WithFix(absl::InvalidArgumentError("--model and --config belong together"),
                   "name both the model folder and the model file that it was trained from");
  }
  if (takes_config || flags.model.config.empty()) return absl::OkStatus();
  return WithFix(absl::InvalidArgumentError(
                     "--config is of --model, and of --name with --foreign, --upgrade or --tables"),
                 "leave it out: what cistern save wrote says what its tables are");
}

// Tables that start anew, because their saved rows do not fit or were not asked for.
void AppendLeftOut(const v1::LoadReply& reply, Report* report) {
  report->json["left_out"] = nlohmann::ordered_json::array();
  for (const v1::TableLeftOut& table : reply.left_out()) {
    report->json["left_out"].push_back({{"table", table.name()}, {"reason", table.reason()}});
    absl::StrAppend(&report->text, "left out: table '", table.name(), "' (", table.reason(),
                    "); it starts anew\n");
  }
}

absl::StatusOr<bool> IsEmpty(ParameterClient& client) {
  CISTERN_ASSIGN_OR_RETURN(const uint64_t rows, RowsOn(client));
  return rows == 0 && client.committed_pass() == 0;
}

absl::StatusOr<Report> NothingToDo(ParameterClient& client) {
  Report report;
  CISTERN_ASSIGN_OR_RETURN(const uint64_t rows, RowsOn(client));
  report.json["already_there"] = true;
  report.json["rows"] = rows;
  report.text = absl::StrCat("nothing to do: the servers hold exactly these rows (pass ",
                             client.committed_pass(), ")\n");
  return report;
}

// Creates the tables of the model file for a load whose files do not say them, or say others.
absl::Status CreateTablesFor(const LoadFlags& flags, ParameterClient& client) {
  if (flags.name.empty() || flags.model.config.empty()) return absl::OkStatus();
  CISTERN_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(flags.model));
  CISTERN_ASSIGN_OR_RETURN(const v1::Schema schema, SchemaOf(config));
  return WithOtherTablesFix(client.CreateTables(schema));
}

}  // namespace

absl::StatusOr<Report> RunSave(const SaveFlags& flags, Console* console) {
  CISTERN_RETURN_IF_ERROR(CheckSaveFlags(flags));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<FleetSession> fleet,
                           FleetSession::Open(flags.fleet));
  ParameterClient& client = fleet->client();
  const v1::SaveRequest save = SaveRequestOf(flags);
  // Nobody may commit between the save and the reset of what it saved.
  if (save.mode() != v1::ALL) CISTERN_RETURN_IF_ERROR(client.ClaimEpoch());
  const absl::Time start = absl::Now();
  std::vector<v1::SaveReply> replies(client.servers().size());
  const absl::Status saved = SaveOnePass(client, save, console, &replies);
  if (!saved.ok()) return WithSaveFix(saved, flags);
  if (save.mode() != v1::ALL) {
    CISTERN_RETURN_IF_ERROR(WithFleetFix(UpdateAfterSave(client, save), flags.fleet));
  }
  Report report;
  report.json["name"] = flags.name;
  report.json["mode"] = flags.mode;
  report.json["committed_pass"] = replies[0].pass();
  uint64_t rows = 0, bytes = 0;
  for (size_t rank = 0; rank < replies.size(); ++rank) {
    rows += replies[rank].rows();
    bytes += replies[rank].bytes();
    report.json["servers"].push_back({{"address", client.servers()[rank].name},
                                      {"path", replies[rank].path()},
                                      {"rows", replies[rank].rows()},
                                      {"bytes", replies[rank].bytes()},
                                      {"files", replies[rank].files_size()}});
    absl::StrAppend(&report.text, client.servers()[rank].name, "  ", replies[rank].rows(),
                    " rows  ", replies[rank].path(), "\n");
  }
  AppendTotals("saved", rows, bytes, absl::ToDoubleSeconds(absl::Now() - start), &report);
  return report;
}

absl::StatusOr<Report> RunLoad(const LoadFlags& flags, Console* console) {
  CISTERN_RETURN_IF_ERROR(CheckLoadFlags(flags));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<FleetSession> fleet,
                           FleetSession::Open(flags.fleet));
  ParameterClient& client = fleet->client();
  CISTERN_RETURN_IF_ERROR(CheckExpectedPass(client, flags.expected));
  CISTERN_RETURN_IF_ERROR(CreateTablesFor(flags, client));
  CISTERN_ASSIGN_OR_RETURN(bool empty, IsEmpty(client));
  if (!empty && !flags.replace) {  // while whoever trains there goes on
    CISTERN_ASSIGN_OR_RETURN(const bool same, IsLoaded(flags, client));
    if (same) return NothingToDo(client);
    return RefuseToReplace(client);
  }
  CISTERN_RETURN_IF_ERROR(client.ClaimEpoch());
  CISTERN_RETURN_IF_ERROR(CheckExpected(client, flags.expected));
  CISTERN_ASSIGN_OR_RETURN(empty, IsEmpty(client));  // nobody moves it any more
  if (!empty && !flags.replace) return RefuseToReplace(client);
  if (!empty) CISTERN_RETURN_IF_ERROR(WithLoadFix(MakeEmpty(flags, client), flags));
  const absl::Time start = absl::Now();
  v1::LoadReply reply;
  Activity activity(console, "loading", "models", 1);
  const absl::Status loaded = flags.model_dir.empty()
                                  ? FromCheckpoint(client.Load(LoadRequestOf(flags), &reply))
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

void AddSaveCommand(Command& root) {
  auto flags = std::make_shared<SaveFlags>();
  Command& command =
      root.Add("save", "Saves the committed state of a fleet: each server its part, as files.",
               "cistern save --servers 127.0.0.1:7700,127.0.0.1:7701 --name monday");
  AddFleetFlags(command, &flags->fleet, false);
  command.Flag(
      "--name,--to", &flags->name,
      {"NAME", "Folder below each server's data_dir; must be new.", "--name monday", kRequired});
  command.Choice("--mode", &flags->mode,
                 {"all|delta|base|batch",
                  "Which rows: all; ctr rows with a score, of those that changed (delta) or not "
                  "(base); all at the end of a day (batch).",
                  "--mode delta"});
  command.Choice("--format", &flags->rows,
                 {"text|binary", "How a row is written.", "--format binary"});
  command.Switch("--gzip", &flags->gzip, {"", "Compresses the files.", "--gzip"});
  command.Switch(
      "--six-digits", &flags->six_digits,
      {"", "With text: 6 significant digits, as PSLib writes them. Lossy.", "--six-digits"});
  AddDayFlag(command, &flags->day);
  command.Does([flags](Console& console) { return RunSave(*flags, &console); });
}

void AddLoadCommand(Command& root) {
  auto flags = std::make_shared<LoadFlags>();
  Command& command = root.Add(
      "load", "Loads a saved state into a fleet of any number of servers that hold nothing yet.",
      "cistern load --servers 127.0.0.1:7700 --name monday");
  AddFleetFlags(command, &flags->fleet, false);
  command.Flag(
      "--name,--from", &flags->name,
      {"NAME", "Folder below each server's data_dir, written by cistern save.", "--name monday"});
  command.Flag("--model", &flags->model_dir,
               {"DIR", "Instead of --name: a model folder of this machine (of cistern train).",
                "--model runs/deepfm"});
  command.Flag(
      "--config", &flags->model.config,
      {"FILE",
       "With --model: the model file that it was trained from. With --foreign, --upgrade or "
       "--tables: whose tables are made where the servers have none.",
       "--config deepfm.json"});
  command.List(
      "--set", &flags->model.set, false,
      {"PATH=VALUE", "With --config: replaces a value of the model file.", "--set seed=7"});
  command.Switch(
      "--replace", &flags->replace,
      {"",
       "Removes what the servers hold first. If the load then fails, durable servers go back to "
       "their last commit; on others it is gone.",
       "--replace"});
  AddExpectationFlags(command, &flags->expected);
  command.Switch("--upgrade", &flags->upgrade,
                 {"",
                  "Converts rows whose table has changed since: another dim or rule, older lines. "
                  "Dense tables "
                  "of another number of rows are left out: they start anew.",
                  "--upgrade"});
  command.List("--tables", &flags->tables, true,
               {"NAME,...", "Reads these tables only; the others stay empty and start anew.",
                "--tables deep"});
  command.Switch(
      "--foreign", &flags->foreign,
      {"", "NAME is a folder as PSLib and Paddle write it: NAME/000/part-*, 001 ...", "--foreign"});
  command.Does([flags](Console& console) { return RunLoad(*flags, &console); });
}

}  // namespace cistern
