// States of a model that increments lie between (common/saved_model/increment.h), and the rows of a
// state with increments applied.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/state/saved_rows.h"

namespace cistern::app {

// A commit or a saved model, as RowsPlace is written, whose state is recorded. kInvalidArgument,
// with a fix: it is neither, or records no digests. kUnimplemented, with a fix: a rule defers
// updates, so that a step changes every row. kBadCheckpoint: it is corrupt.
absl::StatusOr<std::unique_ptr<RowSource>> OpenExact(FileSystem& files, const std::string& place);
// kAlreadyExists if there is a file or folder `out`.
absl::Status CheckIsNew(FileSystem& files, const std::string& out);

nlohmann::ordered_json JsonOf(const v1::IncrementState& state);

// The increments of several folders, read and in order.
struct IncrementChain {
  std::vector<std::string> folders;
  std::vector<v1::Increment> increments;  // each continues where the one before ends
  bool empty() const { return increments.empty(); }
};

// Reads increment.json of each folder. kInvalidArgument, with a fix: a folder is no increment, or
// does not continue where the one before it ends. kBadCheckpoint: it is corrupt.
absl::StatusOr<IncrementChain> ReadChain(FileSystem& files,
                                         const std::vector<std::string>& folders);

// Which increment of the chain is the first that rows in `state` do not have yet: 0 for rows that
// have none, increments.size() for rows that have all. kFailedPrecondition, with a fix: the rows
// are at no point of the chain.
absl::StatusOr<size_t> FirstMissing(const IncrementChain& chain, const v1::IncrementState& state,
                                    const std::string& name);

// `base`, whose state is recorded, with the increments of the chain from `first` on (FirstMissing).
// Memory holds the rows of these increments. kInvalidArgument: the base has other tables.
// kBadCheckpoint: corrupt files.
absl::StatusOr<std::unique_ptr<RowSource>> WithIncrements(FileSystem& files,
                                                          std::unique_ptr<RowSource> base,
                                                          const IncrementChain& chain,
                                                          size_t first);

}  // namespace cistern::app
