#include "app/admin/load_fleet.h"

#include <memory>

#include "app/fleet/held_model.h"
#include "app/fleet/load_increments.h"
#include "common/saved_model/model_folder.h"
#include "worker/train/jobs.h"

namespace cistern::app {
namespace {

// Servers without tables create them from the schema in the files, or from a model file.
v1::LoadRequest LoadRequestOf(const LoadFleetOptions& options) {
  v1::LoadRequest request;
  request.set_name(options.name);
  request.set_upgrade(options.upgrade);
  request.set_foreign(options.foreign);
  for (const std::string& table : options.tables) request.add_tables(table);
  return request;
}

// The tables of a fleet never change, not even if it is emptied; adds a fix to the error that says
// so.
absl::Status WithOtherTablesFix(const absl::Status& status) {
  if (!absl::IsFailedPrecondition(status)) return status;
  return WithOptions(
      WithFix(status,
              "a fleet's tables cannot change: start servers on a new data_dir, copy the saved "
              "model there, and load it with this model file"),
      {"config", "upgrade"});
}

absl::Status LoadFromHere(const LoadFleetOptions& options, ParameterClient& client,
                          v1::LoadReply* reply) {
  CISTERN_ASSIGN_OR_RETURN(const model::ModelConfig config, ReadModelConfig(options.model));
  CISTERN_ASSIGN_OR_RETURN(const std::string folder, FindModelFolder(options.model_dir));
  LocalFileSystem files;
  const LoadChoice choice = {options.upgrade, options.tables};
  std::vector<v1::TableLeftOut> left_out;
  CISTERN_RETURN_IF_ERROR(WithKind(LoadModel(files, config, client, folder, choice, &left_out),
                                   ErrorKind::kBadCheckpoint));
  for (const v1::TableLeftOut& table : left_out) *reply->add_left_out() = table;
  CISTERN_ASSIGN_OR_RETURN(const uint64_t rows, RowsOn(client));
  reply->set_rows(rows);
  return absl::OkStatus();
}

// Adds a fix to the error of a failed load.
absl::Status WithLoadFix(const absl::Status& status, const LoadFleetOptions& options) {
  if (!absl::IsNotFound(status) || options.name.empty()) {
    return WithFleetFix(status, options.fleet);
  }
  return WithOptions(WithFix(WithCode(status, absl::StatusCode::kInvalidArgument),
                             "it is a folder below each server's data_dir: list those that there "
                             "are with cistern ckpt ls DATA_DIR, or copy the saved model there"),
                     {"name"});
}

// Whether the servers already hold these rows, as after a repeated load.
absl::StatusOr<bool> IsLoaded(const LoadFleetOptions& options, ParameterClient& client) {
  LocalFileSystem files;
  if (options.foreign || !options.tables.empty()) return false;
  if (!options.name.empty()) return HoldsSavedModel(files, client, options.name);
  CISTERN_ASSIGN_OR_RETURN(const std::string folder, FindModelFolder(options.model_dir));
  return HoldsModel(files, client, folder);
}

absl::Status RefuseToReplace(ParameterClient& client) {
  CISTERN_ASSIGN_OR_RETURN(const uint64_t rows, RowsOn(client));
  return WithOptions(WithFix(absl::InvalidArgumentError(
                                 absl::StrCat("the servers hold ", rows, " rows (pass ",
                                              client.committed_pass(), ") and would lose them")),
                             "ask for those rows to be removed first"),
                     {"replace"});
}

// Checks that a server with rows could load the model if it were empty. A server checks for rows of
// its own last: kAlreadyExists means that only those are in the way. Servers without rows are not
// asked, because they would load.
absl::Status AskWhetherItLoads(const LoadFleetOptions& options, const v1::Identity& identity,
                               ControlPlane& server) {
  v1::StatsRequest stats;
  *stats.mutable_identity() = identity;
  v1::StatsReply holds;
  CISTERN_RETURN_IF_ERROR(server.Stats(stats, &holds));
  if (RowsOf(holds) == 0) return absl::OkStatus();
  v1::LoadRequest request = LoadRequestOf(options);
  *request.mutable_identity() = identity;
  v1::LoadReply reply;
  const absl::Status loaded = server.Load(request, &reply);
  return absl::IsAlreadyExists(loaded) ? absl::OkStatus() : loaded;
}

// Empties the servers, after checking that the model to load exists and can be read.
absl::Status MakeEmpty(const LoadFleetOptions& options, ParameterClient& client) {
  if (!options.model_dir.empty()) {
    CISTERN_RETURN_IF_ERROR(ReadModelConfig(options.model).status());
    CISTERN_ASSIGN_OR_RETURN(const std::string folder, FindModelFolder(options.model_dir));
    LocalFileSystem files;
    CISTERN_RETURN_IF_ERROR(WithKind(ReadParts(files, folder).status(), ErrorKind::kBadCheckpoint));
  } else {
    CISTERN_RETURN_IF_ERROR(WithKind(client.ForEachServer([&](size_t, ControlPlane& server) {
      return AskWhetherItLoads(options, client.identity(), server);
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

absl::StatusOr<bool> IsEmpty(ParameterClient& client) {
  CISTERN_ASSIGN_OR_RETURN(const uint64_t rows, RowsOn(client));
  return rows == 0 && client.committed_pass() == 0;
}

// Creates the tables of the model file if the files to load define no tables, or other ones.
absl::Status CreateTablesFor(const LoadFleetOptions& options, ParameterClient& client) {
  if (options.name.empty() || options.model.config.empty()) return absl::OkStatus();
  CISTERN_ASSIGN_OR_RETURN(const model::ModelConfig config, ReadModelConfig(options.model));
  CISTERN_ASSIGN_OR_RETURN(const v1::Schema schema, SchemaOf(config));
  return WithOtherTablesFix(client.CreateTables(schema));
}

absl::StatusOr<LoadedFleet> LoadWholeModel(const LoadFleetOptions& options, ParameterClient& client,
                                           const JobCalls& calls) {
  LoadedFleet result;
  CISTERN_RETURN_IF_ERROR(CreateTablesFor(options, client));
  CISTERN_ASSIGN_OR_RETURN(bool empty, IsEmpty(client));
  if (!empty && !options.replace) {  // before ClaimTerm, which would stop a running training
    CISTERN_ASSIGN_OR_RETURN(result.already_there, IsLoaded(options, client));
    if (!result.already_there) return RefuseToReplace(client);
    result.pass = client.committed_pass();
    CISTERN_ASSIGN_OR_RETURN(result.rows, RowsOn(client));
    return result;
  }
  CISTERN_RETURN_IF_ERROR(client.ClaimTerm());
  CISTERN_RETURN_IF_ERROR(CheckExpected(client, options.expected));
  CISTERN_ASSIGN_OR_RETURN(empty, IsEmpty(client));  // again: now no other writer can change it
  if (!empty && !options.replace) return RefuseToReplace(client);
  if (!empty) CISTERN_RETURN_IF_ERROR(WithLoadFix(MakeEmpty(options, client), options));
  v1::LoadReply reply;
  AmountCounter counter(calls, "loading", "models");
  counter.Expect(1);
  const absl::Status loaded =
      options.model_dir.empty()
          ? WithKind(client.Load(LoadRequestOf(options), &reply), ErrorKind::kBadCheckpoint)
          : LoadFromHere(options, client, &reply);
  if (!loaded.ok()) {
    UndoLoad(client);
    return WithLoadFix(loaded, options);
  }
  result.rows = reply.rows();
  result.left_out.assign(reply.left_out().begin(), reply.left_out().end());
  return result;
}

}  // namespace

absl::StatusOr<LoadedFleet> LoadFleet(const LoadFleetOptions& options, const JobCalls& calls) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<FleetSession> fleet,
                           FleetSession::Open(options.fleet));
  ParameterClient& client = fleet->client();
  CISTERN_RETURN_IF_ERROR(CheckExpectedPass(client, options.expected));
  if (options.increments.empty()) return LoadWholeModel(options, client, calls);
  LocalFileSystem files;
  const absl::StatusOr<LoadedIncrements> loaded =
      LoadIncrements(files, client, options.increments, calls);
  if (!loaded.ok()) return WithFleetFix(loaded.status(), options.fleet);
  LoadedFleet result;
  result.already_there = loaded->applied == 0;
  result.increments = loaded->applied;
  result.rows = loaded->rows;
  return result;
}

}  // namespace cistern::app
