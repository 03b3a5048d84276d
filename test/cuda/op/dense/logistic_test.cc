// The logistic function, of floats and of 16-bit elements.
#include "cuda/op/dense/logistic.h"

#include "test/cuda/op/dense/half_op.h"

namespace cistern::op {
namespace {

constexpr double kLogisticTolerance = 1e-6;

class LogisticTest : public HalfOpTest {};

Doubles LogisticInDouble(const Doubles& x) {
  Doubles y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = 1 / (1 + std::exp(-x[i]));
  return y;
}

TEST_P(LogisticTest, IsItsFormula) {
  const Doubles x = Random(count(), -20, 20), dy = Random(count());
  Floats y(count(), kUnset);
  Logistic(Floats(x).data(), y.data(), count(), stream());
  ExpectNear(LogisticInDouble(x), y, kLogisticTolerance);
  Floats in_place(x);
  Logistic(in_place.data(), in_place.data(), count(), stream());
  EXPECT_EQ(in_place.Read(), y.Read());
  for (const Write write : {Write::kOverwrite, Write::kAccumulate}) {
    Floats dx = Gradient(count(), write);
    LogisticBackward(Floats(x).data(), Floats(dy).data(), write, dx.data(), count(), stream());
    ExpectGradient([&](const Doubles& v) { return Dot(dy, LogisticInDouble(v)); }, x, dx, 1e-5,
                   Base(write));
  }
}

TEST_P(LogisticTest, Half) {
  ForWrites([&](ElementType type, Write write, float before) {
    const Typed x = RandomOf(type, count(), -2, 2), dy = RandomOf(type, count());
    Typed y(type, count(), 100), dx(type, count(), before);
    Logistic(x.half(), y.half(), count(), stream());
    Logistic(x.floats(), y.floats(), count(), stream());
    y.ExpectRounded();
    LogisticBackward(x.half(), dy.half(), write, dx.half(), count(), stream());
    LogisticBackward(x.floats(), dy.floats(), write, dx.floats(), count(), stream());
    dx.ExpectRounded();
  });
}

INSTANTIATE_TEST_SUITE_P(Devices, LogisticTest, testing::ValuesIn(OpCases()), OpCaseName);

class LogisticValues : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Devices, LogisticValues, testing::ValuesIn(OneCaseADevice()), OpCaseName);

// torch.sigmoid(x) in float64, and its gradient.
TEST_P(LogisticValues, AreThoseOfPyTorch) {
  const Floats x(Doubles{0.5, -1.25, 2, 0, 3.5, -0.75}), dy(Doubles{1, -0.5, 0.25, 2, 0.75, -1.5});
  Floats y(6), dx(6);
  Logistic(x.data(), y.data(), 6, stream());
  ExpectNear({0.6224593312018546, 0.22270013882530884, 0.8807970779778823, 0.5, 0.9706877692486436,
              0.320821300824607},
             y, kLogisticTolerance);
  LogisticBackward(x.data(), dy.data(), Write::kOverwrite, dx.data(), 6, stream());
  ExpectNear({0.2350037122015945, -0.0865523934962485, 0.026248396350876654, 0.5,
              0.0213397679098017, -0.32684249064272103},
             dx, kLogisticTolerance);
}

TEST_P(LogisticValues, AreStableAndKeepNan) {
  const Floats x(std::vector<float>{1000, -1000, -INFINITY, NAN});
  Floats y(4);
  Logistic(x.data(), y.data(), 4, stream());
  EXPECT_EQ(y.Read()[0], 1);
  EXPECT_EQ(y.Read()[1], 0);
  EXPECT_EQ(y.Read()[2], 0);
  EXPECT_TRUE(std::isnan(y.Read()[3]));
}

}  // namespace
}  // namespace cistern::op
