// cistern verify: checks every byte of commits or of a saved model.
#include <algorithm>
#include <filesystem>
#include <memory>

#include "app/state/saved_place.h"
#include "cli/command/ckpt_commands.h"
#include "cli/terminal/activity.h"
#include "cli/terminal/aligned_text.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/progress.h"
#include "server/checkpoint/verify_state.h"
#include "server/saved_model/model_snapshot.h"

namespace cistern {
namespace {

// A saved model is read in this many steps, to bound the rows in memory.
constexpr uint32_t kModelSteps = 8;

constexpr char kFix[] =
    "do not load or start from corrupt files: restore the named files from a copy, or return to an "
    "older commit or saved model";

// Adds the faults to the report's json and text, and sets the exit code: 5, unless the only faults
// are files that could not be read.
void AddFaults(std::vector<absl::Status> faults, Report* report) {
  report->json["faults"] = nlohmann::ordered_json::array();
  for (absl::Status& fault : faults) {
    // A file that the manifest or a json file names is missing.
    if (absl::IsNotFound(fault)) fault = WithCode(fault, absl::StatusCode::kDataLoss);
    report->json["faults"].push_back(std::string(fault.message()));
    absl::StrAppend(&report->text, "fault  ", fault.message(), "\n");
  }
  if (faults.empty()) return;
  const auto bad = std::find_if(faults.begin(), faults.end(), absl::IsDataLoss);
  const absl::Status& worst = bad == faults.end() ? faults[0] : *bad;
  if (absl::IsPermissionDenied(worst)) {  // the file may be good
    report->outcome = worst;
    return;
  }
  report->outcome = WithFix(
      WithKind(absl::Status(worst.code(),
                            absl::StrCat(worst.message(),
                                         faults.size() > 1
                                             ? absl::StrCat(" (and ", faults.size() - 1, " more)")
                                             : "")),
               ErrorKind::kBadCheckpoint),
      kFix);
}

// --- commits

void AddCommit(const CommitCheck& check, std::vector<std::vector<std::string>>* rows,
               Report* report) {
  uint64_t bytes = 0;
  for (const v1::RowFile& file : check.manifest.files()) bytes += file.bytes();
  nlohmann::ordered_json json;
  json["commit"] = check.commit;
  json["pass"] = check.manifest.pass();
  json["files"] = check.manifest.files_size();
  json["bytes"] = bytes;
  json["good"] = check.faults.empty();
  json["tables"] = nlohmann::ordered_json::array();
  for (const auto* tables : {&check.manifest.tables(), &check.manifest.dense_tables()}) {
    for (const v1::TableState& table : *tables) {
      json["tables"].push_back({{"name", table.name()},
                                {"rows", table.rows()},
                                {"digest", app::DigestText(table.digest())}});
      rows->push_back({absl::StrCat(check.commit), absl::StrCat(check.manifest.pass()),
                       table.name(), absl::StrCat(table.rows()), app::DigestText(table.digest()),
                       check.faults.empty() ? "good" : "corrupt"});
    }
  }
  report->json["commits"].push_back(json);
}

absl::StatusOr<std::vector<uint64_t>> CommitsToVerify(const StateFolder& state,
                                                      const VerifyFlags& flags) {
  if (flags.all) return state.Commits();
  if (flags.commit == 0) {
    CISTERN_ASSIGN_OR_RETURN(const uint64_t newest, app::NewestCommit(state));
    return std::vector<uint64_t>{newest};
  }
  CISTERN_ASSIGN_OR_RETURN(const bool there, state.HasManifest(flags.commit));
  // ReadCommit returns an error that lists the existing commits.
  if (!there) CISTERN_RETURN_IF_ERROR(app::ReadCommit(state, flags.commit).status());
  return std::vector<uint64_t>{flags.commit};
}

absl::StatusOr<Report> VerifyState(const StateFolder& state, const VerifyFlags& flags,
                                   Console* console) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<uint64_t> commits, CommitsToVerify(state, flags));
  ThreadPool pool(app::ThreadsOf(flags.threads));
  Activity activity(console, "verifying", "files and tables", 0);
  StateVerifier verifier(
      state, pool, [&](uint64_t more) { activity.Expect(more); }, [&] { activity.Done(); });
  Report report;
  report.json["path"] = state.path();
  report.json["commits"] = nlohmann::ordered_json::array();
  std::vector<std::vector<std::string>> rows = {
      {"COMMIT", "PASS", "TABLE", "ROWS", "DIGEST", "STATE"}};
  std::vector<absl::Status> faults;
  for (const uint64_t commit : commits) {
    const CommitCheck check = verifier.Check(commit);
    CISTERN_ASSIGN_OR_RETURN(const bool there, state.HasManifest(commit));
    if (!there) {
      // Running servers removed the commit and its files during the check.
      report.json["commits"].push_back({{"commit", commit}, {"removed", true}});
      continue;
    }
    AddCommit(check, &rows, &report);
    faults.insert(faults.end(), check.faults.begin(), check.faults.end());
  }
  if (rows.size() > 1) report.text = AlignedText(rows);
  AddFaults(faults, &report);
  return report;
}

