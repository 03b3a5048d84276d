#include "app/verify/verify.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/state/saved_place.h"
#include "common/value/schema.h"
#include "server/checkpoint/verify_state.h"
#include "server/saved_model/model_snapshot.h"

namespace cistern::app {
namespace {

// A saved model is read in this many steps, to bound the rows in memory.
constexpr uint32_t kModelSteps = 8;

constexpr char kFix[] =
    "do not load or start from corrupt files: restore the named files from a copy, or return to an "
    "older commit or saved model";

void AddFault(absl::Status fault, VerifyResult* result) {
  // A file that the manifest or a json file names is missing.
  if (absl::IsNotFound(fault)) fault = WithCode(fault, absl::StatusCode::kDataLoss);
  result->faults.push_back(std::move(fault));
}

// --- commits

VerifiedCommit CommitOf(const server::CommitCheck& check) {
  VerifiedCommit commit;
  commit.commit = check.commit;
  commit.pass = check.manifest.pass();
  commit.files = check.manifest.files_size();
  for (const v1::RowFile& file : check.manifest.files()) commit.bytes += file.bytes();
  commit.good = check.faults.empty();
  commit.server = check.part;
  for (const auto* tables : {&check.manifest.tables(), &check.manifest.dense_tables()}) {
    for (const v1::TableState& table : *tables) {
      commit.tables.push_back({table.name(), table.rows(), table.digest()});
    }
  }
  return commit;
}

absl::StatusOr<std::vector<uint64_t>> CommitsToVerify(const server::StateFolder& state,
                                                      const VerifyOptions& options) {
  if (options.all) return state.Commits();
  if (options.commit == 0) {
    CISTERN_ASSIGN_OR_RETURN(const uint64_t newest, NewestCommit(state));
    return std::vector<uint64_t>{newest};
  }
  CISTERN_ASSIGN_OR_RETURN(const bool there, state.HasManifest(options.commit));
  // ReadCommit returns an error that lists the existing commits.
  if (!there) CISTERN_RETURN_IF_ERROR(ReadCommit(state, options.commit).status());
  return std::vector<uint64_t>{options.commit};
}

absl::StatusOr<VerifyResult> VerifyState(const server::StateFolder& state,
                                         const VerifyOptions& options, const JobCalls& calls) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<uint64_t> commits, CommitsToVerify(state, options));
  ThreadPool pool(ThreadsOf(options.threads));
  AmountCounter counter(calls, "verifying", "files and tables");
  server::StateVerifier verifier(
      state, pool, [&](uint64_t more) { counter.Expect(more); }, [&] { counter.Done(); });
  VerifyResult result;
  result.path = state.path();
  result.is_state = true;
  for (const uint64_t commit : commits) {
    CISTERN_RETURN_IF_ERROR(calls.CheckStop());
    server::CommitCheck check = verifier.Check(commit);
    CISTERN_ASSIGN_OR_RETURN(const bool there, state.HasManifest(commit));
    if (!there) {
      VerifiedCommit removed;
      removed.commit = commit;
      removed.removed = true;
      result.commits.push_back(std::move(removed));
      continue;
    }
    result.commits.push_back(CommitOf(check));
    for (absl::Status& fault : check.faults) AddFault(std::move(fault), &result);
  }
  return result;
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
// and checked. Adds each fault once.
absl::StatusOr<TableSums> ReadModel(FileSystem& files, const std::string& folder,
                                    const ModelPart& part, ThreadPool& pool, const JobCalls& calls,
                                    VerifyResult* result) {
  TableSums sums;
  const uint32_t steps = std::min(part.shard_num, kModelSteps);
  AmountCounter counter(calls, "verifying", "parts");
  counter.Expect(steps);
  for (uint32_t step = 0; step < steps; ++step, counter.Done()) {
    CISTERN_RETURN_IF_ERROR(calls.CheckStop());
    const absl::StatusOr<ShardMap> map = ShardMap::Create(part.shard_num, steps);
    server::TableStore store(*map, step);
    const absl::Status loaded = server::LoadStore(files, store, folder, pool).status();
    if (!loaded.ok()) {
      const auto known = std::find(result->faults.begin(), result->faults.end(), loaded);
      if (known == result->faults.end()) AddFault(loaded, result);
      continue;
    }
    size_t at = 0;
    for (const auto& table : store.sparse_tables()) {
      sums.Add(at++, table->counts().rows, *table->Digest());
    }
    for (const auto& table : store.dense_tables()) {
      const DenseRange range = table->range();
      sums.Add(at++, table->written() ? range.end - range.begin : 0, table->Digest());
    }
  }
  return sums;
}

// Compares the digests of the rows that were read with those in the json files, if recorded.
void CompareDigests(const std::vector<ModelPart>& parts, const TableSums& sums,
                    VerifyResult* result) {
  const auto recorded = TableStatesOf(parts);
  for (size_t t = 0; recorded.has_value() && t < recorded->size(); ++t) {
    const v1::TableState& table = (*recorded)[t];
    if (table.rows() == sums.rows[t] && table.digest() == sums.digests[t]) continue;
    AddFault(absl::DataLossError(absl::StrCat(
                 result->path, ": table '", table.name(), "': its files hold ", sums.rows[t],
                 " rows with digest ", DigestText(sums.digests[t]), ", but its json files record ",
                 table.rows(), " with ", DigestText(table.digest()))),
             result);
  }
}

absl::StatusOr<VerifyResult> VerifyModel(FileSystem& files, const VerifyOptions& options,
                                         const JobCalls& calls) {
  const std::string& folder = options.path;
  const absl::StatusOr<std::vector<ModelPart>> parts = ReadParts(files, folder);
  if (absl::IsNotFound(parts.status())) {
    return WithFix(absl::InvalidArgumentError(
                       absl::StrCat(folder, " is neither a state folder nor a saved model")),
                   "name a data_dir of servers, the state folder in it, or the folder of a saved "
                   "model; cistern ckpt ls DIR lists what is there");
  }
  VerifyResult result;
  result.path = folder;
  if (!parts.ok()) {
    AddFault(parts.status(), &result);
    return result;
  }
  const ModelPart& first = parts->front();
  ThreadPool pool(ThreadsOf(options.threads));
  CISTERN_ASSIGN_OR_RETURN(const TableSums sums,
                           ReadModel(files, folder, first, pool, calls, &result));
  if (result.faults.empty()) CompareDigests(*parts, sums, &result);
  VerifiedModel model;
  model.pass = first.pass;
  const std::vector<std::string> names = TableNames(first.schema);
  for (size_t t = 0; t < names.size() && result.faults.empty(); ++t) {
    model.tables.push_back({names[t], sums.rows[t], sums.digests[t]});
  }
  result.models.push_back(std::move(model));
  return result;
}

nlohmann::ordered_json TablesJson(const std::vector<VerifiedTable>& tables) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const VerifiedTable& table : tables) {
    json.push_back(
        {{"name", table.name}, {"rows", table.rows}, {"digest", DigestText(table.digest)}});
  }
  return json;
}

}  // namespace

