#include "app/state/reshard_state.h"

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "app/state/saved_place.h"
#include "common/value/schema.h"
#include "server/checkpoint/reshard.h"

namespace cistern::app {
namespace {

using Set = void (v1::CtrRules::*)(float);
constexpr std::pair<const char*, Set> kRules[] = {
    {"base_threshold", &v1::CtrRules::set_base_threshold},
    {"delta_threshold", &v1::CtrRules::set_delta_threshold},
    {"delta_keep_days", &v1::CtrRules::set_delta_keep_days},
    {"show_click_decay_rate", &v1::CtrRules::set_show_click_decay_rate},
    {"delete_threshold", &v1::CtrRules::set_delete_threshold},
    {"delete_after_unseen_days", &v1::CtrRules::set_delete_after_unseen_days}};

absl::Status ChangeThreshold(const std::string& change, v1::Schema* schema) {
  const auto refuse = [&](const std::string& why) {
    return WithOptions(absl::InvalidArgumentError(absl::StrCat(change, ": ", why)), {"set"});
  };
  const size_t equals = change.find('='), dot = change.rfind('.', equals);
  float value = 0;
  if (equals == std::string::npos || dot == std::string::npos ||
      !absl::SimpleAtof(change.substr(equals + 1), &value)) {
    return refuse("write TABLE.NAME=NUMBER, as in deep.delete_threshold=0.5");
  }
  const std::string table = change.substr(0, dot), name = change.substr(dot + 1, equals - dot - 1);
  std::vector<std::string> tables, names;
  v1::TableSpec* spec = nullptr;
  for (v1::TableSpec& one : *schema->mutable_tables()) {
    if (one.accessor() != v1::TableSpec::CTR) continue;
    tables.push_back(one.name());
    if (one.name() == table) spec = &one;
  }
  if (spec == nullptr) {
    return refuse(absl::StrCat("no ctr table has this name; there are: ",
                               tables.empty() ? "none" : absl::StrJoin(tables, ", ")));
  }
  for (const auto& [rule, set] : kRules) {
    names.push_back(rule);
    if (name != rule) continue;
    (spec->mutable_ctr()->*set)(value);
    return absl::OkStatus();
  }
  return WithOptions(absl::InvalidArgumentError(
                         absl::StrCat(change, ": expected one of ", absl::StrJoin(names, ", "),
                                      "; other settings change rows, as a load can")),
                     {"set", "load.upgrade"});
}

absl::StatusOr<ShardMap> NewMap(const v1::Manifest& manifest, const ReshardOptions& options) {
  const uint64_t servers = options.server_num == 0 ? manifest.server_num() : options.server_num;
  const uint64_t shards = options.shard_num == 0 ? manifest.shard_num() : options.shard_num;
  if (servers > UINT32_MAX || shards > UINT32_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat(servers, " servers and ", shards, " shards: too many"));
  }
  return ShardMap::Create(static_cast<uint32_t>(shards), static_cast<uint32_t>(servers));
}

absl::Status WithReshardFix(const absl::Status& status) {
  if (absl::IsAlreadyExists(status)) {
    return WithOptions(WithFix(status, "an existing state is never replaced: name another folder"),
                       {"out"});
  }
  if (absl::IsFailedPrecondition(status)) {
    return WithOptions(WithFix(status, "name a folder that no server uses"), {"out"});
  }
  if (absl::IsResourceExhausted(status)) {
    return WithFix(status, "free space there and repeat this; the old state is unchanged");
  }
  if (absl::IsDataLoss(status)) {
    return WithFix(
        WithKind(status, ErrorKind::kBadCheckpoint),
        "find the corrupt files: cistern verify. Running servers remove old files as they "
        "commit: stop them first");
  }
  return status;
}

// The folders need not exist yet.
bool IsSameFolder(const std::string& a, const std::string& b) {
  std::error_code error;
  return std::filesystem::weakly_canonical(a, error) == std::filesystem::weakly_canonical(b, error);
}

}  // namespace

absl::Status ChangeThresholds(const std::vector<std::string>& changes, v1::Schema* schema) {
  for (const std::string& change : changes) {
    CISTERN_RETURN_IF_ERROR(ChangeThreshold(change, schema));
  }
  return WithOptions(CheckSchema(*schema), {"set"});
}

absl::StatusOr<ReshardResult> ReshardState(const ReshardOptions& options, const JobCalls& calls) {
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<server::StateFolder> state,
                           FindGivenState(files, options.state));
  const std::string to = server::StateFolderOf(options.out);
  if (IsSameFolder(state->path(), to)) {
    return WithReshardFix(absl::AlreadyExistsError(absl::StrCat(to, " is the state to rewrite")));
  }
  CISTERN_ASSIGN_OR_RETURN(const server::ParsedManifest commit, ReadCommit(*state, options.commit));
  CISTERN_ASSIGN_OR_RETURN(const ShardMap map, NewMap(commit.manifest, options));
  v1::Schema schema = commit.manifest.schema();
  CISTERN_RETURN_IF_ERROR(ChangeThresholds(options.set, &schema));
  ThreadPool pool(ThreadsOf(options.threads));
  AmountCounter counter(calls, "rewriting", "servers");
  counter.Expect(map.server_num());
  const absl::StatusOr<server::ReshardTotals> totals = server::Reshard(
      *state, commit, to, map, pool, [&] { counter.Done(); }, &schema);
  if (!totals.ok()) return WithReshardFix(totals.status());
  ReshardResult result;
  result.path = to;
  result.commit = totals->commit;
  result.pass = commit.manifest.pass();
  result.server_num = map.server_num();
  result.shard_num = map.shard_num();
  result.rows = totals->rows;
  result.files = totals->files;
  result.bytes = totals->bytes;
  result.was_there = totals->was_there;
  return result;
}

nlohmann::ordered_json JsonOf(const ReshardResult& result) {
  return {{"path", result.path},           {"commit", result.commit},
          {"pass", result.pass},           {"server_num", result.server_num},
          {"shard_num", result.shard_num}, {"rows", result.rows},
          {"files", result.files},         {"bytes", result.bytes},
          {"was_there", result.was_there}};
}

}  // namespace cistern::app
