// Arithmetic and activations of 16-bit elements.
#include "test/cuda/op/dense/half_op.h"
#include "cuda/op/dense/copy_columns.h"
#include "cuda/op/dense/dropout.h"
#include "cuda/op/dense/elementwise.h"
#include "cuda/op/dense/elu.h"
#include "cuda/op/dense/fm_order2.h"
#include "cuda/op/dense/multiply.h"
#include "cuda/op/dense/product.h"
#include "cuda/op/dense/reduce_sum.h"
#include "cuda/op/dense/relu.h"

namespace cistern::op {
namespace {

class HalfArithmeticTest : public HalfOpTest {};
INSTANTIATE_TEST_SUITE_P(Devices, HalfArithmeticTest, testing::ValuesIn(OpCases()), OpCaseName);

TEST_P(HalfArithmeticTest, ConvertRoundsToNearestAndOverflowsToInfinity) {
  ForTypes([&](ElementType type) {
    Doubles x = Random(count(), -1e6, 1e6);
    for (size_t i = 0; i < x.size(); i += 3) x[i] *= 1e-9;
    const Floats from(x);
    Array<HalfBits> to(x.size(), HalfBits{7});
    Floats back(x.size(), kUnset);
    Convert(from.data(), Values(to.data(), type), x.size(), stream());
    Convert(ConstValues(to.data(), type), back.data(), x.size(), stream());
    const std::vector<HalfBits>& bits = to.Read();
    const std::vector<float>& values = back.Read();
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(bits[i], BitsOf(static_cast<float>(x[i]), type)) << x[i];
      ASSERT_EQ(values[i], ValueOf(bits[i], type));
      if (type == ElementType::kHalf && std::abs(x[i]) > 65520) {
        ASSERT_TRUE(std::isinf(values[i]));
      }
    }
  });
}

TEST_P(HalfArithmeticTest, ElementwiseArithmetic) {
  ForTypes([&](ElementType type) {
    const Typed a = RandomOf(type, count()), b2 = RandomOf(type, count());
    Typed y(type, count(), 100);
    Add(a.half(), b2.half(), y.half(), count(), stream());
    Add(a.floats(), b2.floats(), y.floats(), count(), stream());
    y.ExpectRounded();
    Typed sum = RandomOf(type, count());
    Accumulate(a.half(), sum.half(), count(), stream());
    Accumulate(a.floats(), sum.floats(), count(), stream());
    sum.ExpectRounded();
    Fill(0.3f, y.half(), count(), stream());
    Fill(0.3f, y.floats(), count(), stream());
    y.ExpectRounded();
  });
}

TEST_P(HalfArithmeticTest, Activations) {
  const DropoutDraw draw = {0.3f, 11, 5};
  const size_t width = k() * n();
  ForWrites([&](ElementType type, Write write, float before) {
    const Typed x = RandomOf(type, count()), dy = RandomOf(type, count());
    Typed y(type, count(), 100), dx(type, count(), before);
    Relu(x.half(), y.half(), count(), stream());
    Relu(x.floats(), y.floats(), count(), stream());
    y.ExpectRounded();
    ReluBackward(y.half(), dy.half(), write, dx.half(), count(), stream());
    ReluBackward(y.floats(), dy.floats(), write, dx.floats(), count(), stream());
    dx.ExpectRounded();

    Typed dropped(type, count(), 100), dropped_dx(type, count(), before);
    ReluDropout(x.half(), draw, dropped.half(), b(), width, stream());
    ReluDropout(x.floats(), draw, dropped.floats(), b(), width, stream());
    dropped.ExpectRounded();
    ReluDropoutBackward(dropped.half(), dy.half(), draw.rate, write, dropped_dx.half(), count(),
                        stream());
    ReluDropoutBackward(dropped.floats(), dy.floats(), draw.rate, write, dropped_dx.floats(),
                        count(), stream());
    dropped_dx.ExpectRounded();

    Typed elu(type, count(), 100), elu_dx(type, count(), before);
    Elu(x.half(), 0.7f, elu.half(), count(), stream());
    Elu(x.floats(), 0.7f, elu.floats(), count(), stream());
    elu.ExpectRounded();
    EluBackward(x.half(), 0.7f, dy.half(), write, elu_dx.half(), count(), stream());
    EluBackward(x.floats(), 0.7f, dy.floats(), write, elu_dx.floats(), count(), stream());
    elu_dx.ExpectRounded();
  });
}

TEST_P(HalfArithmeticTest, DropoutKeepsTheSameElements) {
  const DropoutDraw draw = {0.5f, 3, 9};
  const size_t width = k() * n();
  ForWrites([&](ElementType type, Write write, float before) {
    const Typed x = RandomOf(type, count()), dy = RandomOf(type, count());
    Typed y(type, count(), 100), dx(type, count(), before);
    Array<uint8_t> mask(count(), 7), float_mask(count(), 7);
    Dropout(x.half(), draw, y.half(), mask.data(), b(), width, stream());
    Dropout(x.floats(), draw, y.floats(), float_mask.data(), b(), width, stream());
    y.ExpectRounded();
    EXPECT_EQ(mask.Read(), float_mask.Read());
    DropoutBackward(dy.half(), mask.data(), draw.rate, write, dx.half(), b(), width, stream());
    DropoutBackward(dy.floats(), mask.data(), draw.rate, write, dx.floats(), b(), width, stream());
    dx.ExpectRounded();
  });
}

TEST_P(HalfArithmeticTest, ColumnsAndSums) {
  ForWrites([&](ElementType type, Write write, float before) {
    // Alignments that no vectorized load fits, and one that fits if n is a multiple of 8.
    for (const size_t aligned : {1, 8}) {
      const size_t from = n() + 3 * aligned, to = n() + 5 * aligned;
      const Typed x = RandomOf(type, b() * from + aligned);
      Typed y(type, b() * to + 2 * aligned, before);
      CopyColumns(x.half() + aligned, from, write, y.half() + 2 * aligned, to, b(), n(), stream());
      CopyColumns(x.floats() + aligned, from, write, y.floats() + 2 * aligned, to, b(), n(),
                  stream());
      y.ExpectRounded();
    }

    const Typed in = RandomOf(type, count()), dy = RandomOf(type, b() * n());
    Typed sum(type, b() * n(), 100), dx(type, count(), before);
    ScaledSum(1, in.half(), Write::kOverwrite, sum.half(), b(), k(), n(), stream());
    ScaledSum(1, in.floats(), Write::kOverwrite, sum.floats(), b(), k(), n(), stream());
    sum.ExpectRounded();
    ScaledRepeat(1, dy.half(), write, dx.half(), b(), k(), n(), stream());
    ScaledRepeat(1, dy.floats(), write, dx.floats(), b(), k(), n(), stream());
    dx.ExpectRounded();
    Typed scaled(type, b() * n(), before), repeated(type, count(), before);
    ScaledSum(-0.5f, in.half(), write, scaled.half(), b(), k(), n(), stream());
    ScaledSum(-0.5f, in.floats(), write, scaled.floats(), b(), k(), n(), stream());
    scaled.ExpectRounded();
    ScaledRepeat(-0.5f, dy.half(), write, repeated.half(), b(), k(), n(), stream());
    ScaledRepeat(-0.5f, dy.floats(), write, repeated.floats(), b(), k(), n(), stream());
    repeated.ExpectRounded();
    Typed over_rows(type, k() * n(), 100);
    ScaledSum(1, in.half(), Write::kOverwrite, over_rows.half(), 1, b(), k() * n(), stream());
    ScaledSum(1, in.floats(), Write::kOverwrite, over_rows.floats(), 1, b(), k() * n(), stream());
    over_rows.ExpectRounded();
  });
}

TEST_P(HalfArithmeticTest, Products) {
  ForWrites([&](ElementType type, Write write, float before) {
    std::vector<Typed> x;
    for (int f = 0; f < 3; ++f) x.push_back(RandomOf(type, count()));
    const std::vector<ConstValues> half = {std::as_const(x[0]).half(), std::as_const(x[1]).half(),
                                           std::as_const(x[2]).half()};
    const std::vector<ConstValues> floats = {x[0].floats(), x[1].floats(), x[2].floats()};
    Typed y(type, count(), 100), dx(type, count(), before);
    Product(half.data(), 3, y.half(), count(), stream());
    Product(floats.data(), 3, y.floats(), count(), stream());
    y.ExpectRounded();
    ProductBackward(half.data(), 3, 1, half[0], write, dx.half(), count(), stream());
    ProductBackward(floats.data(), 3, 1, floats[0], write, dx.floats(), count(), stream());
    dx.ExpectRounded();
  });
}

TEST_P(HalfArithmeticTest, Multiplies) {
  ForWrites([&](ElementType type, Write write, float before) {
    const Typed x = RandomOf(type, b() * k()), dy = RandomOf(type, count());
    const Floats weight(Random(k() * n()));
    Floats scratch(MultiplyScratchFloats(b(), k(), n())), dw(k() * n(), kUnset), expected = dw;
    Typed y(type, count(), 100), dx(type, b() * k(), before);
    Multiply(x.half(), weight.data(), y.half(), b(), k(), n(), stream());
    Multiply(x.floats(), weight.data(), y.floats(), b(), k(), n(), stream());
    y.ExpectRounded();
    MultiplyBackward(x.half(), weight.data(), dy.half(), write, dx.half(), dw.data(), b(), k(), n(),
                     scratch.data(), stream());
    MultiplyBackward(x.floats(), weight.data(), dy.floats(), write, dx.floats(), expected.data(),
                     b(), k(), n(), scratch.data(), stream());
    dx.ExpectRounded();
    ExpectSame(expected, dw);
  });
}

TEST_P(HalfArithmeticTest, FactorizationMachines) {
  ForWrites([&](ElementType type, Write write, float before) {
    const Typed x = RandomOf(type, count()), dy = RandomOf(type, b() * n());
    Typed y(type, b() * n(), 100), dx(type, count(), before);
    FmOrder2(x.half(), k() * n(), y.half(), b(), k(), n(), stream());
    FmOrder2(x.floats(), k() * n(), y.floats(), b(), k(), n(), stream());
    y.ExpectRounded();
    FmOrder2Backward(x.half(), k() * n(), dy.half(), write, dx.half(), b(), k(), n(), stream());
    FmOrder2Backward(x.floats(), k() * n(), dy.floats(), write, dx.floats(), b(), k(), n(),
                     stream());
    dx.ExpectRounded();
  });
}

}  // namespace
}  // namespace cistern::op
