// The committed rows of one shard that are on disk, as a table sees them.
//
// A table with a memory limit keeps some rows in memory, the hot ones, and reads the others here. A
// row that is in both has its newest value in memory. What is behind this interface is immutable:
// a commit replaces it whole (server/checkpoint/cold_shard.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/base/types.h"
#include "common/io/file_reads.h"

namespace cistern::server {

// What a sweep does with a row after visiting it.
enum class RowFate { kKeep, kRemove };

// Changes a row's stored cells, floats(has_embedx) of them; the result decides whether it stays.
using RowChange = std::function<RowFate(Key, float* value, bool has_embedx)>;

// One key to read.
struct ColdRead {
  Key key = 0;
  float* value = nullptr;         // [full_floats]; unchanged if the key is absent
  uint8_t* has_embedx = nullptr;  // becomes 0, 1, or kAbsent
};

// Rows that are being read, in rounds: what a row needs next follows from what was read before.
//
// Threads: one at a time.
class ColdReading {
 public:
  virtual ~ColdReading() = default;

  // Adds what must be read next, as far as there is room. True: nothing must, and all rows are
  // where their ColdRead wants them.
  virtual bool Want(FileReads* files) = 0;

  // Uses what the last Want added. kDataLoss as ColdRows::Read.
  virtual absl::Status Use(const FileReads& files) = 0;
};

// Threads: any thread.
class ColdRows {
 public:
  virtual ~ColdRows() = default;

  // Begins to read rows, fastest many at a time. Keys may repeat. `reads` and this outlive the
  // result.
  virtual std::unique_ptr<ColdReading> Begin(absl::Span<const ColdRead> reads) const = 0;

  // Reads rows. kDataLoss: a file is corrupt, with its name and the place in it.
  absl::Status Read(absl::Span<const ColdRead> reads) const;

  // False if no file has the key; rarely true for a key that none has. Does no I/O.
  virtual bool MayHave(Key key) const = 0;

  // The rows in ascending order of keys come in parts 0 .. part_num()-1 of about a megabyte.
  virtual uint64_t part_num() const = 0;
  // Part `part` has the keys from this one on, and before that of the next part; 0 for part 0.
  virtual Key part_begin(uint64_t part) const = 0;
  // value: full_floats cells, zeros where absent, valid until visit returns. An error of `visit` is
  // returned.
  using Visit = std::function<absl::Status(Key, const float* value, bool has_embedx)>;
  virtual absl::Status ReadPart(uint64_t part, const Visit& visit) const = 0;

  // The memory of what finds the rows.
  virtual size_t memory_bytes() const = 0;
};

// Finishes readings of several shards, which wait for the disk together. Errors as ColdRows::Read.
absl::Status ReadTogether(absl::Span<const std::unique_ptr<ColdReading>> readings);

// The rows of `rows` after a change that is a function of each row alone. It is applied whenever a
// row is read, until a commit writes all rows anew. value_floats: full_floats of the table.
std::shared_ptr<const ColdRows> Changed(std::shared_ptr<const ColdRows> rows, RowChange change,
                                        size_t value_floats);

}  // namespace cistern::server
