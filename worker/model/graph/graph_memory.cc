// The memory of a graph: values, gradients and scratch.
#include <algorithm>
#include <map>
#include <set>

#include "cuda/op/dense/fully_connected.h"
#include "worker/model/graph/graph.h"
#include "worker/model/graph/memory_plan.h"

namespace cistern::model {

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

// Lets embeddings write the columns of a Concat's output that would be copies of theirs, and read
// their gradient there.
void Graph::PlaceInConcats(DeviceKind device) {
  for (Layer* concat : live_) {
    if (!concat->joins_columns()) continue;
    Storage* const whole = concat->outputs()[0]->storage;
    size_t first = 0;
    for (const Input& in : concat->inputs()) {
      Storage& part = *in.tensor->storage;
      if (FitsInConcat(part, *concat, first, device)) {
        part.whole = whole;
        part.first = first;
      } else if (part.whole == whole) {
        part.whole = nullptr;
        part.first = 0;
      }
      first += part.size;
    }
  }
  for (Layer* layer : backward_) {  // the readers of the whole have written the gradient before
    for (Input& in : layer->inputs()) {
      const Storage& part = *in.tensor->storage;
      if (part.whole != nullptr && part.readers > 1) in.write = op::Write::kAccumulate;
    }
  }
}

// Whether `part` can be the columns of concat's output from `first` on. On the CPU only if nothing
// else reads it: other readers would add to its gradient in another order. A GPU's kernels require
// rows that begin at multiples of 16 bytes.
bool Graph::FitsInConcat(const Storage& part, const Layer& concat, size_t first,
                         DeviceKind device) const {
  const auto writes = [&part](const EmbeddingLayer* layer) {
    return layer->output_storage() == &part && layer->can_write_strided();
  };
  const Storage& whole = *concat.outputs()[0]->storage;
  if (std::none_of(live_embeddings_.begin(), live_embeddings_.end(), writes)) return false;
  if (&part == logit_->storage || &whole == logit_->storage) return false;
  if (device == DeviceKind::kCpu) return part.readers == 1;
  const auto is_even = [&](size_t columns) { return columns * BytesOf(part.type) % 16 == 0; };
  if (!is_even(whole.size) || !is_even(first)) return false;
  return part.readers == 1 || CanShareConcat(part, concat);
}

// Whether the other readers of `part` can read it within the output of `concat`, find its values
// there in the backward pass, and can add to its gradient there, which a reader of the output must
// have written before.
bool Graph::CanShareConcat(const Storage& part, const Layer& concat) const {
  const Storage& whole = *concat.outputs()[0]->storage;
  int joined = 0;
  for (Layer* layer : live_) {
    for (const Input& in : layer->inputs()) {
      const Storage* const read = in.tensor->storage;
      if (read == &whole && layer->can_replace_input()) return false;
      if (read != &part) continue;
      if (layer == &concat ? ++joined > 1 : !layer->can_read_strided()) return false;
    }
  }
  bool written = false;
  for (Layer* layer : backward_) {
    for (const Input& in : layer->inputs()) {
      written |= in.wants_grad && in.tensor->storage == &whole;
      if (!written && in.tensor->storage == &part) return false;
    }
  }
  return true;
}

absl::Status Graph::Allocate(DeviceContext& device) {
  if (device.kind() != DeviceKind::kCpu) {
    WidenMatrices();
    PlaceInConcats(device.kind());
  }
  const Placement values = PlaceValues(), gradients = PlaceGradients();
  const auto place_of = [](const Storage& storage, float* buffer) {
    return reinterpret_cast<char*>(buffer) + storage.first * BytesOf(storage.type);
  };
  CISTERN_RETURN_IF_ERROR(values_.Grow(values.plan.floats, device, "values"));
  for (const auto& [storage, buffer] : values.buffers) {
    storage->value = place_of(*storage, values_.data() + values.plan.offsets[buffer]);
  }
  CISTERN_RETURN_IF_ERROR(gradients_.Grow(gradients.plan.floats, device, "gradients"));
  for (const auto& [storage, buffer] : gradients.buffers) {
    storage->grad = place_of(*storage, gradients_.data() + gradients.plan.offsets[buffer]);
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
// exceptions are a layer that overwrites its input because the input is not read again, and parts
// of a Concat's output.
Graph::Placement Graph::PlaceValues() const {
  std::map<const Storage*, Layer*> producer;
  for (Layer* layer : live_) {
    for (Tensor* out : layer->outputs()) producer[out->storage] = layer;
  }
  std::vector<Lifetime> buffers;
  std::map<Storage*, size_t> place;
  for (Layer* layer : live_) {
    for (Tensor* out : layer->outputs()) {
      if (out->storage->whole != nullptr) continue;
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
  for (const EmbeddingLayer* embedding : live_embeddings_) {
    Storage* const out = embedding->outputs()[0]->storage;
    if (out->whole != nullptr) place[out] = place[out->whole];
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
      if (storage->whole != nullptr) {
        place[storage] = place[storage->whole];
      } else if (layer.can_replace_grad() && storage->readers == 1) {
        place[storage] = place[layer.outputs()[0]->storage];
      } else {
        add(storage, now);
      }
    }
  }
  return {PlanMemory(buffers), std::move(place)};
}

}  // namespace cistern::model