absl::Status VerifyResult::outcome() const {
  if (faults.empty()) return absl::OkStatus();
  const auto bad = std::find_if(faults.begin(), faults.end(), absl::IsDataLoss);
  const absl::Status& worst = bad == faults.end() ? faults[0] : *bad;
  if (absl::IsPermissionDenied(worst)) return worst;  // the file may be good
  const std::string more =
      faults.size() > 1 ? absl::StrCat(" (and ", faults.size() - 1, " more)") : "";
  return WithFix(WithKind(absl::Status(worst.code(), absl::StrCat(worst.message(), more)),
                          ErrorKind::kBadCheckpoint),
                 kFix);
}

absl::StatusOr<VerifyResult> Verify(const VerifyOptions& options, const JobCalls& calls) {
  constexpr char kNameAFolder[] = "name a data_dir, or the folder of a saved model";
  if (options.path.empty()) {
    return WithFix(absl::InvalidArgumentError("no folder was named"), kNameAFolder);
  }
  std::error_code error;
  if (std::filesystem::is_regular_file(options.path, error)) {
    return WithFix(
        absl::InvalidArgumentError(absl::StrCat(options.path, " is a file, not a folder")),
        kNameAFolder);
  }
  if (options.all && options.commit != 0) {
    return WithOptions(absl::InvalidArgumentError("all commits and one commit exclude each other"),
                       {"all", "commit"});
  }
  LocalFileSystem files;
  const absl::StatusOr<std::unique_ptr<server::StateFolder>> state = FindState(files, options.path);
  if (state.ok()) return VerifyState(**state, options, calls);
  if (!absl::IsNotFound(state.status())) return state.status();
  return VerifyModel(files, options, calls);
}

nlohmann::ordered_json JsonOf(const VerifyResult& result) {
  nlohmann::ordered_json json;
  json["path"] = result.path;
  if (result.is_state) json["commits"] = nlohmann::ordered_json::array();
  for (const VerifiedCommit& commit : result.commits) {
    if (commit.removed) {
      json["commits"].push_back({{"commit", commit.commit}, {"removed", true}});
      continue;
    }
    json["commits"].push_back({{"commit", commit.commit},
                               {"pass", commit.pass},
                               {"files", commit.files},
                               {"bytes", commit.bytes},
                               {"good", commit.good},
                               {"tables", TablesJson(commit.tables)}});
    if (commit.server.has_value()) json["commits"].back()["server"] = *commit.server;
  }
  for (const VerifiedModel& model : result.models) {
    json["pass"] = model.pass;
    json["good"] = result.faults.empty();
    json["tables"] = TablesJson(model.tables);
  }
  json["faults"] = nlohmann::ordered_json::array();
  for (const absl::Status& fault : result.faults) {
    json["faults"].push_back(std::string(fault.message()));
  }
  return json;
}

}  // namespace cistern::app
