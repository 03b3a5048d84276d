// Tensors: named views of storage, with a shape, that connect layers.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cuda/core/values.h"

namespace cistern::model {

// The shape of a tensor. Dimension 0 is `rows` times the batch size, so that one shape serves every
// batch size: an embedding of 26 slots is [b, 26, 11]; reshaped to one row per vector it is
// [26b, 11].
struct TensorShape {
  size_t rows = 1;
  std::vector<size_t> dims;  // the dimensions after dimension 0

  size_t rank() const { return dims.size() + 1; }
  size_t columns() const;                           // product of dims
  size_t size() const { return rows * columns(); }  // elements of one sample
  std::string ToString() const;                     // "[b, 26, 11]"
  bool operator==(const TensorShape&) const = default;
};

// Memory that one layer writes and others read. Several tensors can name it with different shapes:
// a Reshape is a view of the same storage, not a copy.
struct Storage {
  size_t size = 0;  // elements of one sample
  ElementType type = ElementType::kFloat;
  bool external = false;        // belongs to the batch: bound at each step, never written
  bool differentiable = false;  // depends on a parameter
  int readers = 0;              // number of inputs of live layers that use it
  void* value = nullptr;        // [batch, size]
  void* grad = nullptr;         // [batch, size]; null if no layer needs it
  // Not null: values and gradients are columns first .. first + size of `whole`, the output of a
  // Concat, and are written there directly (Graph::PlaceInConcats).
  Storage* whole = nullptr;
  size_t first = 0;

  // Elements from the values of a sample to those of the next one.
  size_t stride() const { return whole == nullptr ? size : whole->size; }
};

// A name and shape for a storage.
struct Tensor {
  std::string name;
  TensorShape shape;
  Storage* storage = nullptr;
  // ends_in_relu: the layer that writes this tensor ends with a ReLU. grad_behind_relu: the graph
  // has decided that the tensor's only reader computes the gradient of the ReLU's input instead of
  // its output. Only the tensor that the layer defines has these flags, not other names of its
  // storage.
  bool ends_in_relu = false, grad_behind_relu = false;
  // Rows of the matrix and of its gradient have op::WideColumns columns; those beyond shape's are
  // zero. Both the layer that defines the tensor and its only reader allow that. As the flags
  // above, only on the tensor that the layer defines.
  bool is_wide = false;

  op::Values value() const { return {storage->value, storage->type}; }
  op::Values grad() const { return {storage->grad, storage->type}; }
};

}  // namespace cistern::model
