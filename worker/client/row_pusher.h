// Pushes the rows of a table, one by one, in blocks.
#pragma once

#include <vector>

#include "worker/client/parameter_client.h"

namespace cistern {

// Threads: one at a time, the one that calls the pass verbs of the client.
class RowPusher {
 public:
  // client: has an open pass, and outlives this.
  RowPusher(ParameterClient& client, TableId table)
      : client_(client), table_(table), stride_(client.layout(table).full_floats()) {}

  // value: [full_floats].
  absl::Status Add(Key key, const float* value, bool has_embedx) {
    keys_.push_back(key);
    values_.insert(values_.end(), value, value + stride_);
    has_embedx_.push_back(has_embedx);
    return keys_.size() < kRows ? absl::OkStatus() : Flush();
  }
  // Call it at the end.
  absl::Status Flush() {
    if (keys_.empty()) return absl::OkStatus();
    CISTERN_RETURN_IF_ERROR(client_.Push(table_, keys_, values_.data(), has_embedx_.data()));
    keys_.clear();
    values_.clear();
    has_embedx_.clear();
    return absl::OkStatus();
  }

 private:
  static constexpr size_t kRows = size_t{1} << 16;

  ParameterClient& client_;
  const TableId table_;
  const size_t stride_;
  std::vector<Key> keys_;
  std::vector<float> values_;
  std::vector<uint8_t> has_embedx_;
};

}  // namespace cistern
