// The elements of a request's tensors, checked and converted. Each error is kInvalidArgument, and
// names the tensor, what is wrong, and what to send.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/base/types.h"
#include "serve/server/tensor.h"

namespace cistern::serve {

// The elements of `tensor`, whose data type is T's. Its bytes need not be aligned.
template <class T>
std::vector<T> Elements(const InferTensor& tensor) {
  std::vector<T> values(tensor.bytes().size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), tensor.bytes().data(), values.size() * sizeof(T));
  return values;
}

// The data type must be `datatype`.
absl::Status CheckType(const InferTensor& tensor, absl::string_view datatype);
// The shape must have exactly as many elements as the bytes hold.
absl::Status CheckSize(const InferTensor& tensor);

// INT64, UINT64, INT32 or UINT32 as keys. A negative INT32 is refused.
absl::StatusOr<std::vector<Key>> KeysOf(const InferTensor& tensor);
// BYTES: each element is its length (u32), then its bytes.
absl::StatusOr<std::vector<absl::string_view>> TextsOf(const InferTensor& tensor);
// FP32, all of it finite.
absl::StatusOr<std::vector<float>> DenseOf(const InferTensor& tensor);
// Offsets start at 0, do not decrease, and are at most `key_num`. name: of their tensor.
absl::StatusOr<std::vector<uint32_t>> OffsetsOf(const std::string& name,
                                                absl::Span<const int32_t> values, uint64_t key_num);

}  // namespace cistern::serve
