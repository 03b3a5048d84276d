#include "app/fleet/load_increments.h"

#include "app/fleet/held_model.h"
#include "app/state/increment_rows.h"
#include "common/saved_model/increment.h"
#include "common/value/schema.h"
#include "worker/client/row_pusher.h"

namespace cistern::app {
namespace {

constexpr size_t kRemovedKeys = size_t{1} << 16;  // of one push

absl::Status PushRemoved(FileSystem& files, ParameterClient& client, const std::string& folder,
                         const v1::Increment& increment, TableId id, uint64_t* pushed) {
  std::vector<Key> keys;
  const auto push = [&]() -> absl::Status {
    if (keys.empty()) return absl::OkStatus();
    *pushed += keys.size();
    CISTERN_RETURN_IF_ERROR(client.PushRemoved(id, keys));
    keys.clear();
    return absl::OkStatus();
  };
  CISTERN_RETURN_IF_ERROR(ReadIncrementRemoved(files, folder, increment, id, [&](Key key) {
    keys.push_back(key);
    return keys.size() < kRemovedKeys ? absl::OkStatus() : push();
  }));
  return push();
}

absl::Status Push(FileSystem& files, ParameterClient& client, const std::string& folder,
                  const v1::Increment& increment, uint64_t* pushed) {
  for (TableId id = 0; id < static_cast<TableId>(increment.schema().tables_size()); ++id) {
    ValueUnpacker unpack(client.stored_layout(id));
    RowPusher rows(client, id);
    CISTERN_RETURN_IF_ERROR(ReadIncrementRows(files, folder, increment, id,
                                              [&](Key key, const float* value, bool has_embedx) {
                                                ++*pushed;
                                                return rows.Add(key, unpack(value), has_embedx);
                                              }));
    CISTERN_RETURN_IF_ERROR(rows.Flush());
    CISTERN_RETURN_IF_ERROR(PushRemoved(files, client, folder, increment, id, pushed));
  }
  for (TableId id = 0; id < static_cast<TableId>(increment.schema().dense_tables_size()); ++id) {
    CISTERN_ASSIGN_OR_RETURN(const std::vector<float> values,
                             ReadIncrementDense(files, folder, increment, id));
    if (!values.empty()) CISTERN_RETURN_IF_ERROR(client.PushDense(id, values.data()));
  }
  return absl::OkStatus();
}

absl::Status CommitOne(FileSystem& files, ParameterClient& client, const std::string& folder,
                       const v1::Increment& increment, uint64_t* rows) {
  uint64_t pushed = 0;
  const absl::Status committed = [&]() -> absl::Status {
    CISTERN_RETURN_IF_ERROR(client.BeginReplica(increment.to().pass(), increment.to().days()));
    CISTERN_RETURN_IF_ERROR(Push(files, client, folder, increment, &pushed));
    return client.CommitPass({});
  }();
  if (committed.ok()) {
    *rows += pushed;
    return committed;
  }
  if (!absl::IsAborted(committed)) client.AbortPass().IgnoreError();  // drops staged pushes
  return AddContext(
      absl::IsDataLoss(committed) ? WithKind(committed, ErrorKind::kBadCheckpoint) : committed,
      absl::StrCat("loading the increment ", folder));
}

}  // namespace

absl::StatusOr<LoadedIncrements> LoadIncrements(FileSystem& files, ParameterClient& client,
                                                const std::vector<std::string>& folders,
                                                const JobCalls& calls) {
  CISTERN_ASSIGN_OR_RETURN(const IncrementChain chain, ReadChain(files, folders));
  if (chain.empty()) return LoadedIncrements();
  const v1::Schema& schema = chain.increments[0].schema();
  const std::string difference = SchemaDifference(client.schema(), schema);
  if (!difference.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("the servers' tables differ from those of ",
                                                      chain.folders[0], ": ", difference));
  }
  CISTERN_ASSIGN_OR_RETURN(v1::IncrementState state, StateOn(client));
  CISTERN_ASSIGN_OR_RETURN(size_t first, FirstMissing(chain, state, "the fleet"));
  LoadedIncrements loaded;
  if (first == chain.increments.size()) return loaded;
  CISTERN_RETURN_IF_ERROR(client.CreateTables(schema));
  CISTERN_RETURN_IF_ERROR(client.ClaimTerm());
  CISTERN_ASSIGN_OR_RETURN(state, StateOn(client));  // now no other writer can change it
  CISTERN_ASSIGN_OR_RETURN(first, FirstMissing(chain, state, "the fleet"));
  AmountCounter counter(calls, "loading", "increments");
  counter.Expect(chain.increments.size() - first);
  for (size_t i = first; i < chain.increments.size(); ++i, counter.Done()) {
    CISTERN_RETURN_IF_ERROR(calls.CheckStop());
    CISTERN_RETURN_IF_ERROR(
        CommitOne(files, client, chain.folders[i], chain.increments[i], &loaded.rows));
    ++loaded.applied;
  }
  CISTERN_ASSIGN_OR_RETURN(state, StateOn(client));
  if (SameRows(state, chain.increments.back().to())) return loaded;
  return WithKind(
      absl::DataLossError(absl::StrCat("after the increments the servers do not hold the rows of ",
                                       StateText(chain.increments.back().to()), ", which ",
                                       chain.folders.back(), " names")),
      ErrorKind::kBadCheckpoint);
}

}  // namespace cistern::app
