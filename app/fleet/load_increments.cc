#include "app/fleet/load_increments.h"

#include "app/fleet/held_model.h"
#include "app/state/increment_rows.h"
#include "common/saved_model/increment.h"
#include "common/value/schema.h"
#include "worker/client/row_pusher.h"

namespace cistern::app {
namespace {

absl::Status Push(FileSystem& files, ParameterClient& client, const std::string& folder,
                  const v1::Increment& increment, uint64_t* pushed) {
  for (TableId id = 0; id < static_cast<TableId>(increment.schema().tables_size()); ++id) {
    RowPusher rows(client, id);
    CISTERN_RETURN_IF_ERROR(ReadIncrementRows(files, folder, increment, id,
                                              [&](Key key, const float* value, bool has_embedx) {
                                                ++*pushed;
                                                return rows.Add(key, value, has_embedx);
                                              }));
    CISTERN_RETURN_IF_ERROR(rows.Flush());
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
    CISTERN_RETURN_IF_ERROR(client.BeginPass());
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

absl::Status CheckNothingIsRemoved(const IncrementChain& chain, size_t first) {
  for (size_t i = first; i < chain.increments.size(); ++i) {
    for (const v1::TableSpec& table : chain.increments[i].schema().tables()) {
      const v1::IncrementFile* const file = FindFile(
          chain.increments[i], IncrementRemovedName(table.name(), FormatOf(chain.increments[i])));
      if (file == nullptr) continue;
      return WithFix(
          absl::UnimplementedError(absl::StrCat(chain.folders[i], " removes ", file->rows(),
                                                " rows of table '", table.name(),
                                                "', which servers that hold rows cannot do")),
          "apply the increments to the saved model on disk (cistern ckpt apply), and load the "
          "result in place of the rows");
    }
  }
  return absl::OkStatus();
}

// Servers write the last pass of a row themselves and remove rows, so they would not reach the rows
// that an increment leads to.
absl::Status CheckNothingIsBounded(const v1::Schema& schema) {
  for (const v1::TableSpec& table : schema.tables()) {
    if (!table.has_bounds()) continue;
    return WithFix(
        absl::UnimplementedError(absl::StrCat("table '", table.name(),
                                              "' has bounds: servers that hold its rows choose "
                                              "themselves which of them go")),
        "apply the increments to the saved model on disk (cistern ckpt apply), and load the "
        "result in place of the rows");
  }
  return absl::OkStatus();
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
    return absl::FailedPreconditionError(
        absl::StrCat("the servers have other tables than ", chain.folders[0], ": ", difference));
  }
  CISTERN_RETURN_IF_ERROR(CheckNothingIsBounded(schema));
  CISTERN_ASSIGN_OR_RETURN(v1::IncrementState state, StateOn(client));
  CISTERN_ASSIGN_OR_RETURN(size_t first, FirstMissing(chain, state, "the fleet"));
  CISTERN_RETURN_IF_ERROR(CheckNothingIsRemoved(chain, first));
  LoadedIncrements loaded;
  if (first == chain.increments.size()) return loaded;
  CISTERN_RETURN_IF_ERROR(client.CreateTables(schema));
  CISTERN_RETURN_IF_ERROR(client.ClaimTerm());
  CISTERN_ASSIGN_OR_RETURN(state, StateOn(client));  // now no other writer can change it
  CISTERN_ASSIGN_OR_RETURN(first, FirstMissing(chain, state, "the fleet"));
  CISTERN_RETURN_IF_ERROR(CheckNothingIsRemoved(chain, first));  // again: commits were rolled back
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
