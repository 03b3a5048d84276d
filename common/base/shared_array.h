// An array that shares its memory with others.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace cistern {

// Values that never change, and whatever keeps their memory alive. Copies share the values.
//
// Threads: as std::shared_ptr<const std::vector<T>>.
template <class T>
class SharedArray {
 public:
  SharedArray() = default;
  SharedArray(std::vector<T> values)  // NOLINT: may stand where a vector does
      : SharedArray(std::make_shared<const std::vector<T>>(std::move(values))) {}
  // values: valid as long as `owner`.
  SharedArray(absl::Span<const T> values, std::shared_ptr<const void> owner)
      : owner_(std::move(owner)), values_(values) {}

  const T* data() const { return values_.data(); }
  size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  const T& operator[](size_t i) const { return values_[i]; }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  operator absl::Span<const T>() const { return values_; }  // NOLINT: the same

 private:
  explicit SharedArray(std::shared_ptr<const std::vector<T>> owner) {
    values_ = *owner;
    owner_ = std::move(owner);
  }

  std::shared_ptr<const void> owner_;
  absl::Span<const T> values_;
};

}  // namespace cistern
