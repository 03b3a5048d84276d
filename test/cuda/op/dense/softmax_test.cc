// Softmax, of floats and of 16-bit elements.
#include "cuda/op/dense/softmax.h"

#include "test/cuda/op/dense/half_op.h"

namespace cistern::op {
namespace {

constexpr double kSoftmaxTolerance = 1e-6, kSoftmaxGradientTolerance = 1e-5;

class SoftmaxTest : public HalfOpTest {
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

TEST_P(SoftmaxTest, IsTheShareOfEachExponential) {
  const Doubles x = Random(count(), -3, 3), dy = Random(count());
  for (const float factor : {1.0f, 0.25f}) {
    const auto forward = [&](const Doubles& v) {
      return SoftmaxInDouble(v, static_cast<double>(factor));
    };
    Floats y(count(), kUnset);
    Softmax(factor, Floats(x).data(), y.data(), b(), width(), stream());
    ExpectNear(forward(x), y, kSoftmaxTolerance);
    Floats in_place(x);
    Softmax(factor, in_place.data(), in_place.data(), b(), width(), stream());
    EXPECT_EQ(in_place.Read(), y.Read());
    for (const Write write : {Write::kOverwrite, Write::kAccumulate}) {
      Floats dx = Gradient(count(), write);
      SoftmaxBackward(factor, y.data(), Floats(dy).data(), write, dx.data(), b(), width(),
                      stream());
      ExpectGradient([&](const Doubles& v) { return Dot(dy, forward(v)); }, x, dx,
                     kSoftmaxGradientTolerance, Base(write));
    }
    Floats same(dy), apart(count(), kUnset);
    SoftmaxBackward(factor, y.data(), same.data(), Write::kOverwrite, same.data(), b(), width(),
                    stream());
    SoftmaxBackward(factor, y.data(), Floats(dy).data(), Write::kOverwrite, apart.data(), b(),
                    width(), stream());
    EXPECT_EQ(same.Read(), apart.Read());
  }
}

TEST_P(SoftmaxTest, Half) {
  ForWrites([&](ElementType type, Write write, float before) {
    const Typed x = RandomOf(type, count(), -2, 2), dy = RandomOf(type, count());
    Typed y(type, count(), 100), dx(type, count(), before);
    Softmax(1.5f, x.half(), y.half(), b(), width(), stream());
    Softmax(1.5f, x.floats(), y.floats(), b(), width(), stream());
    y.ExpectRounded();
    SoftmaxBackward(1.5f, x.half(), dy.half(), write, dx.half(), b(), width(), stream());
    SoftmaxBackward(1.5f, x.floats(), dy.floats(), write, dx.floats(), b(), width(), stream());
    if (width() < 100) dx.ExpectRounded();  // x is no softmax, and its sums grow with the width
  });
}

INSTANTIATE_TEST_SUITE_P(Devices, SoftmaxTest, testing::ValuesIn(OpCases()), OpCaseName);

class SoftmaxValues : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Devices, SoftmaxValues, testing::ValuesIn(OneCaseADevice()), OpCaseName);

// torch.softmax(1.5 * x, -1) in float64, and its gradient.
TEST_P(SoftmaxValues, AreThoseOfPyTorch) {
  const Floats x(Doubles{0.5, -1.25, 2, 0, 3.5, -0.75}), dy(Doubles{1, -0.5, 0.25, 2, 0.75, -1.5});
  Floats y(6), dx(6);
  Softmax(1.5f, x.data(), y.data(), 2, 3, stream());
  ExpectNear({0.09469539508658109, 0.006859711412334384, 0.8984448935010845, 0.005211293974589327,
              0.9930968465784307, 0.0016918594469801263},
             y, kSoftmaxTolerance);
  SoftmaxBackward(1.5f, y.data(), dy.data(), Write::kOverwrite, dx.data(), 2, 3, stream());
  ExpectNear({0.09717498035814187, -0.008395018710800407, -0.08877996164734142,
              0.009750012352865918, -0.004033115823352524, -0.005716896529513354},
             dx, kSoftmaxTolerance);
}

TEST_P(SoftmaxValues, AreStableAndKeepNan) {
  const Floats x(std::vector<float>{1000, -1000, 1000, -INFINITY, 0, NAN, -INFINITY, 1});
  Floats y(8);
  Softmax(1, x.data(), y.data(), 2, 4, stream());
  ExpectNear({0.5, 0, 0.5, 0}, Floats(std::vector<float>(y.Read().begin(), y.Read().begin() + 4)),
             0);
  for (size_t c = 4; c < 8; ++c) EXPECT_TRUE(std::isnan(y.Read()[c]));
}

}  // namespace
}  // namespace cistern::op
