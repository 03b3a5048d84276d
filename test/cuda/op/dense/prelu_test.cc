// PReLU, of floats and of 16-bit elements.
#include "cuda/op/dense/prelu.h"

#include "test/cuda/op/dense/half_op.h"

namespace cistern::op {
namespace {

Doubles PreluInDouble(const Doubles& x, const Doubles& slope) {
  Doubles y = x;
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = std::max(x[i], 0.0) + slope[i % slope.size()] * std::min(x[i], 0.0);
  }
  return y;
}

// The matrix is [b, k * n]: rows of every width.
class PreluTest : public HalfOpTest {
 protected:
  size_t width() const { return k() * n(); }
};

TEST_P(PreluTest, IsItsFormulaWithTheGradients) {
  const Doubles x = Random(count()), slope = Random(width()), dy = Random(count());
  Floats y(count(), kUnset);
  Prelu(Floats(x).data(), Floats(slope).data(), y.data(), b(), width(), stream());
  ExpectNear(PreluInDouble(x, slope), y, 1e-6);
  for (const Write write : {Write::kOverwrite, Write::kAccumulate}) {
    Floats dx = Gradient(count(), write), dslope(width(), kUnset);
    Floats scratch(PreluScratchFloats(b(), width()), kUnset);
    PreluBackward(Floats(x).data(), Floats(slope).data(), Floats(dy).data(), write, dx.data(),
                  dslope.data(), b(), width(), scratch.data(), stream());
    ExpectGradient([&](const Doubles& v) { return Dot(dy, PreluInDouble(v, slope)); }, x, dx, 1e-5,
                   Base(write));
    ExpectGradient([&](const Doubles& v) { return Dot(dy, PreluInDouble(x, v)); }, slope, dslope,
                   1e-5);
  }
}

TEST_P(PreluTest, GradientMayReplaceThatOfTheOutput) {
  const Floats x(Random(count())), slope(Random(width())), dy(Random(count()));
  Floats dx(count(), kUnset), dslope(width(), kUnset), in_place(dy), dslope_in_place(width());
  Floats scratch(PreluScratchFloats(b(), width()), kUnset), dslope_alone(width(), kUnset);
  PreluBackward(x.data(), slope.data(), dy.data(), Write::kOverwrite, dx.data(), dslope.data(), b(),
                width(), scratch.data(), stream());
  PreluBackward(x.data(), slope.data(), in_place.data(), Write::kOverwrite, in_place.data(),
                dslope_in_place.data(), b(), width(), scratch.data(), stream());
  PreluBackward(x.data(), slope.data(), dy.data(), Write::kOverwrite, Values(nullptr),
                dslope_alone.data(), b(), width(), scratch.data(), stream());
  EXPECT_EQ(in_place.Read(), dx.Read());
  EXPECT_EQ(dslope_in_place.Read(), dslope.Read());
  EXPECT_EQ(dslope_alone.Read(), dslope.Read());
}

TEST_P(PreluTest, Half) {
  ForWrites([&](ElementType type, Write write, float before) {
    const Typed x = RandomOf(type, count()), dy = RandomOf(type, count());
    const Floats slope(Random(width()));
    Typed y(type, count(), 100), dx(type, count(), before);
    Floats dslope(width(), kUnset), dslope_floats(width(), kUnset);
    Floats scratch(PreluScratchFloats(b(), width()), kUnset);
    Prelu(x.half(), slope.data(), y.half(), b(), width(), stream());
    Prelu(x.floats(), slope.data(), y.floats(), b(), width(), stream());
    y.ExpectRounded();
    PreluBackward(x.half(), slope.data(), dy.half(), write, dx.half(), dslope.data(), b(), width(),
                  scratch.data(), stream());
    PreluBackward(x.floats(), slope.data(), dy.floats(), write, dx.floats(), dslope_floats.data(),
                  b(), width(), scratch.data(), stream());
    dx.ExpectRounded();
    ExpectSame(dslope, dslope_floats);
  });
}

TEST_P(PreluTest, KeepsNan) {
  Floats x(count(), NAN);
  Prelu(x.data(), Floats(width(), 0.5f).data(), x.data(), b(), width(), stream());
  for (const float v : x.Read()) ASSERT_TRUE(std::isnan(v));
}

INSTANTIATE_TEST_SUITE_P(Devices, PreluTest, testing::ValuesIn(OpCases()), OpCaseName);

}  // namespace
}  // namespace cistern::op
