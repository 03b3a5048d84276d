// Arrays of numpy, torch and everything else that speaks the buffer protocol or DLPack, as spans,
// without a copy. Every refusal is a TypeError or ValueError that names the argument.
//
// nanobind itself would convert an array of another type silently: a result written to `out` would
// land in the copy. So no function here converts, and bindings take arrays as plain objects.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/base/types.h"

namespace cistern::python {

namespace nb = nanobind;

// Elements that a caller's object owns. `owner` keeps the memory alive.
template <class T>
struct ArrayView {
  nb::ndarray<> owner;
  absl::Span<T> span;
  std::vector<int64_t> shape;
};

// Keys named `name`: int64 or uint64, which share their bits, [n], contiguous, in host memory.
ArrayView<const Key> KeysOf(nb::handle object, const char* name);
// float32 of any number of dimensions, contiguous, in host memory. columns: the size of the last
// dimension of at least one more; 0: any shape.
ArrayView<const float> FloatsOf(nb::handle object, const char* name, size_t columns = 0);
// The same, writable, and of exactly this shape: results land in the caller's memory.
ArrayView<float> FloatsOut(nb::handle object, const char* name, size_t rows, size_t columns);
// int32 or uint32, [n]; none may be negative (the sign is not checked here).
ArrayView<const uint32_t> CountsOf(nb::handle object, const char* name);

// numpy arrays that own their memory.
using NumpyFloats = nb::ndarray<nb::numpy, float>;
using NumpyKeys = nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>;
using NumpyCounts = nb::ndarray<nb::numpy, int32_t, nb::ndim<1>>;

NumpyFloats NewFloats(std::vector<size_t> shape);
// `values` becomes the array's memory.
NumpyFloats ToNumpy(std::vector<float> values, std::vector<size_t> shape);
NumpyKeys ToNumpy(std::vector<Key> keys);
NumpyCounts ToNumpy(std::vector<uint32_t> counts);

}  // namespace cistern::python
