#include "app/state/adopt_manifest.h"

#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_join.h"
#include "app/state/copied_files.h"
#include "app/state/saved_place.h"
#include "common/value/shard_map.h"
#include "server/checkpoint/compaction.h"

namespace cistern::app {

absl::StatusOr<PulledState> AdoptManifest(const AdoptManifestOptions& options) {
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const server::ParsedManifest commit, ManifestAt(files, options.from));
  const v1::Manifest& manifest = commit.manifest;
  if (options.server >= manifest.server_num()) {
    return WithFix(
        absl::InvalidArgumentError(absl::StrCat("server ", options.server, " of ",
                                                manifest.server_num(), " does not exist")),
        absl::StrCat("ranks are 0 to ", manifest.server_num() - 1));
  }
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<server::StateFolder> state,
                           FindGivenState(files, options.to));
  CISTERN_ASSIGN_OR_RETURN(const auto locks,
                           LockServers(files, state->path(), manifest.server_num()));
  CISTERN_ASSIGN_OR_RETURN(const ShardMap map,
                           ShardMap::Create(manifest.shard_num(), manifest.server_num()));
  PulledState adopted;
  adopted.commit = manifest.commit();
  adopted.pass = manifest.pass();
  std::vector<std::string> missing;
  for (const v1::RowFile& file : manifest.files()) {
    if (!server::HoldsRowsOf(file, map, static_cast<uint32_t>(options.server))) continue;
    const absl::Status whole = VerifyFile(files, state->data_path(), file);
    if (!whole.ok()) missing.push_back(file.name());
    ++adopted.files;
    adopted.bytes += file.bytes();
  }
  if (!missing.empty()) {
    return WithFix(
        BadFile(absl::DataLossError(absl::StrCat(
            state->path(), " lacks files of server ", options.server, " of commit ",
            manifest.commit(), ", or they are corrupt: ", absl::StrJoin(missing, ", ")))),
        "take them from a copy, with the same manifest: cistern ckpt pull");
  }
  CISTERN_ASSIGN_OR_RETURN(const std::optional<server::ParsedManifest> newest,
                           state->NewestManifest());
  const uint64_t mine = newest.has_value() ? newest->manifest.commit() : 0;
  if (mine > manifest.commit() ||
      (mine == manifest.commit() && newest->self_xxh3 != commit.self_xxh3)) {
    return absl::FailedPreconditionError(
        absl::StrCat(state->path(), " holds commit ", mine,
                     mine > manifest.commit() ? absl::StrCat(", newer than ", manifest.commit())
                                              : std::string(" of another training")));
  }
  if (mine < manifest.commit()) {
    CISTERN_RETURN_IF_ERROR(state->WriteManifest(manifest, commit.self_xxh3).status());
    CISTERN_ASSIGN_OR_RETURN(const Term newest_term, state->NewestTerm());
    CISTERN_RETURN_IF_ERROR(state->CheckTermsAreLeft(newest_term));
    CISTERN_RETURN_IF_ERROR(state->CreateTerm(server::ParseClaim(newest_term + 1, "")));
  }
  // Manifests that do not follow one another would be taken for a loss.
  CISTERN_RETURN_IF_ERROR(state->RemoveOld(manifest.commit(), 1));
  return adopted;
}

}  // namespace cistern::app
