// cistern ckpt ls: lists the commits and saved models of a data_dir.
#include <memory>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "app/state/saved_place.h"
#include "cli/command/ckpt_commands.h"
#include "cli/terminal/aligned_text.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/progress.h"

namespace cistern {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// The listing under construction: report, table rows, and as the outcome the first error found.
struct Listing {
  Report report;
  Rows commits = {
      {"COMMIT", "PASS", "EPOCH", "CREATED", "SERVERS", "FILES", "BYTES", "WHOLE", "ROWS"}};
  Rows models = {{"MODEL", "PASS", "SERVERS", "FILES", "BYTES", "WHOLE", "ROWS"}};

  void Note(const absl::Status& status) {
    if (report.outcome.ok()) report.outcome = WithKind(status, ErrorKind::kBadCheckpoint);
  }
};

std::string WholeText(const absl::Status& whole) {
  return whole.ok() ? "yes" : "no";
}

absl::Status CheckFiles(const StateFolder& state, const v1::Manifest& manifest) {
  for (const v1::RowFile& file : manifest.files()) {
    if (state.IsElsewhere(manifest, file)) continue;
    CISTERN_RETURN_IF_ERROR(
        app::CheckSize(state.files(), state.data_path(), file.name(), file.bytes()));
  }
  return absl::OkStatus();
}

void AddTableStates(const char* kind,
                    const google::protobuf::RepeatedPtrField<v1::TableState>& tables,
                    nlohmann::ordered_json* json, std::vector<std::string>* words) {
  for (const v1::TableState& table : tables) {
    (*json)["tables"].push_back({{"name", table.name()},
                                 {"kind", kind},
                                 {"rows", table.rows()},
                                 {"digest", app::DigestText(table.digest())}});
    words->push_back(absl::StrCat(table.name(), "=", table.rows()));
  }
}

// part: of a local state, the server whose files alone were looked for.
void AddCommit(const v1::Manifest& manifest, const absl::Status& whole,
               std::optional<uint32_t> part, Listing* listing) {
  listing->Note(whole);
  uint64_t bytes = 0;
  for (const v1::RowFile& file : manifest.files()) bytes += file.bytes();
  nlohmann::ordered_json json;
  json["commit"] = manifest.commit();
  json["pass"] = manifest.pass();
  json["epoch"] = manifest.epoch();
  json["created"] = manifest.created();
  if (manifest.has_run()) json["run"] = manifest.run();
  json["cluster"] = manifest.cluster();
  json["server_num"] = manifest.server_num();
  json["shard_num"] = manifest.shard_num();
  json["files"] = manifest.files_size();
  json["bytes"] = bytes;
  json["whole"] = whole.ok() && !part;
  if (part) json["server"] = *part;
  if (!whole.ok()) json["error"] = std::string(whole.message());
  json["tables"] = nlohmann::ordered_json::array();
  std::vector<std::string> words;
  AddTableStates("sparse", manifest.tables(), &json, &words);
  AddTableStates("dense", manifest.dense_tables(), &json, &words);
  listing->report.json["commits"].push_back(json);
  listing->commits.push_back(
      {absl::StrCat(manifest.commit()), absl::StrCat(manifest.pass()),
       absl::StrCat(manifest.epoch()), manifest.created(), absl::StrCat(manifest.server_num()),
       absl::StrCat(manifest.files_size()), BytesText(bytes),
       part && whole.ok() ? absl::StrCat("server ", *part) : WholeText(whole),
       absl::StrJoin(words, " ")});
}

absl::Status AddCommits(const StateFolder& state, Listing* listing) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<uint64_t> commits, state.Commits());
  for (const uint64_t commit : commits) {
    const absl::StatusOr<ParsedManifest> parsed = state.ReadManifest(commit);
    if (absl::IsNotFound(parsed.status())) continue;  // its servers have just removed it
    if (parsed.ok()) {
      const absl::Status whole = CheckFiles(state, parsed->manifest);
      CISTERN_ASSIGN_OR_RETURN(const bool there, state.HasManifest(commit));
      const std::optional<uint32_t> part =
          parsed->manifest.server_num() > 1 ? state.owner() : std::nullopt;
      if (there) AddCommit(parsed->manifest, whole, part, listing);
      continue;
    }
    listing->Note(parsed.status());
    listing->report.json["commits"].push_back(
        {{"commit", commit}, {"whole", false}, {"error", std::string(parsed.status().message())}});
    listing->commits.push_back({absl::StrCat(commit), "-", "-", "-", "-", "-", "-", "no", ""});
  }
  return absl::OkStatus();
}

