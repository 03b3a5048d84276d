#include "worker/pass/batch_stage.h"

#include <algorithm>
#include <cstring>

#include "cuda/op/segments.h"
#include "worker/pass/device_keys.h"

namespace cistern {
namespace {

constexpr size_t kAlignment = 16;  // of each array: what the widest load of a kernel wants

// The arrays of a batch one after the other: `visit(values, view)` for each vector of it and the
// pointer to it in `view`.
template <typename Visit>
void ForEachArray(const Batch& batch, BatchView* view, const Visit& visit) {
  visit(batch.label, &view->label);
  visit(batch.dense, &view->dense);
  const auto visit_sparse = [&visit](const SparseBatch& from, SparseView* to) {
    visit(from.offsets, &to->offsets);
    visit(from.rows, &to->rows);
    visit(from.keys, &to->keys);
    visit(from.segment_rows, &to->segment_rows);
    visit(from.segment_offsets, &to->segment_offsets);
    visit(from.segment_outputs, &to->segment_outputs);
  };
  for (size_t i = 0; i < batch.sparse.size(); ++i) visit_sparse(batch.sparse[i], &view->sparse[i]);
  for (size_t i = 0; i < batch.exchanged.size(); ++i) {
    const ExchangedRows& from = batch.exchanged[i];
    ExchangeView& to = view->exchanged[i];
    visit_sparse(from.served, &to.served);
    visit(from.occurrence_offsets, &to.occurrence_offsets);
    visit(from.occurrences, &to.occurrences);
  }
}

BatchView SizesOf(const Batch& batch) {
  BatchView view;
  view.size = batch.size;
  view.label_dim = batch.size == 0 ? 0 : batch.label.size() / batch.size;
  view.all = batch.exchanged.empty() ? batch.size : batch.all;
  view.first = batch.exchanged.empty() ? 0 : batch.first;
  for (const SparseBatch& sparse : batch.sparse) {
    view.sparse.emplace_back().distinct = sparse.segment_rows.size();
  }
  for (const ExchangedRows& rows : batch.exchanged) {
    ExchangeView& to = view.exchanged.emplace_back();
    to.taken = rows.taken;
    to.given = rows.given;
    to.served.distinct = rows.served.segment_rows.size();
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

// Of all arrays.
size_t BytesOf(const Batch& batch) {
  BatchView view = SizesOf(batch);
  size_t bytes = 0;
  ForEachArray(batch, &view,
               [&bytes](const auto& values, auto*) { bytes += RoundedBytes(values); });
  return bytes;
}

// A large batch has tens of megabytes, and is wanted within a step of a few milliseconds.
void CopyOnAllCores(const void* from, void* to, size_t bytes) {
  constexpr size_t kPiece = size_t{1} << 20;
  const size_t pieces = (bytes + kPiece - 1) / kPiece;
#pragma omp parallel for if (pieces > 1)
  for (size_t i = 0; i < pieces; ++i) {
    std::memcpy(static_cast<char*>(to) + i * kPiece, static_cast<const char*>(from) + i * kPiece,
                std::min(kPiece, bytes - i * kPiece));
  }
}

BatchView ViewOnHost(const Batch& batch) {
  BatchView view = SizesOf(batch);
  ForEachArray(batch, &view, [](const auto& values, auto* at) { *at = values.data(); });
  return view;
}

}  // namespace

// What is still on its way uses the memory of the places.
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
  CISTERN_ASSIGN_OR_RETURN(Stream copies, device_.NewStream());
  copies_.push_back(std::move(copies));
  return absl::OkStatus();
}

bool BatchStage::HasRoom(const Batch& batch) const {
  if (device_.kind() == DeviceKind::kCpu) return true;
  const size_t bytes = BytesOf(batch);
  return places_[next_].pinned.bytes() >= bytes && places_[next_].there.bytes() >= bytes;
}

absl::Status BatchStage::MakeRoom(MemoryPlace kind, size_t bytes, Place* place, Memory* memory) {
  if (memory->bytes() >= bytes) return absl::OkStatus();
  for (Event& event : place->events) CISTERN_RETURN_IF_ERROR(event.Wait());
  *memory = Memory();
  // Batches differ by a little.
  CISTERN_ASSIGN_OR_RETURN(*memory, device_.pool().Take(kind, bytes + bytes / 4, "batches"));
  return absl::OkStatus();
}

absl::Status BatchStage::Begin(const Batch& batch, Use use) {
  if (device_.kind() == DeviceKind::kCpu) return absl::OkStatus();
  CISTERN_RETURN_IF_ERROR(MakeStreams());
  Place& place = places_[next_];
  place.begun = nullptr;
  BatchView view = SizesOf(batch);
  const size_t bytes = BytesOf(batch);
  CISTERN_RETURN_IF_ERROR(place.events[kCopied].Wait());  // the host writes there
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
  place.events[kUsed].LetWait(copies);
  CopyToDevice(place.pinned.data(), place.there.data(), bytes, copies);
  place.view = std::move(view);
  CISTERN_RETURN_IF_ERROR(MakeRows(batch, use, &place));
  place.events[kCopied].Record(copies);
  CISTERN_RETURN_IF_ERROR(copies.status());
  place.begun = &batch;
  next_ = 1 - next_;
  return absl::OkStatus();
}

absl::Status BatchStage::MakeRows(const Batch& batch, Use use, Place* place) {
  size_t bytes = 0, scratch = 0;
  Stream& copies = copies_.front();
  for (const SparseBatch& sparse : batch.sparse) {
    if (sparse.finder == nullptr) continue;
    const size_t count = sparse.keys.size();
    bytes += Rounded(sizeof(uint32_t)) + 3 * Rounded(count * sizeof(Row)) +
             Rounded((count + 1) * sizeof(uint32_t));
    if (use == Use::kPredict) continue;
    scratch = std::max(scratch, op::MakeSegmentsScratchBytes(count, copies));
  }
  if (bytes == 0) return absl::OkStatus();
  CISTERN_RETURN_IF_ERROR(MakeRoom(MemoryPlace::kDevice, bytes, place, &place->made));
  CISTERN_RETURN_IF_ERROR(MakeRoom(MemoryPlace::kPinned, batch.sparse.size() * sizeof(uint32_t),
                                   place, &place->distinct));
  if (scratch_.bytes() < scratch) {
    CISTERN_RETURN_IF_ERROR(copies.Wait());
    CISTERN_RETURN_IF_ERROR(MakeRoom(MemoryPlace::kDevice, scratch, place, &scratch_));
  }
  char* end = static_cast<char*>(place->made.data());
  const auto take = [&end](size_t count) {
    auto* taken = reinterpret_cast<uint32_t*>(end);
    end += Rounded(count * sizeof(uint32_t));
    return taken;
  };
  for (size_t i = 0; i < batch.sparse.size(); ++i) {
    const SparseBatch& sparse = batch.sparse[i];
    if (sparse.finder == nullptr) continue;
    SparseView& view = place->view.sparse[i];
    const size_t count = sparse.keys.size();
    Row* rows = take(count);
    sparse.finder->Find(view.keys, count, rows, copies);
    view.rows = rows;
    if (use == Use::kPredict) continue;
    Row* segment_rows = take(count);
    uint32_t *offsets = take(count + 1), *outputs = take(count), *distinct = take(1);
    op::MakeSegments(view.offsets, rows, sparse.offsets.size() - 1, count, segment_rows, offsets,
                     outputs, distinct, scratch_.data(), copies);
    CopyToHost(distinct, static_cast<uint32_t*>(place->distinct.data()) + i, sizeof(uint32_t),
               copies);
    view.segment_rows = segment_rows;
    view.segment_offsets = offsets;
    view.segment_outputs = outputs;
  }
  return absl::OkStatus();
}

absl::StatusOr<BatchView> BatchStage::View(const Batch& batch, Use use) {
  if (device_.kind() == DeviceKind::kCpu) return ViewOnHost(batch);
  if (places_[1 - next_].begun != &batch) CISTERN_RETURN_IF_ERROR(Begin(batch, use));
  viewed_ = 1 - next_;
  Place& place = places_[viewed_];
  place.begun = nullptr;
  place.events[kCopied].LetWait(device_.stream());
  for (size_t i = 0; i < batch.sparse.size(); ++i) {
    if (batch.sparse[i].finder == nullptr || use == Use::kPredict) continue;
    CISTERN_RETURN_IF_ERROR(place.events[kCopied].Wait());  // it was begun a step ago
    place.view.sparse[i].distinct = static_cast<const uint32_t*>(place.distinct.data())[i];
  }
  return place.view;
}

void BatchStage::Release() {
  if (device_.kind() == DeviceKind::kCpu) return;
  places_[viewed_].events[kUsed].Record(device_.stream());
}

}  // namespace cistern
