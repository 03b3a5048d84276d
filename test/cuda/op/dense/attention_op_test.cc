// Softmax with a mask, the mask of sequences, and the swap of axes: what an attention needs beside
// matrix products; of floats and of 16-bit elements.
#include "cuda/op/dense/sequence_mask.h"
#include "cuda/op/dense/softmax.h"
#include "cuda/op/dense/swap_axes.h"
#include "test/cuda/op/dense/half_op.h"

namespace cistern::op {
namespace {

constexpr size_t kHeads = 3;

// Tensors are [b, heads, k, n].
class AttentionOpTest : public HalfOpTest {
 protected:
  size_t size() const { return kHeads * count(); }

  // 0 or 1; all of every fourth row is 0.
  Doubles RandomMask() {
    Doubles mask = Random(count());
    for (size_t i = 0; i < mask.size(); ++i) mask[i] = mask[i] > 0 && i / n() % 4 != 3 ? 1 : 0;
    return mask;
  }

  // By definition in double, where no exponent of -10000 + x costs a digit that shows.
  Doubles MaskedSoftmaxInDouble(const Doubles& x, const Doubles& mask, double factor) const {
    Doubles y(x.size());
    for (size_t row = 0; row < b() * kHeads * k(); ++row) {
      const size_t from = (row / (kHeads * k()) * k() + row % k()) * n();
      const auto exponent = [&](size_t c) {
        return factor * x[row * n() + c] - 10000 * (1 - mask[from + c]);
      };
      double largest = -INFINITY, sum = 0;
      for (size_t c = 0; c < n(); ++c) largest = std::max(largest, exponent(c));
      for (size_t c = 0; c < n(); ++c) sum += std::exp(exponent(c) - largest);
      for (size_t c = 0; c < n(); ++c) y[row * n() + c] = std::exp(exponent(c) - largest) / sum;
    }
    return y;
  }
};

TEST_P(AttentionOpTest, MaskedSoftmaxIsTheShareOfEachKeptExponential) {
  const Doubles x = Random(size(), -3, 3), dy = Random(size()), mask = RandomMask();
  const Floats kept(mask);
  const auto forward = [&](const Doubles& v) { return MaskedSoftmaxInDouble(v, mask, 0.25); };
  Floats y(size(), kUnset);
  MaskedSoftmax(0.25f, Floats(x).data(), kept.data(), y.data(), b(), kHeads, k(), n(), stream());
  ExpectNear(forward(x), y, 1e-6);
  Floats in_place(x);
  MaskedSoftmax(0.25f, in_place.data(), kept.data(), in_place.data(), b(), kHeads, k(), n(),
                stream());
  EXPECT_EQ(in_place.Read(), y.Read());
  Floats dx(size(), kUnset);
  SoftmaxBackward(0.25f, y.data(), Floats(dy).data(), Write::kOverwrite, dx.data(),
                  b() * kHeads * k(), n(), stream());
  ExpectGradient([&](const Doubles& v) { return Dot(dy, forward(v)); }, x, dx, 1e-5);
}

TEST_P(AttentionOpTest, ARowOfWhichAllIsMaskedIsWhatItIsWithoutAMask) {
  const Doubles x = Random(size(), -3, 3);
  const Floats input(x), nothing(count(), 0.0f);
  Floats y(size(), kUnset), plain(size(), kUnset);
  MaskedSoftmax(0.5f, input.data(), nothing.data(), y.data(), b(), kHeads, k(), n(), stream());
  Softmax(0.5f, input.data(), plain.data(), b() * kHeads * k(), n(), stream());
  EXPECT_EQ(y.Read(), plain.Read());
}

TEST_P(AttentionOpTest, SwapAxesMovesEachVector) {
  const Doubles x = Random(size());
  for (const Write write : {Write::kOverwrite, Write::kAccumulate}) {
    Floats y = Gradient(size(), write);
    SwapAxes(Floats(x).data(), write, y.data(), b(), kHeads, k(), n(), stream());
    Doubles expected(size());
    for (size_t i = 0; i < size(); ++i) {
      const size_t c = i % n(), j = i / n() % k(), head = i / n() / k() % kHeads,
                   sample = i / n() / k() / kHeads;
      expected[((sample * k() + j) * kHeads + head) * n() + c] = x[i] + Base(write);
    }
    ExpectNear(expected, y, 1e-6);
  }
}

// Lengths from -1 to beyond the longest, with fractions.
TEST_P(AttentionOpTest, SequenceMaskKeepsWhatIsWithinBothLengths) {
  const Doubles from = Random(b(), -1, static_cast<double>(k()) + 2);
  const Doubles to = Random(b(), -1, static_cast<double>(n()) + 2);
  Floats y(count(), kUnset);
  SequenceMask(Floats(from).data(), Floats(to).data(), y.data(), b(), k(), n(), stream());
  Doubles expected(count());
  for (size_t i = 0; i < count(); ++i) {
    const size_t sample = i / n() / k(), row = i / n() % k(), column = i % n();
    expected[i] = static_cast<double>(row) < std::trunc(from[sample]) &&
                          static_cast<double>(column) < std::trunc(to[sample])
                      ? 1
                      : 0;
  }
  ExpectNear(expected, y, 0);
}

TEST_P(AttentionOpTest, Half) {
  ForWrites([&](ElementType type, Write write, float before) {
    const Typed x = RandomOf(type, size(), -2, 2), mask(type, RandomMask());
    Typed y(type, size(), 100), swapped(type, size(), before), lengths(type, b(), 3),
        made(type, count(), 100);
    MaskedSoftmax(1.5f, x.half(), mask.half(), y.half(), b(), kHeads, k(), n(), stream());
    MaskedSoftmax(1.5f, x.floats(), mask.floats(), y.floats(), b(), kHeads, k(), n(), stream());
    y.ExpectRounded();
    SwapAxes(x.half(), write, swapped.half(), b(), kHeads, k(), n(), stream());
    SwapAxes(x.floats(), write, swapped.floats(), b(), kHeads, k(), n(), stream());
    swapped.ExpectRounded();
    SequenceMask(lengths.half(), lengths.half(), made.half(), b(), k(), n(), stream());
    SequenceMask(lengths.floats(), lengths.floats(), made.floats(), b(), k(), n(), stream());
    made.ExpectRounded();
  });
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionOpTest, testing::ValuesIn(OpCasesOfFewSamples()),
                         OpCaseName);

class SequenceMaskValues : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Devices, SequenceMaskValues, testing::ValuesIn(OneCaseADevice()),
                         OpCaseName);

TEST_P(SequenceMaskValues, ALengthThatIsNoNumberIsZero) {
  const Floats from(std::vector<float>{NAN, 2, 1, INFINITY}), to(std::vector<float>{2, NAN, 9, 1});
  Floats y(16, kUnset);
  SequenceMask(from.data(), to.data(), y.data(), 4, 2, 2, stream());
  EXPECT_EQ(y.Read(), (std::vector<float>{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 0, 1, 0}));
}

}  // namespace
}  // namespace cistern::op
