#include "worker/model/batch/row_stage.h"

#include <algorithm>

#include "cuda/op/embedding/copy_rows.h"

namespace cistern::model {
namespace {

constexpr size_t kPartAlignment = 256;

size_t RoundedPart(size_t bytes) {
  return (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
}

}  // namespace

RowStage::~RowStage() {
  for (Stream& stream : streams_) stream.Wait().IgnoreError();  // copies in flight use the chunks
}

absl::Status RowStage::TakeChunk(MemoryPlace place, size_t row_floats, Chunk* chunk) {
  const size_t values = RoundedPart(chunk_rows_ * row_floats * sizeof(float));
  const size_t rows = RoundedPart(chunk_rows_ * sizeof(Row));
  chunk->memory = Memory();
  CISTERN_ASSIGN_OR_RETURN(
      chunk->memory, device_.pool().Take(place, values + 2 * rows + chunk_rows_, "row chunks"));
  char* at = static_cast<char*>(chunk->memory.data());
  chunk->values = reinterpret_cast<float*>(at);
  chunk->rows[0] = reinterpret_cast<Row*>(at + values);
  chunk->rows[1] = reinterpret_cast<Row*>(at + values + rows);
  chunk->has_embedx = reinterpret_cast<uint8_t*>(at + values + 2 * rows);
  return absl::OkStatus();
}

absl::Status RowStage::MakeRoom(const PassTable& table) {
  if (streams_.empty()) {
    while (events_.size() < pinned_.size()) {
      CISTERN_ASSIGN_OR_RETURN(Event event, Event::Create(device_.kind()));
      events_.push_back(std::move(event));
    }
    CISTERN_ASSIGN_OR_RETURN(Stream stream, device_.NewStream(StreamPriority::kBackground));
    streams_.push_back(std::move(stream));
  }
  // Pinning is slow, therefore a small table gets small chunks.
  const size_t row_bytes = table.stride() * sizeof(float) + 2 * sizeof(Row) + 1;
  const size_t most = std::max<size_t>(1, kChunkBytes / row_bytes);
  const size_t wanted = std::min(most, std::max<size_t>(1, table.rows()));
  if (table.stride() == chunk_floats_ && wanted <= chunk_rows_) return absl::OkStatus();
  CISTERN_RETURN_IF_ERROR(streams_.front().Wait());
  chunk_floats_ = 0;
  chunk_rows_ = wanted;
  for (Chunk& chunk : pinned_) {
    CISTERN_RETURN_IF_ERROR(TakeChunk(MemoryPlace::kPinned, table.stride(), &chunk));
  }
  CISTERN_RETURN_IF_ERROR(TakeChunk(MemoryPlace::kDevice, table.stride(), &there_));
  chunk_floats_ = table.stride();
  return absl::OkStatus();
}

absl::Status RowStage::Write(const Fill& fill, PassTable& table) {
  if (table.rows() == 0) return absl::OkStatus();
  if (device_.kind() == DeviceKind::kCpu) {
    return fill(0, table.rows(), {}, table.values(), table.has_embedx());
  }
  return WriteInChunks({}, table.rows(), fill, table);
}

absl::Status RowStage::Write(absl::Span<const Row> rows, const Fill& fill, PassTable& table) {
  if (device_.kind() == DeviceKind::kCpu) {
    if (rows.empty()) return absl::OkStatus();
    return fill(0, rows.size(), rows, table.values(), table.has_embedx());
  }
  return WriteInChunks(rows, rows.size(), fill, table);
}

// On a GPU. rows: the destination rows; empty: rows 0 .. count - 1.
absl::Status RowStage::WriteInChunks(absl::Span<const Row> rows, size_t count, const Fill& fill,
                                     PassTable& table) {
  CISTERN_RETURN_IF_ERROR(MakeRoom(table));
  Stream& stream = streams_.front();
  CISTERN_RETURN_IF_ERROR(table.BringKeys(stream));
  const size_t row_bytes = table.stride() * sizeof(float);
  for (size_t first = 0, turn = 0; first < count; first += chunk_rows_, turn = 1 - turn) {
    const size_t size = std::min(chunk_rows_, count - first);
    CISTERN_RETURN_IF_ERROR(events_[turn].Wait());
    const Chunk& host = pinned_[turn];
    CISTERN_RETURN_IF_ERROR(fill(first, size, {}, host.values, host.has_embedx));
    if (rows.empty()) {
      CopyToDevice(host.values, table.values() + first * table.stride(), size * row_bytes, stream);
      CopyToDevice(host.has_embedx, table.has_embedx() + first, size, stream);
    } else {
      std::copy_n(rows.data() + first, size, host.rows[0]);
      CopyToDevice(host.values, there_.values, size * row_bytes, stream);
      CopyToDevice(host.rows[0], there_.rows[0], size * sizeof(Row), stream);
      CopyToDevice(host.has_embedx, there_.has_embedx, size, stream);
      op::CopyRows(there_.values, nullptr, table.values(), there_.rows[0], row_bytes, size, stream);
      op::CopyRows(there_.has_embedx, nullptr, table.has_embedx(), there_.rows[0], 1, size, stream);
    }
    events_[turn].Record(stream);
  }
  return stream.Wait();
}

absl::Status RowStage::Read(const PassTable& table, const Take& take) {
  if (table.rows() == 0) return absl::OkStatus();
  if (device_.kind() == DeviceKind::kCpu) {
    return take(0, table.rows(), table.values(), table.has_embedx());
  }
  return ReadInChunks(
      table, {}, table.rows(),
      [&](size_t first, size_t count, absl::Span<const Row>, const float* values,
          const uint8_t* has_embedx) { return take(first, count, values, has_embedx); });
}

absl::Status RowStage::Read(const PassTable& table, absl::Span<const Row> rows,
                            const TakeRows& take) {
  if (rows.empty()) return absl::OkStatus();
  if (device_.kind() == DeviceKind::kCpu) {
    return take(0, rows.size(), rows, table.values(), table.has_embedx());
  }
  return ReadInChunks(table, rows, rows.size(), take);
}

// On a GPU. rows: the rows to read; empty: rows 0 .. count - 1.
absl::Status RowStage::ReadInChunks(const PassTable& table, absl::Span<const Row> rows,
                                    size_t count, const TakeRows& take) {
  CISTERN_RETURN_IF_ERROR(MakeRoom(table));
  Stream& stream = streams_.front();
  const size_t row_bytes = table.stride() * sizeof(float);
  const auto size_at = [&](size_t first) { return std::min(chunk_rows_, count - first); };
  const auto copy = [&](size_t first, size_t turn) -> absl::Status {
    const Chunk& host = pinned_[turn];
    const size_t size = size_at(first);
    const float* values = table.values() + first * table.stride();
    const uint8_t* has_embedx = table.has_embedx() + first;
    if (!rows.empty()) {
      CISTERN_RETURN_IF_ERROR(events_[turn].Wait());  // the last copy of these places
      std::copy_n(rows.data() + first, size, host.rows[0]);
      CopyToDevice(host.rows[0], there_.rows[0], size * sizeof(Row), stream);
      op::CopyRows(table.values(), there_.rows[0], there_.values, nullptr, row_bytes, size, stream);
      op::CopyRows(table.has_embedx(), there_.rows[0], there_.has_embedx, nullptr, 1, size, stream);
      values = there_.values;
      has_embedx = there_.has_embedx;
    }
    CopyToHost(values, host.values, size * row_bytes, stream);
    CopyToHost(has_embedx, host.has_embedx, size, stream);
    events_[turn].Record(stream);
    return absl::OkStatus();
  };
  CISTERN_RETURN_IF_ERROR(copy(0, 0));
  for (size_t first = 0, turn = 0; first < count; first += chunk_rows_, turn = 1 - turn) {
    if (first + chunk_rows_ < count) CISTERN_RETURN_IF_ERROR(copy(first + chunk_rows_, 1 - turn));
    CISTERN_RETURN_IF_ERROR(events_[turn].Wait());
    CISTERN_RETURN_IF_ERROR(stream.status());
    CISTERN_RETURN_IF_ERROR(
        take(first, size_at(first), {}, pinned_[turn].values, pinned_[turn].has_embedx));
  }
  return stream.Wait();
}

absl::Status RowStage::Carry(const PassTable& from, absl::Span<const Row> from_rows,
                             absl::Span<const Row> to_rows, PassTable& to) {
  if (from_rows.empty()) return absl::OkStatus();
  if (device_.kind() == DeviceKind::kCpu) {
    Stream cpu;
    op::CopyRows(from.values(), from_rows.data(), to.values(), to_rows.data(),
                 to.stride() * sizeof(float), from_rows.size(), cpu);
    op::CopyRows(from.has_embedx(), from_rows.data(), to.has_embedx(), to_rows.data(), 1,
                 from_rows.size(), cpu);
    return absl::OkStatus();
  }
  CISTERN_RETURN_IF_ERROR(MakeRoom(to));
  Stream& stream = streams_.front();
  for (size_t first = 0, turn = 0; first < from_rows.size();
       first += chunk_rows_, turn = 1 - turn) {
    const size_t size = std::min(chunk_rows_, from_rows.size() - first);
    CISTERN_RETURN_IF_ERROR(events_[turn].Wait());
    const absl::Span<const Row> lists[2] = {from_rows.subspan(first, size),
                                            to_rows.subspan(first, size)};
    for (size_t i = 0; i < 2; ++i) {
      std::copy(lists[i].begin(), lists[i].end(), pinned_[turn].rows[i]);
      CopyToDevice(pinned_[turn].rows[i], there_.rows[i], size * sizeof(Row), stream);
    }
    op::CopyRows(from.values(), there_.rows[0], to.values(), there_.rows[1],
                 to.stride() * sizeof(float), size, stream);
    op::CopyRows(from.has_embedx(), there_.rows[0], to.has_embedx(), there_.rows[1], 1, size,
                 stream);
    events_[turn].Record(stream);
  }
  return stream.Wait();
}

}  // namespace cistern::model
