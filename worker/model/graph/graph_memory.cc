// The memory of a graph: values, gradients and scratch.
#include <algorithm>
#include <map>
#include <set>

#include "cuda/op/dense/fully_connected.h"
#include "worker/model/graph/graph.h"
#include "worker/model/graph/memory_plan.h"

namespace cistern {

namespace {

// The number of floats that hold the values of `samples` samples.
size_t FloatsOf(const Storage& storage, size_t samples) {
  return (storage.size * samples * BytesOf(storage.type) + sizeof(float) - 1) / sizeof(float);
}

}  // namespace

// On a GPU, matrices of 16-bit elements whose rows do not begin at multiples of 16 bytes get wide
// rows if nothing reads them but one product, which would copy them. values_ is zero once it is
// allocated, and nobody writes the columns that are added.
void Graph::WidenMatrices() {
  std::set<const Tensor*> writable;
  for (const Layer* layer : live_) {
    if (layer->can_write_wide()) writable.insert(layer->outputs()[0]);
  }
  for (Layer* layer : live_) {
    if (!layer->can_read_wide()) continue;
    Tensor& tensor = *layer->inputs()[0].tensor;
    Storage& storage = *tensor.storage;
    if (writable.count(&tensor) == 0 || storage.readers > 1 || tensor.shape.rank() != 2) continue;
    const size_t columns = tensor.shape.columns(), wide = op::WideColumns(storage.type, columns);
    if (wide == columns) continue;
    tensor.is_wide = true;
    storage.size = tensor.shape.rows * wide;
  }
}

absl::Status Graph::Allocate(DeviceContext& device) {
  if (device.kind() != DeviceKind::kCpu) WidenMatrices();
  const Placement values = PlaceValues(), gradients = PlaceGradients();
  CISTERN_RETURN_IF_ERROR(values_.Grow(values.plan.floats, device, "values"));
  for (const auto& [storage, buffer] : values.buffers) {
    storage->value = values_.data() + values.plan.offsets[buffer];
  }
  CISTERN_RETURN_IF_ERROR(gradients_.Grow(gradients.plan.floats, device, "gradients"));
  for (const auto& [storage, buffer] : gradients.buffers) {
    storage->grad = gradients_.data() + gradients.plan.offsets[buffer];
  }
  for (Layer* layer : live_) {
    CISTERN_RETURN_IF_ERROR(layer->Allocate(config_.solver.batchsize, device));
  }
  return scratch_.Grow(ScratchFloats(), device, "scratch");
}

StepMemory Graph::memory() const {
  return {PlaceValues().plan.floats, PlaceGradients().plan.floats, ScratchFloats()};
}

size_t Graph::ScratchFloats() const {
  size_t scratch = 0;
  for (const Layer* layer : live_)
    scratch = std::max(scratch, layer->ScratchFloats(planned_batch_));
  return scratch;
}

// Values live from the forward to the backward pass, therefore each storage has its own buffer. The
// exception is a layer that overwrites its input because the input is not read again.
Graph::Placement Graph::PlaceValues() const {
  std::map<const Storage*, Layer*> producer;
  for (Layer* layer : live_) {
    for (Tensor* out : layer->outputs()) producer[out->storage] = layer;
  }
  std::vector<Lifetime> buffers;
  std::map<Storage*, size_t> place;
  for (Layer* layer : live_) {
    for (Tensor* out : layer->outputs()) {
      Storage* in = layer->inputs().empty() ? nullptr : layer->inputs()[0].tensor->storage;
      const bool replaces = layer->can_replace_input() && !in->external && in->readers == 1 &&
                            in != logit_->storage && !producer[in]->reads_outputs();
      if (replaces) {
        place[out->storage] = place[in];
        continue;
      }
      place[out->storage] = buffers.size();
      buffers.push_back({FloatsOf(*out->storage, planned_batch_), 0, 0});
    }
  }
  if (converts_dense()) {
    place[dense_->storage] = buffers.size();
    buffers.push_back({FloatsOf(*dense_->storage, planned_batch_), 0, 0});
  }
  return {PlanMemory(buffers), std::move(place)};
}

// In the order of the backward pass, a gradient lives from its first writer to the layer that
// produces its storage. An elementwise layer computes in place; then both storages share a buffer.
Graph::Placement Graph::PlaceGradients() const {
  std::vector<Lifetime> buffers;
  std::map<Storage*, size_t> place;
  const auto add = [&](Storage* storage, size_t now) {
    place[storage] = buffers.size();
    buffers.push_back({FloatsOf(*storage, config_.solver.batchsize), now, now});
  };
  add(logit_->storage, 0);
  for (size_t now = 0; now < backward_.size(); ++now) {
    Layer& layer = *backward_[now];
    for (const Tensor* out : layer.outputs()) {
      const auto it = place.find(out->storage);
      if (it != place.end()) buffers[it->second].last = now;
    }
    for (const Input& in : layer.inputs()) {
      Storage* storage = in.tensor->storage;
      if (!in.wants_grad || place.count(storage) > 0) continue;
      if (layer.can_replace_grad() && storage->readers == 1) {
        place[storage] = place[layer.outputs()[0]->storage];
      } else {
        add(storage, now);
      }
    }
  }
  return {PlanMemory(buffers), std::move(place)};
}

}  // namespace cistern
