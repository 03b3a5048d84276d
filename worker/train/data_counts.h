// What the workers of a run have read of its data, and what they have left out.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/status.h"
#include "worker/data/format/bad_data.h"
#include "worker/data/format/sample_reader.h"
#include "worker/group/process_group.h"

namespace cistern {

// Threads: one at a time, beside the readers that count.
class DataCounts {
 public:
  // For the readers of this worker.
  data::BadData* bad_data() { return &bad_data_; }
  data::ReadCounts* read() { return &read_; }

  // Once all readers have ended: exchanges the counts of all workers of `group`; null: there is
  // one. own_data: each worker reads data of its own. Otherwise all leave out the same files.
  absl::Status Gather(group::ProcessGroup* group, bool own_data);

  // The files that this worker has left out, by cause; after Gather, those of the run.
  data::BadData::Counts skipped() const;
  // Of samples, by worker; empty before Gather.
  const std::vector<uint64_t>& decoded_bytes() const { return decoded_bytes_; }

 private:
  data::BadData bad_data_;
  data::ReadCounts read_;
  data::BadData::Counts skipped_of_others_;
  std::vector<uint64_t> decoded_bytes_;
};

}  // namespace cistern
