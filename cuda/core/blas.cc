#include "cuda/core/blas.h"

#include "absl/strings/str_cat.h"

namespace cistern {
namespace {

const char* TypeName(ElementType type) {
  switch (type) {
    case ElementType::kHalf:
      return "float16";
    case ElementType::kBfloat16:
      return "bfloat16";
    default:
      return "float";
  }
}

}  // namespace

std::string NameOf(const BlasProduct& p) {
  constexpr const char* kPrecisions[] = {"float32", "tf32", "bfloat16"};
  constexpr const char* kEpilogues[] = {"", ", bias", ", bias and ReLU"};
  std::string name = absl::StrCat(p.m, " x ", p.k, p.transpose_a ? " transposed" : "", " by ", p.k,
                                  " x ", p.n, p.transpose_b ? " transposed" : "", ", ",
                                  TypeName(p.a.type), " to ", TypeName(p.c.type));
  if (p.a.type == ElementType::kFloat) {
    absl::StrAppend(&name, " in ", kPrecisions[static_cast<size_t>(p.precision)]);
  }
  absl::StrAppend(&name, p.accumulate ? ", added" : "",
                  kEpilogues[static_cast<size_t>(p.epilogue)]);
  for (const void* data : {p.a.data, p.b.data, p.bias.data, static_cast<const void*>(p.c.data)}) {
    if (AlignmentOf(data) < 16) {
      return absl::StrCat(name, ", aligned to ", AlignmentOf(p.a.data), " ", AlignmentOf(p.b.data),
                          " ", AlignmentOf(p.bias.data), " ", AlignmentOf(p.c.data));
    }
  }
  return name;
}

}  // namespace cistern
