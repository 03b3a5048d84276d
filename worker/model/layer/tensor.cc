#include "worker/model/layer/tensor.h"

#include "absl/strings/str_cat.h"

namespace cistern::model {

size_t TensorShape::columns() const {
  size_t product = 1;
  for (size_t dim : dims) product *= dim;
  return product;
}

std::string TensorShape::ToString() const {
  std::string text = rows == 1 ? "[b" : absl::StrCat("[", rows, "b");
  for (size_t dim : dims) absl::StrAppend(&text, ", ", dim);
  return text + "]";
}

}  // namespace cistern::model
