// Reads and writes the rows of one embedding in HugeCTR's file formats.
//
//   v2  one file of records: key (4 bytes, or 8 with I64 keys), for Localized embeddings slot (8),
//       then float[vec]
//   v3  a folder of columns, whose n-th entries form row n: "key" (always 8 bytes), "emb_vector"
//       (float[vec]), for Localized embeddings "slot_id" (8), and a file for each column of
//       optimizer state, named as in the cached parameter server
//
// Little-endian, no headers. HugeCTR 2.3, 3.x: reference 1.9. Rows come in any order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "common/value/value_layout.h"
#include "worker/model/config/model_config.h"

namespace cistern {

enum class HugectrForm { kV2, kV3 };

// One file of optimizer state: `floats` cells of each row's state, from cell `offset`.
struct StateColumn {
  const char* file;
  uint32_t offset, floats;
};

// The shape of a table's rows in these files.
struct SparseShape {
  bool wide_keys = false;  // v2
  bool has_slots = false;
  uint32_t slot_num = 1;  // the number of slots of the embedding
  ValueLayout layout;     // accessor embedding (not ctr)

  size_t dim() const { return layout.dim(); }
  size_t record_bytes() const;  // v2
  std::vector<StateColumn> states() const;
};

// kInvalidArgument: an embedding with the accessor ctr.
absl::StatusOr<SparseShape> SparseShapeOf(const model::ModelConfig& config, size_t embedding);

// Writes the rows of a table to its files, which appear atomically at Close.
//
// Threads: one at a time.
class SparseWriter {
 public:
  static absl::StatusOr<std::unique_ptr<SparseWriter>> Create(FileSystem& files,
                                                              const std::string& path,
                                                              HugectrForm form,
                                                              const SparseShape& shape);
  virtual ~SparseWriter() = default;
  // value: layout.full_floats() cells. kInvalidArgument: the key does not fit its bytes.
  virtual absl::Status Add(Key key, uint64_t slot, const float* value) = 0;
  virtual absl::Status Close() = 0;
  virtual uint64_t bytes() const = 0;
};

// Reads the rows of a table from files of either form: v2 if the path is a file, v3 if a folder.
//
// Threads: one at a time.
class SparseReader {
 public:
  // kInvalidArgument, with file, expected and found bytes: no such file, or sizes that do not fit
  // the shape; kDataLoss: columns of different lengths.
  static absl::StatusOr<std::unique_ptr<SparseReader>> Open(FileSystem& files,
                                                            const std::string& path,
                                                            const SparseShape& shape);
  virtual ~SparseReader() = default;

  uint64_t rows() const { return rows_; }
  const std::string& path() const { return path_; }
  // Reads n = keys->size() rows, from row `first`. values: [n, full_floats]; state that no file
  // holds is zero. slots: [n], 0 without slots. kDataLoss names file and record: a number that is
  // not finite, a slot outside the embedding, a reserved key, or weights that look like keys (the
  // file has another embedding_vec_size, which its size does not always reveal).
  absl::Status Read(uint64_t first, std::vector<Key>* keys, std::vector<uint64_t>* slots,
                    std::vector<float>* values);

 protected:
  SparseReader(std::string path, const SparseShape& shape)
      : path_(std::move(path)), shape_(shape) {}
  virtual absl::Status ReadRows(uint64_t first, absl::Span<Key> keys, absl::Span<uint64_t> slots,
                                float* values) = 0;
  absl::Status CheckRow(uint64_t row, Key key, uint64_t slot, const float* value) const;
  absl::Status CheckWeights(uint64_t first, const std::vector<float>& values) const;

  const std::string path_;
  const SparseShape shape_;
  uint64_t rows_ = 0;
};

}  // namespace cistern