// Adds a saved model with its rows and sizes. It is whole if every file exists with its size.
void AddModel(FileSystem& files, const std::string& folder, const std::string& name,
              const std::vector<ModelPart>& parts, Listing* listing) {
  uint64_t file_num = 0, bytes = 0, rows = 0;
  absl::Status whole;
  for (const ModelPart& part : parts) {
    for (const ModelFile& file : part.files) {
      ++file_num;
      bytes += file.bytes;
      rows += file.rows;
      whole.Update(app::CheckSize(files, folder, file.name, file.bytes));
    }
  }
  listing->Note(whole);
  nlohmann::ordered_json json;
  json["name"] = name;
  json["pass"] = parts[0].pass;
  json["server_num"] = parts[0].server_num;
  json["shard_num"] = parts[0].shard_num;
  json["mode"] = absl::AsciiStrToLower(v1::SaveMode_Name(parts[0].mode));
  json["format"] = absl::AsciiStrToLower(v1::SaveFormat::Kind_Name(parts[0].format.kind()));
  json["gzip"] = parts[0].format.gzip();
  json["files"] = file_num;
  json["bytes"] = bytes;
  json["rows"] = rows;
  json["whole"] = whole.ok();
  if (!whole.ok()) json["error"] = std::string(whole.message());
  listing->report.json["models"].push_back(json);
  listing->models.push_back({name, absl::StrCat(parts[0].pass), absl::StrCat(parts[0].server_num),
                             absl::StrCat(file_num), BytesText(bytes), WholeText(whole),
                             absl::StrCat(rows)});
}

// Adds every folder below `data_dir` in which a save has finished, whole or not.
absl::Status AddModels(FileSystem& files, const std::string& data_dir, Listing* listing) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(data_dir));
  for (const std::string& name : names) {
    if (name == kStateName) continue;
    const std::string folder = absl::StrCat(data_dir, "/", name);
    if (!files.List(folder).ok()) continue;  // a file, or gone
    const absl::StatusOr<std::vector<ModelPart>> parts = ReadParts(files, folder);
    if (absl::IsNotFound(parts.status())) continue;
    if (parts.ok()) {
      AddModel(files, folder, name, *parts, listing);
      continue;
    }
    listing->Note(parts.status());
    listing->report.json["models"].push_back(
        {{"name", name}, {"whole", false}, {"error", std::string(parts.status().message())}});
    listing->models.push_back({name, "-", "-", "-", "-", "no", ""});
  }
  return absl::OkStatus();
}

std::string TextOf(const Listing& listing) {
  std::string text;
  if (listing.commits.size() > 1) text = AlignedText(listing.commits);
  if (listing.models.size() > 1) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", AlignedText(listing.models));
  }
  return text.empty() ? "no commits, no saved models\n" : text;
}

}  // namespace

absl::StatusOr<Report> ListCheckpoints(const std::string& path) {
  LocalFileSystem files;
  const absl::StatusOr<std::unique_ptr<StateFolder>> state = app::FindState(files, path);
  if (!state.ok() && !absl::IsNotFound(state.status())) return state.status();
  Listing listing;
  nlohmann::ordered_json& json = listing.report.json;
  json["path"] = path;
  if (state.ok()) json["state"] = (*state)->path();
  json["commits"] = nlohmann::ordered_json::array();
  json["models"] = nlohmann::ordered_json::array();
  if (state.ok()) CISTERN_RETURN_IF_ERROR(AddCommits(**state, &listing));
  const absl::Status listed =
      AddModels(files, state.ok() ? ParentFolder((*state)->path()) : path, &listing);
  if (!state.ok() && (absl::IsNotFound(listed) || listing.models.size() == 1)) {
    return WithFix(
        absl::InvalidArgumentError(absl::StrCat(path, " holds neither commits nor saved models")),
        "name the --data_dir of the servers, or the folder state in it");
  }
  CISTERN_RETURN_IF_ERROR(listed);
  listing.report.text = TextOf(listing);
  return listing.report;
}

void AddCkptListCommand(Command& ckpt) {
  auto path = std::make_shared<std::string>();
  Command& command =
      ckpt.Add("ls", "Lists the commits and saved models of a data_dir, and whether each is whole.",
               "cistern ckpt ls saved");
  command.Argument(
      "PATH", path.get(),
      {"DIR", "A data_dir of servers, or the state folder in it.", "saved", kRequired});
  command.Footer(
      "Whole: the manifest can be read, and every file that it names exists with its size.\n"
      "cistern verify also checks the contents. Exit code 5 if anything is not whole.");
  command.Does([path](Console&) { return ListCheckpoints(*path); });
}

void AddCkptCommands(Command& root) {
  Command& ckpt = root.Add("ckpt", "Lists, compares, copies, rewrites and repairs commits on disk.",
                           "cistern ckpt ls saved");
  AddCkptListCommand(ckpt);
  AddCkptDiffCommand(ckpt);
  AddCkptChangesCommand(ckpt);
  AddCkptApplyCommand(ckpt);
  AddCkptReshardCommand(ckpt);
  AddCkptThresholdsCommand(ckpt);
  AddCkptRepairTermsCommand(ckpt);
  AddCkptPushCommand(ckpt);
  AddCkptPullCommand(ckpt);
  AddCkptAdoptManifestCommand(ckpt);
}

}  // namespace cistern
