// The values that flow between layers: named, shaped views of storage.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cuda/core/values.h"
#include "cuda/op/dense/fully_connected.h"

namespace cistern {

// Dimension 0 is `rows` times the batch, so that a graph is shaped once for every batch size: an
// embedding of 26 slots is [b, 26, 11], and reshaped to its vectors [26b, 11].
struct TensorShape {
  size_t rows = 1;
  std::vector<size_t> dims;  // those behind dimension 0

  size_t rank() const { return dims.size() + 1; }
  size_t columns() const;                           // product of dims
  size_t size() const { return rows * columns(); }  // elements of one sample
  std::string ToString() const;                     // "[b, 26, 11]"
  bool operator==(const TensorShape&) const = default;
};

// Memory that one layer writes and others read, under one or several names and shapes: a Reshape is
// another view of the same storage, not a copy.
struct Storage {
  size_t size = 0;  // elements of one sample
  ElementType type = ElementType::kFloat;
  bool external = false;        // belongs to the batch: bound at each step, never written
  bool differentiable = false;  // some parameter stands behind it
  int readers = 0;              // inputs of live layers
  void* value = nullptr;        // [batch, size]
  void* grad = nullptr;         // [batch, size]; null where nobody wants it
};

struct Tensor {
  std::string name;
  TensorShape shape;
  Storage* storage = nullptr;
  // The layer that makes it ends with a ReLU, and what the graph then makes of it: the one layer
  // that reads it gives the gradient of what the ReLU was given. (Of another name of the storage
  // none of this is said.)
  bool ends_in_relu = false, grad_behind_relu = false;
  op::ReluMask relu_mask = {};

  op::Values value() const { return {storage->value, storage->type}; }
  op::Values grad() const { return {storage->grad, storage->type}; }
};

}  // namespace cistern
