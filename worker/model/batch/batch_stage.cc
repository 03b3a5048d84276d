#include "worker/model/batch/batch_stage.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "common/base/thread_limit.h"
#include "cuda/op/key/segments.h"
#include "worker/model/batch/device_keys.h"

namespace cistern::model {
namespace {

constexpr size_t kAlignment = 16;  // of each array: that of the widest load in a kernel

// Calls visit(values, pointer) for each vector of the batch and the pointer to it in `view`.
template <typename Visit>
void ForEachArray(const data::HostBatch& batch, DeviceBatch* view, const Visit& visit) {
  visit(batch.label, &view->label);
  if (!batch.weight.empty()) visit(batch.weight, &view->weight);
  visit(batch.dense, &view->dense);
  const auto visit_sparse = [&visit](const data::HostSparseBatch& from, DeviceSparseBatch* to) {
    visit(from.offsets, &to->offsets);
    visit(from.rows, &to->rows);
    visit(from.keys, &to->keys);
    visit(from.segment_rows, &to->segment_rows);
    visit(from.segment_offsets, &to->segment_offsets);
    visit(from.segment_outputs, &to->segment_outputs);
    if (from.weights.empty()) return;
    visit(from.weights, &to->weights);
    visit(from.shares, &to->shares);
    visit(from.segment_places, &to->segment_places);
  };
  for (size_t i = 0; i < batch.sparse.size(); ++i) visit_sparse(batch.sparse[i], &view->sparse[i]);
  for (size_t i = 0; i < batch.exchanged.size(); ++i) {
    const data::HostExchange& from = batch.exchanged[i];
    DeviceExchange& to = view->exchanged[i];
    visit_sparse(from.served, &to.served);
    visit(from.occurrence_offsets, &to.occurrence_offsets);
    visit(from.occurrences, &to.occurrences);
  }
}

void SetSizes(const data::HostSparseBatch& from, DeviceSparseBatch* to) {
  to->occurrences = from.finder != nullptr ? from.keys.size() : from.rows.size();
  to->distinct = from.segment_rows.size();
}

DeviceBatch SizesOf(const data::HostBatch& batch) {
  DeviceBatch view;
  view.size = batch.size;
  view.label_dim = batch.size == 0 ? 0 : batch.label.size() / batch.size;
  view.all = batch.exchanged.empty() ? batch.size : batch.all;
  view.first = batch.exchanged.empty() ? 0 : batch.first;
  for (const data::HostSparseBatch& sparse : batch.sparse)
    SetSizes(sparse, &view.sparse.emplace_back());
  for (const data::HostExchange& rows : batch.exchanged) {
    DeviceExchange& to = view.exchanged.emplace_back();
    to.taken = rows.taken;
    to.given = rows.given;
    SetSizes(rows.served, &to.served);
  }
  return view;
}

size_t Rounded(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}
template <typename T>
size_t RoundedBytes(const std::vector<T>& values) {
  return Rounded(values.size() * sizeof(T));
}

// The size of all arrays, each rounded up to kAlignment.
size_t BytesOf(const data::HostBatch& batch) {
  DeviceBatch view = SizesOf(batch);
  size_t bytes = 0;
  ForEachArray(batch, &view,
               [&bytes](const auto& values, auto*) { bytes += RoundedBytes(values); });
  return bytes;
}

// The arrays that the device computes for one input, or for the rows that other workers take from
// it.
struct MadeArrays {
  size_t occurrences = 0;
  bool rows = false, segments = false;

