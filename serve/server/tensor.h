// A tensor of a request or of a reply, as both protocols carry it: name, data type, shape,
// elements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/status.h"

namespace cistern::serve {

// A name from a request as an error message shows it: quoted, escaped, at most 64 bytes of it.
std::string Quoted(absl::string_view name);

// Threads: one at a time.
struct InferTensor {
  std::string name;
  std::string datatype;  // "FP32", "INT64", ...
  std::vector<int64_t> shape;
  // The elements, row by row, little-endian: bytes of the caller's message, or our own.
  absl::string_view borrowed;
  std::optional<std::string> owned;

  absl::string_view bytes() const { return owned ? absl::string_view(*owned) : borrowed; }
};

// A tensor in the metadata of a model; -1 in the shape: any size.
struct TensorSpec {
  std::string name, datatype;
  std::vector<int64_t> shape;
  bool optional = false;     // a request may leave it out
  std::string columns = {};  // of rows of text, joined by their delimiter
};

// Bytes of an element of a data type of the protocol; 0 for BYTES and for an unknown one.
size_t ElementBytes(absl::string_view datatype);

// The product of a shape. kInvalidArgument if a dimension is negative, or the product does not fit
// in 64 bits; the message names the tensor.
absl::StatusOr<uint64_t> ElementCount(const std::string& name, absl::Span<const int64_t> shape);

// "[2,-1]".
std::string ShapeText(absl::Span<const int64_t> shape);

// A tensor that holds a copy of `values` in the byte order of the protocol (that of this machine:
// programs are built for little-endian machines only).
template <class T>
InferTensor TensorOf(std::string name, std::string datatype, std::vector<int64_t> shape,
                     absl::Span<const T> values) {
  InferTensor tensor;
  tensor.name = std::move(name);
  tensor.datatype = std::move(datatype);
  tensor.shape = std::move(shape);
  tensor.owned.emplace(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return tensor;
}

}  // namespace cistern::serve
