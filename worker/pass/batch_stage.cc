#include "worker/pass/batch_stage.h"

#include <cstring>

namespace cistern {
namespace {

constexpr size_t kAlignment = 16;  // of each array: what the widest load of a kernel wants

// The arrays of a batch one after the other: `visit(values, view)` for each vector of it and the
// pointer to it in `view`.
template <typename Visit>
void ForEachArray(const Batch& batch, BatchView* view, const Visit& visit) {
  visit(batch.label, &view->label);
  visit(batch.dense, &view->dense);
  for (size_t i = 0; i < batch.sparse.size(); ++i) {
    const SparseBatch& from = batch.sparse[i];
    SparseView& to = view->sparse[i];
    visit(from.offsets, &to.offsets);
    visit(from.rows, &to.rows);
    visit(from.segment_rows, &to.segment_rows);
    visit(from.segment_offsets, &to.segment_offsets);
    visit(from.segment_outputs, &to.segment_outputs);
  }
}

BatchView SizesOf(const Batch& batch) {
  BatchView view;
  view.size = batch.size;
  view.label_dim = batch.size == 0 ? 0 : batch.label.size() / batch.size;
  for (const SparseBatch& sparse : batch.sparse) {
    view.sparse.emplace_back().distinct = sparse.segment_rows.size();
  }
  return view;
}

template <typename T>
size_t RoundedBytes(const std::vector<T>& values) {
  return (values.size() * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
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

absl::Status BatchStage::MakeRoom(size_t bytes, Place* place) {
  CISTERN_RETURN_IF_ERROR(place->events[kCopied].Wait());
  if (place->there.bytes() >= bytes) return absl::OkStatus();
  CISTERN_RETURN_IF_ERROR(place->events[kUsed].Wait());
  const size_t wanted = bytes + bytes / 4;  // batches differ by a little
  place->there = Memory();
  place->pinned = Memory();
  CISTERN_ASSIGN_OR_RETURN(place->pinned,
                           device_.pool().Take(MemoryPlace::kPinned, wanted, "batches"));
  CISTERN_ASSIGN_OR_RETURN(place->there,
                           device_.pool().Take(MemoryPlace::kDevice, wanted, "batches"));
  return absl::OkStatus();
}

absl::Status BatchStage::Begin(const Batch& batch) {
  if (device_.kind() == DeviceKind::kCpu) return absl::OkStatus();
  CISTERN_RETURN_IF_ERROR(MakeStreams());
  Place& place = places_[next_];
  place.begun = nullptr;
  BatchView view = SizesOf(batch);
  size_t bytes = 0;
  ForEachArray(batch, &view,
               [&bytes](const auto& values, auto*) { bytes += RoundedBytes(values); });
  CISTERN_RETURN_IF_ERROR(MakeRoom(bytes, &place));
  size_t end = 0;
  ForEachArray(batch, &view, [&place, &end](const auto& values, auto* at) {
    if (!values.empty()) {
      std::memcpy(static_cast<char*>(place.pinned.data()) + end, values.data(),
                  values.size() * sizeof(values[0]));
    }
    *at = reinterpret_cast<decltype(values.data())>(static_cast<char*>(place.there.data()) + end);
    end += RoundedBytes(values);
  });
  Stream& copies = copies_.front();
  place.events[kUsed].LetWait(copies);
  CopyToDevice(place.pinned.data(), place.there.data(), bytes, copies);
  place.events[kCopied].Record(copies);
  CISTERN_RETURN_IF_ERROR(copies.status());
  place.view = std::move(view);
  place.begun = &batch;
  next_ = 1 - next_;
  return absl::OkStatus();
}

absl::StatusOr<BatchView> BatchStage::View(const Batch& batch) {
  if (device_.kind() == DeviceKind::kCpu) return ViewOnHost(batch);
  if (places_[1 - next_].begun != &batch) CISTERN_RETURN_IF_ERROR(Begin(batch));
  viewed_ = 1 - next_;
  Place& place = places_[viewed_];
  place.begun = nullptr;
  place.events[kCopied].LetWait(device_.stream());
  return place.view;
}

void BatchStage::Release() {
  if (device_.kind() == DeviceKind::kCpu) return;
  places_[viewed_].events[kUsed].Record(device_.stream());
}

}  // namespace cistern