  size_t bytes() const {
    size_t bytes = rows ? Rounded(occurrences * sizeof(Row)) : 0;
    if (!segments) return bytes;
    bytes += Rounded(sizeof(uint32_t)) + Rounded((occurrences + 1) * sizeof(uint32_t));
    return bytes + 2 * Rounded(occurrences * sizeof(uint32_t));
  }
};

// Calls visit(arrays, sparse, view) for each input, then for the rows that other workers take.
template <typename Visit>
void ForEachMade(const data::HostBatch& batch, BatchStage::Use use, DeviceBatch* view,
                 const Visit& visit) {
  const auto visit_one = [&](const data::HostSparseBatch& sparse, DeviceSparseBatch* to) {
    MadeArrays made;
    made.rows = sparse.finder != nullptr;
    made.occurrences = made.rows ? sparse.keys.size() : sparse.rows.size();
    made.segments =
        use == BatchStage::Use::kTrain && (sparse.finder != nullptr || sparse.segments_there);
    visit(made, sparse, to);
  };
  for (size_t i = 0; i < batch.sparse.size(); ++i) visit_one(batch.sparse[i], &view->sparse[i]);
  for (size_t i = 0; i < batch.exchanged.size(); ++i) {
    visit_one(batch.exchanged[i].served, &view->exchanged[i].served);
  }
}

// The memory that the computed arrays of a batch need.
struct MadeSizes {
  size_t bytes = 0, scratch = 0, numbers = 0;
};
MadeSizes SizesOfMade(const data::HostBatch& batch, BatchStage::Use use, Stream& stream) {
  MadeSizes sizes;
  DeviceBatch view = SizesOf(batch);
  ForEachMade(batch, use, &view,
              [&](const MadeArrays& made, const data::HostSparseBatch&, DeviceSparseBatch*) {
                sizes.bytes += made.bytes();
                sizes.numbers += sizeof(uint32_t);
                if (!made.segments) return;
                sizes.scratch =
                    std::max(sizes.scratch, op::MakeSegmentsScratchBytes(made.occurrences, stream));
              });
  return sizes;
}

// Copies with all cores: a large batch has tens of megabytes, and a step takes a few milliseconds.
void CopyOnAllCores(const void* from, void* to, size_t bytes) {
  constexpr size_t kPiece = size_t{1} << 20;
  const size_t pieces = (bytes + kPiece - 1) / kPiece;
#pragma omp parallel for num_threads(LoopThreads()) if (pieces > 1)
  for (size_t i = 0; i < pieces; ++i) {
    std::memcpy(static_cast<char*>(to) + i * kPiece, static_cast<const char*>(from) + i * kPiece,
                std::min(kPiece, bytes - i * kPiece));
  }
}

DeviceBatch ViewOnHost(const data::HostBatch& batch) {
  DeviceBatch view = SizesOf(batch);
  ForEachArray(batch, &view, [](const auto& values, auto* at) { *at = values.data(); });
  return view;
}

}  // namespace

// Waits, because copies in flight use the memory of the places.
BatchStage::~BatchStage() {
  for (Stream& copies : copies_) copies.Wait().IgnoreError();
  if (!copies_.empty()) device_.stream().Wait().IgnoreError();
}

absl::Status BatchStage::MakeStreams() {
  if (!copies_.empty()) return absl::OkStatus();
  for (Place& place : places_) {
    while (place.events.size() < 2) {
      CISTERN_ASSIGN_OR_RETURN(Event event, Event::Create(device_.kind()));
      place.events.push_back(std::move(event));
    }
  }
  CISTERN_ASSIGN_OR_RETURN(Stream copies, device_.NewStream(StreamPriority::kBackground));
  copies_.push_back(std::move(copies));
  return absl::OkStatus();
}

bool BatchStage::HasRoom(absl::Span<const data::HostBatch* const> batches) const {
  if (device_.kind() == DeviceKind::kCpu) return true;
  for (size_t i = begun_.size(); i < batches.size(); ++i) {
    const size_t bytes = BytesOf(*batches[i]);
    const MadeSizes made = SizesOfMade(*batches[i], Use::kTrain, device_.stream());
    const Place& place = places_[(next_ + i - begun_.size()) % places_.size()];
    if (place.pinned.bytes() < bytes || place.there.bytes() < bytes ||
        scratch_.bytes() < made.scratch) {
      return false;
    }
    if (made.bytes == 0) continue;
    if (place.made.bytes() < made.bytes || place.distinct.bytes() < made.numbers) return false;
  }
  return true;
}

absl::Status BatchStage::MakeRoom(MemoryPlace kind, size_t bytes, Place* place, Memory* memory) {
  if (memory->bytes() >= bytes) return absl::OkStatus();
  for (Event& event : place->events) CISTERN_RETURN_IF_ERROR(event.Wait());
  *memory = Memory();
  // The margin avoids reallocation: batches differ a little in size.
  CISTERN_ASSIGN_OR_RETURN(*memory, device_.pool().Take(kind, bytes + bytes / 4, "batches"));
  return absl::OkStatus();
}

absl::Status BatchStage::Begin(absl::Span<const data::HostBatch* const> batches, Use use) {
  if (device_.kind() == DeviceKind::kCpu) return absl::OkStatus();
  CISTERN_CHECK(batches.size() <= kAhead);
  for (size_t i = 0; i < batches.size(); ++i) {
    if (i < begun_.size() && begun_[i] == batches[i]->number.value()) continue;
    Forget(i);
    CISTERN_RETURN_IF_ERROR(BeginOne(*batches[i], use));
  }
  return absl::OkStatus();
}

void BatchStage::Forget(size_t kept) {
  while (begun_.size() > kept) {
    begun_.pop_back();
    next_ = (next_ + places_.size() - 1) % places_.size();
  }
}

absl::Status BatchStage::BeginOne(const data::HostBatch& batch, Use use) {
  CISTERN_RETURN_IF_ERROR(MakeStreams());
  Place& place = places_[next_];
  DeviceBatch view = SizesOf(batch);
  const size_t bytes = BytesOf(batch);
  CISTERN_RETURN_IF_ERROR(place.events[kCopied].Wait());  // before the host overwrites `pinned`
  CISTERN_RETURN_IF_ERROR(MakeRoom(MemoryPlace::kPinned, bytes, &place, &place.pinned));
  CISTERN_RETURN_IF_ERROR(MakeRoom(MemoryPlace::kDevice, bytes, &place, &place.there));
  size_t end = 0;
  ForEachArray(batch, &view, [&place, &end](const auto& values, auto* at) {
    CopyOnAllCores(values.data(), static_cast<char*>(place.pinned.data()) + end,
                   values.size() * sizeof(values[0]));
    *at = reinterpret_cast<decltype(values.data())>(static_cast<char*>(place.there.data()) + end);
    end += RoundedBytes(values);
  });
  Stream& copies = copies_.front();
  place.events[kUsed].MakeWait(copies);
  CopyToDevice(place.pinned.data(), place.there.data(), bytes, copies);
  place.view = std::move(view);
  CISTERN_RETURN_IF_ERROR(Make(batch, use, &place));
  place.events[kCopied].Record(copies);
  CISTERN_RETURN_IF_ERROR(copies.status());
  begun_.push_back(batch.number.value());
  next_ = (next_ + 1) % places_.size();
  return absl::OkStatus();
}

absl::Status BatchStage::Make(const data::HostBatch& batch, Use use, Place* place) {
  Stream& copies = copies_.front();
  const MadeSizes sizes = SizesOfMade(batch, use, copies);
  if (sizes.bytes == 0) return absl::OkStatus();
  CISTERN_RETURN_IF_ERROR(MakeRoom(MemoryPlace::kDevice, sizes.bytes, place, &place->made));
  CISTERN_RETURN_IF_ERROR(MakeRoom(MemoryPlace::kPinned, sizes.numbers, place, &place->distinct));
  if (scratch_.bytes() < sizes.scratch) {
    CISTERN_RETURN_IF_ERROR(copies.Wait());
    CISTERN_RETURN_IF_ERROR(MakeRoom(MemoryPlace::kDevice, sizes.scratch, place, &scratch_));
  }
  char* end = static_cast<char*>(place->made.data());
  const auto take = [&end](size_t count) {
    auto* taken = reinterpret_cast<uint32_t*>(end);
    end += Rounded(count * sizeof(uint32_t));
    return taken;
  };
  auto* number = static_cast<uint32_t*>(place->distinct.data());
  const auto make = [&](const MadeArrays& made, const data::HostSparseBatch& sparse,
                        DeviceSparseBatch* view) {
    const size_t count = made.occurrences;
    uint32_t* const host_distinct = number++;
    if (made.rows) {
      Row* rows = take(count);
      sparse.finder->Find(view->keys, count, rows, copies);
      view->rows = rows;
    }
    if (!made.segments) return;
    Row* segment_rows = take(count);
    uint32_t *offsets = take(count + 1), *outputs = take(count), *distinct = take(1);
    op::MakeSegments(view->offsets, view->rows, sparse.offsets.size() - 1, count, segment_rows,
                     offsets, outputs, distinct, scratch_.data(), copies);
    CopyToHost(distinct, host_distinct, sizeof(uint32_t), copies);
    view->segment_rows = segment_rows;
    view->segment_offsets = offsets;
    view->segment_outputs = outputs;
  };
  ForEachMade(batch, use, &place->view, make);
  return absl::OkStatus();
}

absl::StatusOr<DeviceBatch> BatchStage::View(const data::HostBatch& batch, Use use) {
  if (device_.kind() == DeviceKind::kCpu) return ViewOnHost(batch);
  if (begun_.empty() || begun_.front() != batch.number.value()) {
    Forget(0);
    CISTERN_RETURN_IF_ERROR(BeginOne(batch, use));
  }
  viewed_ = (next_ + places_.size() - begun_.size()) % places_.size();
  begun_.pop_front();
  Place& place = places_[viewed_];
  place.events[kCopied].MakeWait(device_.stream());
  // The host must learn the number of segments that the device made. The wait is short: the work
  // was enqueued two steps ago and had to wait only for the previous user of this place.
  bool any = false;
  ForEachMade(batch, use, &place.view,
              [&any](const MadeArrays& made, const data::HostSparseBatch&, DeviceSparseBatch*) {
                any = any || made.segments;
              });
  if (!any) return place.view;
  CISTERN_RETURN_IF_ERROR(place.events[kCopied].Wait());
  const auto* number = static_cast<const uint32_t*>(place.distinct.data());
  ForEachMade(
      batch, use, &place.view,
      [&number](const MadeArrays& made, const data::HostSparseBatch&, DeviceSparseBatch* view) {
        if (made.segments) view->distinct = *number;
        ++number;
      });
  return place.view;
}

void BatchStage::Release() {
  if (device_.kind() == DeviceKind::kCpu) return;
  places_[viewed_].events[kUsed].Record(device_.stream());
}

}  // namespace cistern::model
