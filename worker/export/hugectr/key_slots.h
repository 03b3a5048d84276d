// Finds the slot of each key of an embedding. HugeCTR's files of Localized embeddings hold the
// slot; the servers do not, because their rows belong to keys regardless of slots.
//
// With a slot_size_array the key determines the slot. Otherwise, and for keys outside the sizes of
// a hash table (LocalizedSlotSparseEmbeddingHash), the training data does: it is read once, on the
// first lookup, and a key gets the lowest slot in which it occurs. A key that the data lacks (rows
// of another day) may be in the model file that the run started from. Data with a bad record is
// used up to that record.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/data/source/key_index.h"
#include "worker/model/config/model_config.h"

namespace cistern {

// Memory: about 20 bytes per distinct key of the input if the data is read, else none.
//
// Threads: one at a time.
class KeySlots {
 public:
  // embedding: index into config.embeddings. config and files must outlive this object.
  KeySlots(const model::ModelConfig& config, FileSystem& files, size_t embedding);

  // kInvalidArgument: the key is outside its input's slots, its slot is not in the data, or there
  // is no data.
  absl::StatusOr<uint64_t> Of(Key key);

 private:
  absl::StatusOr<uint64_t> FromSizes(Key key) const;
  absl::Status ReadData();
  absl::Status ReadModelFile();
  void Note(Key key, uint32_t slot);

  const model::ModelConfig& config_;
  FileSystem& files_;
  const size_t embedding_;
  std::vector<Key> ends_;  // by slot: one past its last key; empty: no sizes
  bool data_is_read_ = false, file_is_read_ = false;
  absl::Status data_error_;  // the error that stopped ReadData early
  data::KeyIndex index_;
  std::vector<uint32_t> slots_;  // by row of index_
};

}  // namespace cistern
