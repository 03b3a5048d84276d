// Softmax and the logistic function, of floats and of 16-bit elements.
#include "cuda/op/dense/softmax.h"

#include "cuda/op/dense/logistic.h"
#include "test/cuda/op/dense/half_op.h"

namespace cistern::op {
namespace {

constexpr double kForwardTolerance = 1e-6, kGradientTolerance = 1e-5;

class SoftActivationTest : public HalfOpTest {
 protected:
  // The matrix is [b, k * n]: rows of every width.
  size_t width() const { return k() * n(); }

  // By definition, without subtracting the largest exponent.
  Doubles SoftmaxInDouble(const Doubles& x, double factor) const {
    Doubles y(x.size());
    for (size_t r = 0; r < b(); ++r) {
      double sum = 0;
      for (size_t c = 0; c < width(); ++c) sum += std::exp(factor * x[r * width() + c]);
      for (size_t c = 0; c < width(); ++c) {
        y[r * width() + c] = std::exp(factor * x[r * width() + c]) / sum;
      }
    }
    return y;
  }
};

Doubles LogisticInDouble(const Doubles& x) {
  Doubles y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = 1 / (1 + std::exp(-x[i]));
  return y;
}

TEST_P(SoftActivationTest, SoftmaxIsTheShareOfEachExponential) {
  const Doubles x = Random(count(), -3, 3), dy = Random(count());
  for (const float factor : {1.0f, 0.25f}) {
    const auto forward = [&](const Doubles& v) {
      return SoftmaxInDouble(v, static_cast<double>(factor));
    };
    Floats y(count(), kUnset);
    Softmax(factor, Floats(x).data(), y.data(), b(), width(), stream());
    ExpectNear(forward(x), y, kForwardTolerance);
    Floats in_place(x);
    Softmax(factor, in_place.data(), in_place.data(), b(), width(), stream());
    EXPECT_EQ(in_place.Read(), y.Read());
    for (const Write write : {Write::kOverwrite, Write::kAccumulate}) {
      Floats dx = Gradient(count(), write);
      SoftmaxBackward(factor, y.data(), Floats(dy).data(), write, dx.data(), b(), width(),
                      stream());
      ExpectGradient([&](const Doubles& v) { return Dot(dy, forward(v)); }, x, dx,
                     kGradientTolerance, Base(write));
    }
    Floats same(dy), apart(count(), kUnset);
    SoftmaxBackward(factor, y.data(), same.data(), Write::kOverwrite, same.data(), b(), width(),
                    stream());
    SoftmaxBackward(factor, y.data(), Floats(dy).data(), Write::kOverwrite, apart.data(), b(),
                    width(), stream());
    EXPECT_EQ(same.Read(), apart.Read());
  }
}

TEST_P(SoftActivationTest, LogisticIsItsFormula) {
  const Doubles x = Random(count(), -20, 20), dy = Random(count());
  Floats y(count(), kUnset);
  Logistic(Floats(x).data(), y.data(), count(), stream());
  ExpectNear(LogisticInDouble(x), y, kForwardTolerance);
  Floats in_place(x);
  Logistic(in_place.data(), in_place.data(), count(), stream());
  EXPECT_EQ(in_place.Read(), y.Read());
  for (const Write write : {Write::kOverwrite, Write::kAccumulate}) {
    Floats dx = Gradient(count(), write);
    LogisticBackward(Floats(x).data(), Floats(dy).data(), write, dx.data(), count(), stream());
    ExpectGradient([&](const Doubles& v) { return Dot(dy, LogisticInDouble(v)); }, x, dx,
                   kGradientTolerance, Base(write));
  }
}

TEST_P(SoftActivationTest, Half) {
  ForWrites([&](ElementType type, Write write, float before) {
    const Typed x = RandomOf(type, count(), -2, 2), dy = RandomOf(type, count());
    Typed y(type, count(), 100), dx(type, count(), before);
    Softmax(1.5f, x.half(), y.half(), b(), width(), stream());
    Softmax(1.5f, x.floats(), y.floats(), b(), width(), stream());
    y.ExpectRounded();
    SoftmaxBackward(1.5f, x.half(), dy.half(), write, dx.half(), b(), width(), stream());
    SoftmaxBackward(1.5f, x.floats(), dy.floats(), write, dx.floats(), b(), width(), stream());
    if (width() < 100) dx.ExpectRounded();  // x is no softmax, and its sums grow with the width

    Typed s(type, count(), 100), ds(type, count(), before);
    Logistic(x.half(), s.half(), count(), stream());
    Logistic(x.floats(), s.floats(), count(), stream());
    s.ExpectRounded();
    LogisticBackward(x.half(), dy.half(), write, ds.half(), count(), stream());
    LogisticBackward(x.floats(), dy.floats(), write, ds.floats(), count(), stream());
    ds.ExpectRounded();
  });
}

INSTANTIATE_TEST_SUITE_P(Devices, SoftActivationTest, testing::ValuesIn(OpCases()), OpCaseName);

class SoftActivationValues : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Devices, SoftActivationValues, testing::ValuesIn(OneCaseADevice()),
                         OpCaseName);

// torch.softmax(1.5 * x, -1) and torch.sigmoid(x) in float64, and their gradients.
TEST_P(SoftActivationValues, AreThoseOfPyTorch) {
  const Floats x(Doubles{0.5, -1.25, 2, 0, 3.5, -0.75}), dy(Doubles{1, -0.5, 0.25, 2, 0.75, -1.5});
  Floats y(6), dx(6);
  Softmax(1.5f, x.data(), y.data(), 2, 3, stream());
  ExpectNear({0.09469539508658109, 0.006859711412334384, 0.8984448935010845, 0.005211293974589327,
              0.9930968465784307, 0.0016918594469801263},
             y, kForwardTolerance);
  SoftmaxBackward(1.5f, y.data(), dy.data(), Write::kOverwrite, dx.data(), 2, 3, stream());
  ExpectNear({0.09717498035814187, -0.008395018710800407, -0.08877996164734142,
              0.009750012352865918, -0.004033115823352524, -0.005716896529513354},
             dx, kForwardTolerance);
  Logistic(x.data(), y.data(), 6, stream());
  ExpectNear({0.6224593312018546, 0.22270013882530884, 0.8807970779778823, 0.5, 0.9706877692486436,
              0.320821300824607},
             y, kForwardTolerance);
  LogisticBackward(x.data(), dy.data(), Write::kOverwrite, dx.data(), 6, stream());
  ExpectNear({0.2350037122015945, -0.0865523934962485, 0.026248396350876654, 0.5,
              0.0213397679098017, -0.32684249064272103},
             dx, kForwardTolerance);
}

TEST_P(SoftActivationValues, AreStableAndKeepNan) {
  const Floats x(std::vector<float>{1000, -1000, 1000, -INFINITY, 0, NAN, -INFINITY, 1});
  Floats y(8), s(8);
  Softmax(1, x.data(), y.data(), 2, 4, stream());
  Logistic(x.data(), s.data(), 8, stream());
  ExpectNear({0.5, 0, 0.5, 0}, Floats(std::vector<float>(y.Read().begin(), y.Read().begin() + 4)),
             0);
  for (size_t c = 4; c < 8; ++c) EXPECT_TRUE(std::isnan(y.Read()[c]));
  EXPECT_EQ(s.Read()[0], 1);
  EXPECT_EQ(s.Read()[1], 0);
  EXPECT_EQ(s.Read()[3], 0);
  EXPECT_TRUE(std::isnan(s.Read()[5]));
}

}  // namespace
}  // namespace cistern::op
