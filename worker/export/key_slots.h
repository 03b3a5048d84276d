// The slot of each key of an embedding, which HugeCTR's files of Localized embeddings hold and the
// servers do not: a row there belongs to a key, whatever slot it came in.
//
// With a slot_size_array it follows from the key. Otherwise, and for the keys that lie outside the
// sizes of a hash table (LocalizedSlotSparseEmbeddingHash), the training data tells: it is read
// once through, when the first key is asked for, and the lowest slot that a key occurs in is taken.
// A key that is not in it (rows of another day) may come from the model file that the run started
// from. Of data with a bad record, what comes before it counts.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/data/source/key_index.h"
#include "worker/model/config/model_config.h"

namespace cistern {

// Takes about 20 bytes a distinct key of the input where the data has to tell, 0 otherwise.
//
// Threads: one at a time.
class KeySlots {
 public:
  // embedding: index into config.embeddings. config and files outlive this.
  KeySlots(const ModelConfig& config, FileSystem& files, size_t embedding);

  // kInvalidArgument: a key outside its input's slots, or one that no data tells the slot of, or no
  // data.
  absl::StatusOr<uint64_t> Of(Key key);

 private:
  absl::StatusOr<uint64_t> FromSizes(Key key) const;
  absl::Status ReadData();
  absl::Status ReadModelFile();
  void Note(Key key, uint32_t slot);

  const ModelConfig& config_;
  FileSystem& files_;
  const size_t embedding_;
  std::vector<Key> ends_;  // of the slots of all sizes; empty: no sizes
  bool data_is_read_ = false, file_is_read_ = false;
  absl::Status data_error_;  // what ended the reading before the end
  KeyIndex index_;
  std::vector<uint32_t> slots_;  // by row of index_
};

}  // namespace cistern
