#include "app/state/state_listing.h"

#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "app/state/saved_place.h"

namespace cistern::app {
namespace {

using Json = nlohmann::ordered_json;

absl::Status CheckFiles(const server::StateFolder& state, const v1::Manifest& manifest) {
  for (const v1::RowFile& file : manifest.files()) {
    if (state.IsElsewhere(manifest, file)) continue;
    CISTERN_RETURN_IF_ERROR(CheckSize(state.files(), state.data_path(), file.name(), file.bytes()));
  }
  return absl::OkStatus();
}

absl::Status ListCommits(const server::StateFolder& state, std::vector<ListedCommit>* listed) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<uint64_t> commits, state.Commits());
  for (const uint64_t commit : commits) {
    absl::StatusOr<server::ParsedManifest> parsed = state.ReadManifest(commit);
    if (absl::IsNotFound(parsed.status())) continue;  // its servers have just removed it
    if (!parsed.ok()) {
      listed->push_back({commit, std::nullopt, parsed.status(), std::nullopt});
      continue;
    }
    const absl::Status whole = CheckFiles(state, parsed->manifest);
    CISTERN_ASSIGN_OR_RETURN(const bool there, state.HasManifest(commit));
    if (!there) continue;
    const std::optional<uint32_t> server =
        parsed->manifest.server_num() > 1 ? state.owner() : std::nullopt;
    listed->push_back({commit, std::move(parsed->manifest), whole, server});
  }
  return absl::OkStatus();
}

// Every folder below `data_dir` in which a save has finished, whole or not.
absl::Status ListModels(FileSystem& files, const std::string& data_dir,
                        std::vector<ListedModel>* listed) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(data_dir));
  for (const std::string& name : names) {
    if (name == server::kStateName) continue;
    const std::string folder = absl::StrCat(data_dir, "/", name);
    if (!files.List(folder).ok()) continue;  // a file, or gone
    absl::StatusOr<std::vector<ModelPart>> parts = ReadParts(files, folder);
    if (absl::IsNotFound(parts.status())) continue;
    ListedModel model;
    model.name = name;
    model.whole = parts.status();
    if (parts.ok()) model.parts = *std::move(parts);
    for (const ModelPart& part : model.parts) {
      for (const ModelFile& file : part.files) {
        ++model.files;
        model.bytes += file.bytes;
        model.rows += file.rows;
        model.whole.Update(CheckSize(files, folder, file.name, file.bytes));
      }
    }
    listed->push_back(std::move(model));
  }
  return absl::OkStatus();
}

void AddTables(const char* kind, const google::protobuf::RepeatedPtrField<v1::TableState>& tables,
               Json* json) {
  for (const v1::TableState& table : tables) {
    (*json)["tables"].push_back({{"name", table.name()},
                                 {"kind", kind},
                                 {"rows", table.rows()},
                                 {"digest", DigestText(table.digest())}});
  }
}

void AddError(const absl::Status& whole, Json* json) {
  if (!whole.ok()) (*json)["error"] = std::string(whole.message());
}

Json JsonOfCommit(const ListedCommit& listed) {
  Json json;
  json["commit"] = listed.commit;
  if (listed.manifest) {
    const v1::Manifest& manifest = *listed.manifest;
    json["pass"] = manifest.pass();
    json["epoch"] = manifest.epoch();
    json["created"] = manifest.created();
    if (manifest.has_run()) json["run"] = manifest.run();
    json["cluster"] = manifest.cluster();
    json["server_num"] = manifest.server_num();
    json["shard_num"] = manifest.shard_num();
    json["files"] = manifest.files_size();
    json["bytes"] = listed.bytes();
  }
  json["whole"] = listed.whole.ok() && !listed.server;
  if (listed.server) json["server"] = *listed.server;
  AddError(listed.whole, &json);
  if (!listed.manifest) return json;
  json["tables"] = Json::array();
  AddTables("sparse", listed.manifest->tables(), &json);
  AddTables("dense", listed.manifest->dense_tables(), &json);
  return json;
}

Json JsonOfModel(const ListedModel& listed) {
  Json json;
  json["name"] = listed.name;
  if (!listed.parts.empty()) {
    const ModelPart& part = listed.parts.front();
    json["pass"] = part.pass;
    json["server_num"] = part.server_num;
    json["shard_num"] = part.shard_num;
    json["mode"] = absl::AsciiStrToLower(v1::SaveMode_Name(part.mode));
    json["format"] = absl::AsciiStrToLower(v1::SaveFormat::Kind_Name(part.format.kind()));
    json["gzip"] = part.format.gzip();
    json["files"] = listed.files;
    json["bytes"] = listed.bytes;
    json["rows"] = listed.rows;
  }
  json["whole"] = listed.whole.ok();
  AddError(listed.whole, &json);
  return json;
}

}  // namespace

uint64_t ListedCommit::bytes() const {
  uint64_t bytes = 0;
  if (!manifest) return bytes;
  for (const v1::RowFile& file : manifest->files()) bytes += file.bytes();
  return bytes;
}

absl::Status StateListing::outcome() const {
  absl::Status first;
  for (const ListedCommit& commit : commits) first.Update(commit.whole);
  for (const ListedModel& model : models) first.Update(model.whole);
  return first.ok() ? first : WithKind(first, ErrorKind::kBadCheckpoint);
}

absl::StatusOr<StateListing> ListState(const std::string& path) {
  LocalFileSystem files;
  const absl::StatusOr<std::unique_ptr<server::StateFolder>> state = FindState(files, path);
  if (!state.ok() && !absl::IsNotFound(state.status())) return state.status();
  StateListing listing;
  listing.path = path;
  if (state.ok()) {
    listing.state = (*state)->path();
    CISTERN_RETURN_IF_ERROR(ListCommits(**state, &listing.commits));
  }
  const absl::Status listed =
      ListModels(files, state.ok() ? ParentFolder((*state)->path()) : path, &listing.models);
  if (!state.ok() && (absl::IsNotFound(listed) || listing.models.empty())) {
    return WithFix(
        absl::InvalidArgumentError(absl::StrCat(path, " holds neither commits nor saved models")),
        "name the data_dir of the servers, or the folder state in it");
  }
  CISTERN_RETURN_IF_ERROR(listed);
  return listing;
}

Json JsonOf(const StateListing& listing) {
  Json json;
  json["path"] = listing.path;
  if (listing.state) json["state"] = *listing.state;
  json["commits"] = Json::array();
  json["models"] = Json::array();
  for (const ListedCommit& commit : listing.commits) {
    json["commits"].push_back(JsonOfCommit(commit));
  }
  for (const ListedModel& model : listing.models) json["models"].push_back(JsonOfModel(model));
  return json;
}

}  // namespace cistern::app
