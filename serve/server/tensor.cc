#include "serve/server/tensor.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "common/base/checked.h"

namespace cistern::serve {

std::string Quoted(absl::string_view name) {
  constexpr size_t kShown = 64;
  return absl::StrCat("'", absl::CHexEscape(name.substr(0, kShown)),
                      name.size() > kShown ? "..." : "", "'");
}

size_t ElementBytes(absl::string_view datatype) {
  if (datatype == "BOOL" || datatype == "INT8" || datatype == "UINT8") return 1;
  if (datatype == "INT16" || datatype == "UINT16") return 2;
  if (datatype == "FP16" || datatype == "BF16") return 2;
  if (datatype == "INT32" || datatype == "UINT32" || datatype == "FP32") return 4;
  if (datatype == "INT64" || datatype == "UINT64" || datatype == "FP64") return 8;
  return 0;
}

absl::StatusOr<uint64_t> ElementCount(const std::string& name, absl::Span<const int64_t> shape) {
  std::optional<uint64_t> count = 1;
  for (const int64_t size : shape) {
    if (size < 0) {
      return absl::InvalidArgumentError(absl::StrCat("tensor ", Quoted(name), " has shape ",
                                                     ShapeText(shape),
                                                     "; send the sizes that it really has"));
    }
    if (count) count = CheckedMul(*count, static_cast<uint64_t>(size));
  }
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  if (count) return *count;
  return absl::InvalidArgumentError(absl::StrCat("tensor ", Quoted(name), " has shape ",
                                                 ShapeText(shape),
                                                 ", which has more elements than 64 bits count"));
}

std::string ShapeText(absl::Span<const int64_t> shape) {
  constexpr size_t kShown = 8;
  return absl::StrCat("[", absl::StrJoin(shape.subspan(0, kShown), ","),
                      shape.size() > kShown ? ",..." : "", "]");
}

}  // namespace cistern::serve