// --- saved models

struct TableSums {
  std::vector<uint64_t> rows, digests;  // sparse tables before dense ones
  void Add(size_t at, uint64_t row_num, uint64_t digest) {
    rows.resize(std::max(rows.size(), at + 1));
    digests.resize(std::max(digests.size(), at + 1));
    rows[at] += row_num;
    digests[at] += digest;
  }
};

// Reads the model as a fleet of `steps` servers would, one server at a time: every row is parsed
// and checked.
std::vector<absl::Status> ReadModel(FileSystem& files, const std::string& folder,
                                    const ModelPart& part, ThreadPool& pool, Activity& activity,
                                    TableSums* sums) {
  std::vector<absl::Status> faults;
  const uint32_t steps = std::min(part.shard_num, kModelSteps);
  activity.Expect(steps);
  for (uint32_t step = 0; step < steps; ++step, activity.Done()) {
    const absl::StatusOr<ShardMap> map = ShardMap::Create(part.shard_num, steps);
    TableStore store(*map, step);
    const absl::Status loaded = LoadStore(files, store, folder, pool).status();
    if (!loaded.ok()) {
      // The message names the file. Drop "loading server 3": no such server exists.
      const std::string prefix = absl::StrCat("loading server ", step, ": ");
      const std::string message(loaded.message());
      faults.emplace_back(loaded.code(),
                          message.rfind(prefix, 0) == 0 ? message.substr(prefix.size()) : message);
      if (std::find(faults.begin(), faults.end() - 1, faults.back()) != faults.end() - 1) {
        faults.pop_back();
      }
      continue;
    }
    size_t at = 0;
    for (const auto& table : store.sparse_tables()) {
      sums->Add(at++, table->counts().rows, *table->Digest());
    }
    for (const auto& table : store.dense_tables()) {
      const DenseRange range = table->range();
      sums->Add(at++, table->written() ? range.end - range.begin : 0, table->Digest());
    }
  }
  return faults;
}

// Compares the digests of the rows that were read with those in the json files, if recorded.
std::vector<absl::Status> CompareDigests(const std::string& folder,
                                         const std::vector<ModelPart>& parts,
                                         const TableSums& sums) {
  std::vector<absl::Status> faults;
  const auto recorded = TableStatesOf(parts);
  for (size_t t = 0; recorded.has_value() && t < recorded->size(); ++t) {
    const v1::TableState& table = (*recorded)[t];
    if (table.rows() == sums.rows[t] && table.digest() == sums.digests[t]) continue;
    faults.push_back(absl::DataLossError(absl::StrCat(
        folder, ": table '", table.name(), "': its files hold ", sums.rows[t], " rows with digest ",
        app::DigestText(sums.digests[t]), ", but its json files record ", table.rows(), " with ",
        app::DigestText(table.digest()))));
  }
  return faults;
}

