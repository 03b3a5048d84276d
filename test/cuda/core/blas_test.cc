#include "cuda/core/blas.h"

#include <gtest/gtest.h>

#include <set>

namespace cistern {
namespace {

// A kernel is chosen once for each name, so whatever the choice depends on must show in it.
TEST(GpuBlas, NamesAProductByAllThatItsKernelDependsOn) {
  alignas(16) float data[64] = {};
  const BlasProduct plain = {.transpose_a = false,
                             .transpose_b = false,
                             .m = 2,
                             .n = 3,
                             .k = 4,
                             .a = data,
                             .b = data,
                             .accumulate = false,
                             .c = data,
                             .precision = ProductPrecision::kFloat32};
  std::set<std::string> names = {NameOf(plain)};
  const auto expect_new = [&](const BlasProduct& product) {
    EXPECT_TRUE(names.insert(NameOf(product)).second) << NameOf(product);
  };
  for (size_t BlasProduct::*const size : {&BlasProduct::m, &BlasProduct::n, &BlasProduct::k}) {
    BlasProduct other = plain;
    other.*size = 5;
    expect_new(other);
  }
  for (bool BlasProduct::*const flag :
       {&BlasProduct::transpose_a, &BlasProduct::transpose_b, &BlasProduct::accumulate}) {
    BlasProduct other = plain;
    other.*flag = true;
    expect_new(other);
  }
  BlasProduct other = plain;
  other.epilogue = BlasEpilogue::kBias;
  expect_new(other);
  other.epilogue = BlasEpilogue::kBiasRelu;
  expect_new(other);
  other = plain;
  other.precision = ProductPrecision::kTf32;
  expect_new(other);
  other = plain;
  other.a = data + 1;  // aligned to 4 bytes
  expect_new(other);
  other.a = data + 2;  // to 8
  expect_new(other);
  other.a = data + 4;  // to 16, as `data` is
  EXPECT_EQ(NameOf(other), NameOf(plain));
}

}  // namespace
}  // namespace cistern
