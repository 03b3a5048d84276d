#include "app/fleet/held_model.h"

#include "common/base/names.h"
#include "common/saved_model/model_folder.h"
#include "common/value/schema.h"
#include "server/checkpoint/state_folder.h"

namespace cistern::app {
namespace {

// Digests of all tables, summed over the fleet; sparse tables before dense ones. The servers read
// every row.
absl::StatusOr<std::vector<uint64_t>> DigestsOn(ParameterClient& client, size_t tables) {
  std::vector<v1::StatsReply> replies(client.servers().size());
  CISTERN_RETURN_IF_ERROR(client.ForEachServer([&](size_t rank, ControlPlane& server) {
    v1::StatsRequest request;
    *request.mutable_identity() = client.identity();
    request.set_digest(true);
    return server.Stats(request, &replies[rank]);
  }));
  std::vector<uint64_t> digests(tables);
  for (const v1::StatsReply& reply : replies) {
    const size_t reported =
        static_cast<size_t>(reply.tables_size()) + static_cast<size_t>(reply.dense_tables_size());
    if (reported != tables) {
      return absl::InternalError(
          absl::StrCat("a server reports ", reported, " tables, but the ", "fleet has ", tables));
    }
    size_t at = 0;
    for (const v1::TableStats& table : reply.tables()) digests[at++] += table.digest();
    for (const v1::TableStats& table : reply.dense_tables()) digests[at++] += table.digest();
  }
  return digests;
}

// Whether `data_dir` on this machine is the servers' own data_dir.
bool IsDataDirOf(FileSystem& files, ParameterClient& client, const std::string& data_dir) {
  v1::GetManifestRequest request;
  *request.mutable_identity() = client.identity();
  v1::GetManifestReply newest;
  if (data_dir.empty() || !client.servers()[0].control->GetManifest(request, &newest).ok()) {
    return false;
  }
  const auto state = StateFolder::OpenToRead(files, StateFolderOf(data_dir));
  if (!state.ok()) return false;
  const absl::StatusOr<ParsedManifest> found = (*state)->ReadManifest(newest.manifest().commit());
  return found.ok() && found->self_xxh3 == newest.self_xxh3();
}

}  // namespace

absl::StatusOr<bool> HoldsModel(FileSystem& files, ParameterClient& client,
                                const std::string& folder) {
  const absl::StatusOr<std::vector<ModelPart>> parts = ReadParts(files, folder);
  if (!parts.ok()) return false;
  const auto tables = TableStatesOf(*parts);
  if (!tables.has_value() || SchemaHash((*parts)[0].schema) != SchemaHash(client.schema())) {
    return false;
  }
  CISTERN_ASSIGN_OR_RETURN(const std::vector<uint64_t> digests, DigestsOn(client, tables->size()));
  for (size_t t = 0; t < digests.size(); ++t) {
    if (digests[t] != (*tables)[t].digest()) return false;
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
  v1::HelloReply hello;
  if (!client.servers()[0].control->Hello({}, &hello).ok() || !hello.durable() ||
      hello.commit() == 0 || !IsDataDirOf(files, client, hello.data_dir())) {
    return std::nullopt;
  }
  return RowsPlace{hello.data_dir(), hello.commit()};
}

}  // namespace cistern::app