absl::StatusOr<Report> VerifyModel(FileSystem& files, const std::string& folder,
                                   const VerifyFlags& flags, Console* console) {
  const absl::StatusOr<std::vector<ModelPart>> parts = ReadParts(files, folder);
  if (absl::IsNotFound(parts.status())) {
    return WithFix(absl::InvalidArgumentError(
                       absl::StrCat(folder, " is neither a state folder nor a saved model")),
                   "name a --data_dir of servers, the state folder in it, or the folder of a saved "
                   "model; cistern ckpt ls DIR lists what is there");
  }
  Report report;
  report.json["path"] = folder;
  if (!parts.ok()) {
    AddFaults({parts.status()}, &report);
    return report;
  }
  const ModelPart& first = parts->front();
  ThreadPool pool(app::ThreadsOf(flags.threads));
  TableSums sums;
  std::vector<absl::Status> faults;
  {
    Activity activity(console, "verifying", "parts", 0);
    faults = ReadModel(files, folder, first, pool, activity, &sums);
  }
  if (faults.empty()) faults = CompareDigests(folder, *parts, sums);
  report.json["pass"] = first.pass;
  report.json["good"] = faults.empty();
  report.json["tables"] = nlohmann::ordered_json::array();
  std::vector<std::vector<std::string>> rows = {{"PASS", "TABLE", "ROWS", "DIGEST", "STATE"}};
  std::vector<std::string> names;
  for (const v1::TableSpec& table : first.schema.tables()) names.push_back(table.name());
  for (const v1::DenseTableSpec& table : first.schema.dense_tables()) names.push_back(table.name());
  for (size_t t = 0; t < names.size() && faults.empty(); ++t) {
    const std::string digest = app::DigestText(sums.digests[t]);
    report.json["tables"].push_back(
        {{"name", names[t]}, {"rows", sums.rows[t]}, {"digest", digest}});
    rows.push_back(
        {absl::StrCat(first.pass), names[t], absl::StrCat(sums.rows[t]), digest, "good"});
  }
  if (rows.size() > 1) report.text = AlignedText(rows);
  AddFaults(faults, &report);
  return report;
}

}  // namespace

absl::StatusOr<Report> RunVerify(const VerifyFlags& flags, Console* console) {
  LocalFileSystem files;
  if (flags.path.empty()) {
    return WithFix(absl::InvalidArgumentError("no folder was named"),
                   "name a data_dir, or the folder of a saved model: cistern verify saved");
  }
  std::error_code error;
  if (std::filesystem::is_regular_file(flags.path, error)) {
    return WithFix(absl::InvalidArgumentError(absl::StrCat(flags.path, " is a file, not a folder")),
                   "name a data_dir, or the folder of a saved model: cistern verify saved");
  }
  if (flags.all && flags.commit != 0) {
    return absl::InvalidArgumentError("--all and --commit exclude each other");
  }
  const absl::StatusOr<std::unique_ptr<StateFolder>> state = app::FindState(files, flags.path);
  if (state.ok()) return VerifyState(**state, flags, console);
  if (!absl::IsNotFound(state.status())) return state.status();
  return VerifyModel(files, flags.path, flags, console);
}

void AddVerifyCommand(Command& root) {
  auto flags = std::make_shared<VerifyFlags>();
  Command& command = root.Add("verify", "Checks every byte of commits or of a saved model.",
                              "cistern verify saved");
  command.Argument("PATH", &flags->path,
                   {"DIR",
                    "A data_dir of servers or the state folder in it; or the folder of a saved "
                    "model.",
                    "saved"});
  command.Flag("--commit", &flags->commit,
               {"INT", "The commit of a state to check; 0: the newest.", "--commit 12"});
  command.Switch("--all", &flags->all, {"", "Checks every commit of a state.", "--all"});
  command.Flag("--threads", &flags->threads, ThreadsText("Number of threads"));
  command.Footer(
      "Needs no server. Checks of a commit its manifest, every block of its files, and the\n"
      "digest of each shard and table, recomputed from the rows; of a saved model its json\n"
      "files, every row, and the hash of each file, with an eighth of the rows in memory at a\n"
      "time. Exit code 5 if anything is corrupt; the report names the files, blocks or lines.");
  command.Does([flags](Console& console) { return RunVerify(*flags, &console); });
  AddVerifyOnline(command);
}

}  // namespace cistern
