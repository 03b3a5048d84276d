#include "serve/server/elements.h"

#include <cmath>

namespace cistern::serve {
namespace {

// Widens elements of T to keys.
template <class T>
std::vector<Key> Widened(const InferTensor& tensor) {
  const std::vector<T> values = Elements<T>(tensor);
  return std::vector<Key>(values.begin(), values.end());
}

}  // namespace

absl::Status CheckType(const InferTensor& tensor, absl::string_view datatype) {
  if (tensor.datatype == datatype) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("input ", Quoted(tensor.name), " has datatype ",
                                                 Quoted(tensor.datatype), "; send ", datatype));
}

absl::Status CheckSize(const InferTensor& tensor) {
  CISTERN_ASSIGN_OR_RETURN(const uint64_t count, ElementCount(tensor.name, tensor.shape));
  const size_t element = ElementBytes(tensor.datatype);
  if (element != 0 && tensor.bytes().size() % element == 0 &&
      tensor.bytes().size() / element == count) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("input ", Quoted(tensor.name), " has shape ", ShapeText(tensor.shape), " of ",
                   tensor.datatype, ", but ", tensor.bytes().size(),
                   " bytes of data; send as many elements as the shape says"));
}

absl::StatusOr<std::vector<Key>> KeysOf(const InferTensor& tensor) {
  const std::string& type = tensor.datatype;
  if (type != "INT64" && type != "UINT64" && type != "INT32" && type != "UINT32") {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", Quoted(tensor.name), " has datatype ", Quoted(type),
                     "; send keys as INT64, UINT64, INT32 or UINT32"));
  }
  CISTERN_RETURN_IF_ERROR(CheckSize(tensor));
  if (type == "INT64" || type == "UINT64") return Elements<Key>(tensor);
  if (type == "UINT32") return Widened<uint32_t>(tensor);
  for (const int32_t value : Elements<int32_t>(tensor)) {
    if (value < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", Quoted(tensor.name), " has the key ", value,
                       " as INT32; send keys of 32 bits as UINT32, and larger ones as INT64"));
    }
  }
  return Widened<int32_t>(tensor);
}

absl::StatusOr<std::vector<absl::string_view>> TextsOf(const InferTensor& tensor) {
  CISTERN_RETURN_IF_ERROR(CheckType(tensor, "BYTES"));
  CISTERN_ASSIGN_OR_RETURN(const uint64_t count, ElementCount(tensor.name, tensor.shape));
  std::vector<absl::string_view> texts;
  absl::string_view bytes = tensor.bytes();
  while (!bytes.empty()) {
    uint32_t size = 0;
    if (bytes.size() < sizeof(size)) break;
    std::memcpy(&size, bytes.data(), sizeof(size));
    if (size > bytes.size() - sizeof(size)) break;
    texts.push_back(bytes.substr(sizeof(size), size));
    bytes.remove_prefix(sizeof(size) + size);
  }
  if (bytes.empty() && texts.size() == count) return texts;
  return absl::InvalidArgumentError(
      absl::StrCat("input ", Quoted(tensor.name), " has shape ", ShapeText(tensor.shape),
                   " of BYTES, but its data holds ", texts.size(), " whole elements",
                   bytes.empty() ? "" : " and a part of another",
                   "; send each as its length (u32) and its bytes"));
}

absl::StatusOr<std::vector<float>> DenseOf(const InferTensor& tensor) {
  CISTERN_RETURN_IF_ERROR(CheckType(tensor, "FP32"));
  CISTERN_RETURN_IF_ERROR(CheckSize(tensor));
  std::vector<float> values = Elements<float>(tensor);
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    return absl::InvalidArgumentError(absl::StrCat("input ", Quoted(tensor.name), " element ", i,
                                                   " is ", values[i], "; send finite numbers"));
  }
  return values;
}

absl::StatusOr<std::vector<uint32_t>> OffsetsOf(const std::string& name,
                                                absl::Span<const int32_t> values,
                                                uint64_t key_num) {
  int32_t last = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const bool good = i == 0 ? values[i] == 0 : values[i] >= last;
    if (!good || static_cast<uint64_t>(values[i]) > key_num) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input ", Quoted(name), " element ", i, " is ", values[i],
          "; offsets start at 0, never decrease, and end at the number of keys, here ", key_num));
    }
    last = values[i];
  }
  return std::vector<uint32_t>(values.begin(), values.end());
}

}  // namespace cistern::serve
