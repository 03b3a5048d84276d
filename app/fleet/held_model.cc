#include "app/fleet/held_model.h"

#include "app/fleet/fleet_session.h"
#include "common/base/names.h"
#include "common/saved_model/model_folder.h"
#include "common/value/schema.h"
#include "server/checkpoint/state_folder.h"

namespace cistern::app {
namespace {

// Whether `data_dir` on this machine is the servers' own data_dir.
bool IsDataDirOf(FileSystem& files, ParameterClient& client, const std::string& data_dir) {
  v1::GetManifestRequest request;
  *request.mutable_identity() = client.identity();
  v1::GetManifestReply newest;
  if (data_dir.empty() || !client.servers()[0].control->GetManifest(request, &newest).ok()) {
    return false;
  }
  const auto state = server::StateFolder::OpenToRead(files, server::StateFolderOf(data_dir));
  if (!state.ok()) return false;
  const absl::StatusOr<server::ParsedManifest> found =
      (*state)->ReadManifest(newest.manifest().commit());
  return found.ok() && found->self_xxh3 == newest.self_xxh3();
}

}  // namespace

absl::StatusOr<v1::IncrementState> StateOn(ParameterClient& client) {
  const v1::Schema& schema = client.schema();
  CISTERN_ASSIGN_OR_RETURN(const std::vector<v1::StatsReply> replies,
                           StatsOn(client, /*digest=*/true));
  v1::IncrementState state;
  state.set_pass(client.committed_pass());
  for (const v1::TableSpec& table : schema.tables()) state.add_tables()->set_name(table.name());
  for (const v1::DenseTableSpec& table : schema.dense_tables()) {
    state.add_dense_tables()->set_name(table.name());
  }
  const auto add = [](const auto& found, auto* sum) {
    for (int t = 0; t < found.size(); ++t) {
      v1::TableState& table = *sum->Mutable(t);
      table.set_rows(table.rows() + found.Get(t).rows());
      table.set_digest(table.digest() + found.Get(t).digest());
    }
  };
  for (const v1::StatsReply& reply : replies) {
    if (reply.tables_size() != state.tables_size() ||
        reply.dense_tables_size() != state.dense_tables_size()) {
      return absl::InternalError(absl::StrCat(
          "a server reports ", reply.tables_size(), " and ", reply.dense_tables_size(),
          " tables, but the fleet has ", state.tables_size(), " and ", state.dense_tables_size()));
    }
    add(reply.tables(), state.mutable_tables());
    add(reply.dense_tables(), state.mutable_dense_tables());
  }
  return state;
}

absl::StatusOr<bool> HoldsModel(FileSystem& files, ParameterClient& client,
                                const std::string& folder) {
  const absl::StatusOr<std::vector<ModelPart>> parts = ReadParts(files, folder);
  if (!parts.ok()) return false;
  const auto tables = TableStatesOf(*parts);
  if (!tables.has_value() || SchemaHash((*parts)[0].schema) != SchemaHash(client.schema())) {
    return false;
  }
  CISTERN_ASSIGN_OR_RETURN(const v1::IncrementState held, StateOn(client));
  for (int t = 0; t < static_cast<int>(tables->size()); ++t) {
    const v1::TableState& mine =
        t < held.tables_size() ? held.tables(t) : held.dense_tables(t - held.tables_size());
    if (mine.digest() != (*tables)[static_cast<size_t>(t)].digest()) return false;
  }
  return true;
}

absl::StatusOr<bool> HoldsSavedModel(FileSystem& files, ParameterClient& client,
                                     const std::string& name) {
  v1::HelloReply hello;
  CISTERN_RETURN_IF_ERROR(client.servers()[0].control->Hello({}, &hello));
  if (!CheckName(name).ok() || !IsDataDirOf(files, client, hello.data_dir())) return false;
  return HoldsModel(files, client, absl::StrCat(hello.data_dir(), "/", name));
}

std::optional<RowsPlace> LocalCommitOf(FileSystem& files, ParameterClient& client) {
  if (client.local_state() && client.servers().size() > 1) return std::nullopt;  // a part only
  v1::HelloReply hello;
  if (!client.servers()[0].control->Hello({}, &hello).ok() || !hello.durable() ||
      hello.commit() == 0 || !IsDataDirOf(files, client, hello.data_dir())) {
    return std::nullopt;
  }
  return RowsPlace{hello.data_dir(), hello.commit()};
}

}  // namespace cistern::app
