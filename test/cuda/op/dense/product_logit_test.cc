// The logit of a product of two probabilities, of floats and of 16-bit elements.
#include "cuda/op/dense/product_logit.h"

#include "test/cuda/op/dense/half_op.h"

namespace cistern::op {
namespace {

class ProductLogitTest : public HalfOpTest {};

// By definition: the probabilities, their product, and its log-odds.
Doubles ProductLogitInDouble(const Doubles& a, const Doubles& b) {
  Doubles y(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    const double p = 1 / (1 + std::exp(-a[i])) / (1 + std::exp(-b[i]));
    y[i] = std::log(p / (1 - p));
  }
  return y;
}

TEST_P(ProductLogitTest, IsTheLogOddsOfBothEvents) {
  const Doubles a = Random(count(), -6, 6), b = Random(count(), -6, 6), dy = Random(count());
  Floats y(count(), kUnset);
  ProductLogit(Floats(a).data(), Floats(b).data(), y.data(), count(), stream());
  ExpectNear(ProductLogitInDouble(a, b), y, 3e-6);
  Floats in_place(b);
  ProductLogit(Floats(a).data(), in_place.data(), in_place.data(), count(), stream());
  EXPECT_EQ(in_place.Read(), y.Read());
  for (const Write write : {Write::kOverwrite, Write::kAccumulate}) {
    Floats da = Gradient(count(), write), db = Gradient(count(), write);
    ProductLogitBackward(Floats(a).data(), Floats(b).data(), Floats(dy).data(), write, da.data(),
                         count(), stream());
    ProductLogitBackward(Floats(b).data(), Floats(a).data(), Floats(dy).data(), write, db.data(),
                         count(), stream());
    ExpectGradient([&](const Doubles& v) { return Dot(dy, ProductLogitInDouble(v, b)); }, a, da,
                   1e-5, Base(write));
    ExpectGradient([&](const Doubles& v) { return Dot(dy, ProductLogitInDouble(a, v)); }, b, db,
                   1e-5, Base(write));
  }
}

TEST_P(ProductLogitTest, Half) {
  ForWrites([&](ElementType type, Write write, float before) {
    const Typed a = RandomOf(type, count(), -2, 2), b = RandomOf(type, count(), -2, 2);
    const Typed dy = RandomOf(type, count());
    Typed y(type, count(), 100), da(type, count(), before);
    ProductLogit(a.half(), b.half(), y.half(), count(), stream());
    ProductLogit(a.floats(), b.floats(), y.floats(), count(), stream());
    y.ExpectRounded();
    ProductLogitBackward(a.half(), b.half(), dy.half(), write, da.half(), count(), stream());
    ProductLogitBackward(a.floats(), b.floats(), dy.floats(), write, da.floats(), count(),
                         stream());
    da.ExpectRounded();
  });
}

INSTANTIATE_TEST_SUITE_P(Devices, ProductLogitTest, testing::ValuesIn(OpCases()), OpCaseName);

class ProductLogitValues : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Devices, ProductLogitValues, testing::ValuesIn(OneCaseADevice()),
                         OpCaseName);

// Where exp(-a) overflows or 1 - p is 0 in a float: the limits are a + b, min(a, b), and
// min(a, b) - log(2) if a = b.
TEST_P(ProductLogitValues, AreStableAndKeepNan) {
  const Floats a(std::vector<float>{-200, 200, 200, -200, 200, NAN, INFINITY});
  const Floats b(std::vector<float>{-100, 100, -100, 200, 200, 1, 3});
  const Floats dy(std::vector<float>(7, 1.0f));
  Floats y(7), da(7);
  ProductLogit(a.data(), b.data(), y.data(), 7, stream());
  ProductLogitBackward(a.data(), b.data(), dy.data(), Write::kOverwrite, da.data(), 7, stream());
  const std::vector<float> values = y.Read(), slopes = da.Read();
  const double expected[] = {-300, 100, -100, -200, 200 - std::log(2.0)};
  const double expected_slopes[] = {1, 0, 0, 1, 0.5};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(values[i], expected[i], 2e-5) << i;
    EXPECT_NEAR(slopes[i], expected_slopes[i], 1e-6) << i;
  }
  EXPECT_TRUE(std::isnan(values[5]));
  EXPECT_EQ(values[6], 3);
}

}  // namespace
}  // namespace cistern::op
