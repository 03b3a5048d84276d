#include "serve/server/json_tensor.h"

#include <cstring>
#include <limits>
#include <type_traits>

namespace cistern::serve {
namespace {

double DoubleOf(uint64_t bits) {
  double value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

}  // namespace

absl::Status JsonTensorData::Add(double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return AddNumber({Kind::kFloat, bits});
}

absl::Status JsonTensorData::Add(absl::string_view text) {
  const auto size = static_cast<uint32_t>(text.size());
  texts_.append(reinterpret_cast<const char*>(&size), sizeof(size));
  texts_.append(text.data(), text.size());
  ++text_num_;
  return AddNumber({Kind::kText, 0});
}

absl::Status JsonTensorData::StartArray() {
  if (open_.size() == kMaxDepth) {
    return absl::InvalidArgumentError(
        absl::StrCat("the data of a tensor is nested deeper than ", kMaxDepth,
                     " arrays; send it flat, or nested as its shape says"));
  }
  started_ = true;
  if (!open_.empty()) ++open_.back();
  open_.push_back(0);
  if (number_depth_ != 0 && open_.size() > number_depth_) mixed_ = true;
  if (lengths_.size() < open_.size()) lengths_.push_back(-1);
  return absl::OkStatus();
}

absl::Status JsonTensorData::EndArray() {
  const auto length = static_cast<int64_t>(open_.back());
  open_.pop_back();
  int64_t& expected = lengths_[open_.size()];
  if (expected < 0) expected = length;
  ragged_ = ragged_ || expected != length;
  return absl::OkStatus();
}

absl::Status JsonTensorData::AddNumber(Number number) {
  if (number_depth_ == 0) number_depth_ = open_.size();
  mixed_ = mixed_ || number_depth_ != open_.size() || lengths_.size() > number_depth_;
  ++open_.back();
  numbers_.push_back(number);
  return absl::OkStatus();
}

absl::Status JsonTensorData::CheckNesting(const InferTensor& tensor) const {
  CISTERN_ASSIGN_OR_RETURN(const uint64_t count, ElementCount(tensor.name, tensor.shape));
  if (count != numbers_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", Quoted(tensor.name), " has shape ",
                                                   ShapeText(tensor.shape), ", but its data has ",
                                                   numbers_.size(), " numbers; these must agree"));
  }
  const bool flat = lengths_.size() <= 1;
  const bool nested = lengths_ == tensor.shape;
  if (!mixed_ && !ragged_ && (flat || nested || count == 0)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the data of tensor ", Quoted(tensor.name), " is not nested as its shape ",
                   ShapeText(tensor.shape), " says; nest it so, or send one flat array"));
}

template <class T>
absl::Status JsonTensorData::Convert(InferTensor* tensor) const {
  std::string bytes(numbers_.size() * sizeof(T), '\0');
  for (size_t i = 0; i < numbers_.size(); ++i) {
    const Number& number = numbers_[i];
    T value = 0;
    bool fits = true;
    if constexpr (std::is_floating_point_v<T>) {
      value = number.kind == Kind::kSigned     ? static_cast<T>(static_cast<int64_t>(number.bits))
              : number.kind == Kind::kUnsigned ? static_cast<T>(number.bits)
                                               : static_cast<T>(DoubleOf(number.bits));
    } else if (number.kind == Kind::kUnsigned) {
      fits = number.bits <= static_cast<uint64_t>(std::numeric_limits<T>::max());
      value = static_cast<T>(number.bits);
    } else {
      const auto integer = static_cast<int64_t>(number.bits);
      fits = number.kind == Kind::kSigned && std::is_signed_v<T> &&
             integer >= static_cast<int64_t>(std::numeric_limits<T>::min());
      value = static_cast<T>(integer);
    }
    if (!fits) {
      return absl::InvalidArgumentError(absl::StrCat(
          "element ", i, " of tensor ", Quoted(tensor->name), " does not fit ", tensor->datatype));
    }
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
  tensor->owned = std::move(bytes);
  return absl::OkStatus();
}

absl::Status JsonTensorData::Finish(InferTensor* tensor) const {
  CISTERN_RETURN_IF_ERROR(CheckNesting(*tensor));
  const std::string& type = tensor->datatype;
  const bool texts = type == "BYTES";
  if (texts ? text_num_ < numbers_.size() : text_num_ > 0) {
    return absl::InvalidArgumentError(absl::StrCat("the data of input ", Quoted(tensor->name),
                                                   " has a ", texts ? "number" : "string",
                                                   "; it must be ", texts ? "strings" : "numbers"));
  }
  if (texts) {
    tensor->owned = texts_;
    return absl::OkStatus();
  }
  if (type == "FP32") return Convert<float>(tensor);
  if (type == "INT64") return Convert<int64_t>(tensor);
  if (type == "UINT64") return Convert<uint64_t>(tensor);
  if (type == "INT32") return Convert<int32_t>(tensor);
  if (type == "UINT32") return Convert<uint32_t>(tensor);
  return absl::InvalidArgumentError(
      absl::StrCat("tensor ", Quoted(tensor->name), " has datatype ", Quoted(type),
                   "; this server reads FP32, INT64, UINT64, INT32, UINT32 and BYTES"));
}

}  // namespace cistern::serve
