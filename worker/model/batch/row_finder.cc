#include "worker/model/batch/row_finder.h"

#include <algorithm>

#include "cuda/op/key/compact_rows.h"
#include "worker/model/batch/device_keys.h"

namespace cistern::model {

absl::Status MakeKeyRoom(size_t bytes, DeviceContext& device, Memory* memory) {
  if (memory->bytes() >= bytes) return absl::OkStatus();
  *memory = Memory();
  CISTERN_ASSIGN_OR_RETURN(*memory,
                           device.pool().Take(MemoryPlace::kDevice, bytes + bytes / 2, "keys"));
  return absl::OkStatus();
}

absl::Status RowFinder::FindOnDevice(const DeviceKeys& keys, absl::Span<const Key> wanted) {
  CISTERN_RETURN_IF_ERROR(MakeKeyRoom(wanted.size() * sizeof(Key), device_, &keys_));
  CISTERN_RETURN_IF_ERROR(MakeKeyRoom(wanted.size() * sizeof(Row), device_, &rows_));
  CopyToDevice(wanted.data(), keys_.data(), wanted.size() * sizeof(Key), stream_);
  keys.Find(static_cast<const Key*>(keys_.data()), wanted.size(), static_cast<Row*>(rows_.data()),
            stream_);
  return stream_.status().ok() ? absl::OkStatus() : stream_.Wait();  // which says what failed
}

absl::StatusOr<std::vector<Row>> RowFinder::Find(const DeviceKeys& keys,
                                                 absl::Span<const Key> wanted) {
  constexpr size_t kPiece = size_t{1} << 20;
  std::vector<Row> places(wanted.size());
  for (size_t first = 0; first < wanted.size(); first += kPiece) {
    const absl::Span<const Key> some = wanted.subspan(first, kPiece);
    CISTERN_RETURN_IF_ERROR(FindOnDevice(keys, some));
    CopyToHost(rows_.data(), places.data() + first, some.size() * sizeof(Row), stream_);
    CISTERN_RETURN_IF_ERROR(stream_.Wait());
  }
  return places;
}

absl::Status RowFinder::FindRows(const DeviceKeys& keys, data::HostSparseBatch* batch) {
  const size_t count = batch->keys.size();
  const size_t scratch_bytes = op::CompactRowsScratchBytes(count, stream_);
  CISTERN_RETURN_IF_ERROR(MakeKeyRoom(count * sizeof(Row), device_, &distinct_rows_));
  CISTERN_RETURN_IF_ERROR(MakeKeyRoom(sizeof(uint32_t), device_, &distinct_));
  CISTERN_RETURN_IF_ERROR(MakeKeyRoom(scratch_bytes, device_, &scratch_));
  CISTERN_RETURN_IF_ERROR(FindOnDevice(keys, batch->keys));
  op::CompactRows(static_cast<Row*>(rows_.data()), count, static_cast<Row*>(distinct_rows_.data()),
                  static_cast<uint32_t*>(distinct_.data()), scratch_.data(), stream_);
  uint32_t distinct = 0;
  batch->rows.resize(count);
  CopyToHost(distinct_.data(), &distinct, sizeof(distinct), stream_);
  CopyToHost(rows_.data(), batch->rows.data(), count * sizeof(Row), stream_);
  CISTERN_RETURN_IF_ERROR(stream_.Wait());
  batch->segment_rows.resize(distinct);
  CopyToHost(distinct_rows_.data(), batch->segment_rows.data(), distinct * sizeof(Row), stream_);
  return stream_.Wait();
}

}  // namespace cistern::model
