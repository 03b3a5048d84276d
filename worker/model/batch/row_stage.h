// Rows on their way between the host and the pass tables of a device.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/base/types.h"
#include "cuda/core/device_context.h"
#include "cuda/core/event.h"
#include "worker/model/batch/pass_table.h"

namespace cistern {

// On the CPU the host works in the table itself where it can. On a GPU rows go in chunks through
// two pinned buffers, on a stream of the stage's own: the host fills or empties one while the other
// is copied.
//
// Threads: one at a time; stages of several threads work beside each other on other tables.
class RowStage {
 public:
  // Of a chunk, at most; on a GPU it takes kChunks.
  static constexpr size_t kChunkBytes = size_t{16} << 20, kChunks = 3;

  explicit RowStage(DeviceContext& device) : device_(device) {}
  RowStage(const RowStage&) = delete;
  RowStage& operator=(const RowStage&) = delete;
  ~RowStage();

  // Writes values [count, stride] and full [count] of rows first .. first + count.
  using Fill =
      std::function<absl::Status(size_t first, size_t count, float* values, uint8_t* full)>;
  // All rows of `table`, and its keys. On return they are there.
  absl::Status Write(const Fill& fill, PassTable& table);
  // The i-th value that `fill` gives is that of rows[i]; no row twice.
  absl::Status Write(absl::Span<const Row> rows, const Fill& fill, PassTable& table);

  using Take = std::function<absl::Status(size_t first, size_t count, const float* values,
                                          const uint8_t* full)>;
  // Gives all rows of `table`, in order. The device must be done with them.
  absl::Status Read(const PassTable& table, const Take& take);

  // Row to_rows[i] of `to` = row from_rows[i] of `from`, which the device must be done with.
  absl::Status Carry(const PassTable& from, absl::Span<const Row> from_rows,
                     absl::Span<const Row> to_rows, PassTable& to);

 private:
  // A chunk of rows in memory of either side.
  struct Chunk {
    Memory memory;
    float* values = nullptr;
    Row* rows[2] = {};
    uint8_t* full = nullptr;
  };

  // Streams, events, and chunks for rows of this table.
  absl::Status MakeRoom(const PassTable& table);
  absl::Status TakeChunk(MemoryPlace place, size_t row_floats, Chunk* chunk);
  absl::Status WriteInChunks(absl::Span<const Row> rows, size_t count, const Fill& fill,
                             PassTable& table);

  DeviceContext& device_;
  std::vector<Stream> streams_;  // one
  std::vector<Event> events_;    // of each pinned chunk: its copy is over
  size_t chunk_rows_ = 0, chunk_floats_ = 0;
  std::array<Chunk, 2> pinned_;
  Chunk there_;  // on a GPU
};

}  // namespace cistern
