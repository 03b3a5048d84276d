// Copies rows between the host and the pass tables of a device.
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

namespace cistern::model {

// On the CPU the host accesses the table itself. On a GPU rows pass in chunks through two pinned
// buffers, on the stage's own stream: the host fills or empties one buffer while the other is
// copied.
//
// Threads: one at a time. Several threads can each use their own stage, on different tables.
class RowStage {
 public:
  // The maximum size of a chunk; on a GPU the stage allocates kChunks.
  static constexpr size_t kChunkBytes = size_t{16} << 20, kChunks = 3;

  explicit RowStage(DeviceContext& device) : device_(device) {}
  RowStage(const RowStage&) = delete;
  RowStage& operator=(const RowStage&) = delete;
  ~RowStage();

  // Writes the values first .. first + count: value first + i to row at[i] of values [., stride]
  // and has_embedx, or to row i if `at` is empty.
  using Fill = std::function<absl::Status(size_t first, size_t count, absl::Span<const Row> at,
                                          float* values, uint8_t* has_embedx)>;
  // Writes all rows of `table`, and its keys. Waits until they are copied.
  absl::Status Write(const Fill& fill, PassTable& table);
  // Writes value i to row rows[i]. rows: distinct.
  absl::Status Write(absl::Span<const Row> rows, const Fill& fill, PassTable& table);

  using Take = std::function<absl::Status(size_t first, size_t count, const float* values,
                                          const uint8_t* has_embedx)>;
  // Passes all rows of `table` to `take`, in order. The device must have finished updating them.
  absl::Status Read(const PassTable& table, const Take& take);
  // As Take, but value first + i is in row at[i] of values [., stride] and has_embedx, or in row i
  // if `at` is empty.
  using TakeRows = std::function<absl::Status(size_t first, size_t count, absl::Span<const Row> at,
                                              const float* values, const uint8_t* has_embedx)>;
  // The same for the rows `rows` of `table`: value i is that of row rows[i]. A GPU gathers the rows
  // of a chunk, so that they leave it in one copy.
  absl::Status Read(const PassTable& table, absl::Span<const Row> rows, const TakeRows& take);

  // Copies row from_rows[i] of `from` to row to_rows[i] of `to`. The device must have finished
  // updating `from`.
  absl::Status Carry(const PassTable& from, absl::Span<const Row> from_rows,
                     absl::Span<const Row> to_rows, PassTable& to);

 private:
  // A chunk of rows in host or device memory.
  struct Chunk {
    Memory memory;
    float* values = nullptr;
    Row* rows[2] = {};
    uint8_t* has_embedx = nullptr;
  };

  // Creates the stream, the events, and chunks for the rows of this table.
  absl::Status MakeRoom(const PassTable& table);
  absl::Status TakeChunk(MemoryPlace place, size_t row_floats, Chunk* chunk);
  absl::Status WriteInChunks(absl::Span<const Row> rows, size_t count, const Fill& fill,
                             PassTable& table);
  absl::Status ReadInChunks(const PassTable& table, absl::Span<const Row> rows, size_t count,
                            const TakeRows& take);

  DeviceContext& device_;
  std::vector<Stream> streams_;  // one
  std::vector<Event> events_;    // by pinned chunk: its copy is complete
  size_t chunk_rows_ = 0, chunk_floats_ = 0;
  std::array<Chunk, 2> pinned_;
  Chunk there_;  // in device memory; only on a GPU
};

}  // namespace cistern::model
