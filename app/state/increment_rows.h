// A saved model or commit with increments applied (common/saved_model/increment.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/state/saved_rows.h"

namespace cistern::app {

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

// `base` with the increments that it does not have yet. Memory holds the rows of all increments.
// Errors as above; also if the base does not record its digests, has other tables, or defers
// updates of rows.
absl::StatusOr<std::unique_ptr<SavedRows>> WithIncrements(FileSystem& files,
                                                          std::unique_ptr<SavedRows> base,
                                                          const std::vector<std::string>& folders);

}  // namespace cistern::app
