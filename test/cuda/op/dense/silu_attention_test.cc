// SiLU, the shares of HSTU's attention and the gradient of its bias, of floats and of 16-bit
// elements.
#include "cuda/op/dense/silu_attention.h"

#include "test/cuda/op/dense/half_op.h"

namespace cistern::op {
namespace {

constexpr size_t kSiluHeads = 3;

double SiluInDouble(double z) {
  return z / (1 + std::exp(-z));
}

// Scores are [samples, heads, length, length], smaller than the shapes of other ops.
class SiluAttentionTest : public HalfOpTest {
 protected:
  size_t samples() const { return std::min<size_t>(b(), 5); }
  size_t length() const { return std::min<size_t>(n(), 9); }
  size_t size() const { return samples() * kSiluHeads * length() * length(); }
  size_t distances() const { return length() == 0 ? 0 : kSiluHeads * (2 * length() - 1); }

  // 0 or 1; all of every third row is 0.
  Doubles RandomMask() {
    Doubles mask = Random(samples() * length() * length());
    for (size_t i = 0; i < mask.size(); ++i) {
      mask[i] = mask[i] > -0.5 && i / length() % 3 != 2 ? 1 : 0;
    }
    return mask;
  }

  Doubles Shares(const Doubles& x, const Doubles& bias, const Doubles& mask, bool causal) const {
    const size_t n = length();
    Doubles y(x.size());
    for (size_t at = 0; at < x.size(); ++at) {
      const size_t j = at % n, i = at / n % n, head = at / n / n % kSiluHeads,
                   sample = at / n / n / kSiluHeads;
      if (causal && j > i) continue;
      const double kept = mask.empty() ? 1 : mask[(sample * n + i) * n + j];
      const double z = x[at] + bias[head * (2 * n - 1) + i - j + n - 1];
      y[at] = kept * SiluInDouble(z) / static_cast<double>(n);
    }
    return y;
  }
};

TEST_P(SiluAttentionTest, SiluIsItsFormula) {
  const Doubles x = Random(count(), -20, 20), dy = Random(count());
  const auto forward = [&](const Doubles& v) {
    Doubles y;
    for (const double z : v) y.push_back(SiluInDouble(z));
    return y;
  };
  Floats y(count(), kUnset);
  Silu(Floats(x).data(), y.data(), count(), stream());
  ExpectNear(forward(x), y, 2e-6);
  for (const Write write : {Write::kOverwrite, Write::kAccumulate}) {
    Floats dx = Gradient(count(), write);
    SiluBackward(Floats(x).data(), Floats(dy).data(), write, dx.data(), count(), stream());
    Doubles expected(count());
    for (size_t i = 0; i < count(); ++i) {
      const double s = 1 / (1 + std::exp(-x[i]));
      expected[i] = Base(write) + dy[i] * (s + x[i] * s * (1 - s));
    }
    ExpectNear(expected, dx, 3e-6);
  }
}

TEST_P(SiluAttentionTest, SharesAreThoseOfKeptPairsWithTheirDistance) {
  const Doubles x = Random(size(), -3, 3), bias = Random(distances(), -1, 1), dy = Random(size());
  for (const bool causal : {false, true}) {
    for (const bool masked : {false, true}) {
      const Doubles mask = masked ? RandomMask() : Doubles();
      const Floats kept(mask), biases(bias), scores(x);
      const float* const no_mask = nullptr;
      const SiluAttention of = {
          biases.data(), masked ? kept.data() : no_mask, causal, samples(), kSiluHeads, length()};
      Floats y(size(), kUnset), dx(dy), dbias(distances(), kUnset);
      SiluShares(of, scores.data(), y.data(), stream());
      ExpectNear(Shares(x, bias, mask, causal), y, 1e-6);
      SiluSharesBackward(of, scores.data(), dx.data(), dx.data(), stream());
      ExpectGradient([&](const Doubles& v) { return Dot(dy, Shares(v, bias, mask, causal)); }, x,
                     dx, 1e-5);
      RelativeBiasGradient(dx.data(), dbias.data(), samples(), kSiluHeads, length(), stream());
      ExpectGradient([&](const Doubles& v) { return Dot(dy, Shares(x, v, mask, causal)); }, bias,
                     dbias, 1e-5);
    }
  }
}

TEST_P(SiluAttentionTest, Half) {
  ForWrites([&](ElementType type, Write write, float before) {
    const Typed x = RandomOf(type, size(), -2, 2), dy = RandomOf(type, size()),
                mask(type, RandomMask());
    const Floats bias(Random(distances()));
    const auto of = [&](ConstValues kept) {
      return SiluAttention{bias.data(), kept, true, samples(), kSiluHeads, length()};
    };
    Typed y(type, size(), 100), dx(type, size(), 100), silu(type, size(), 100),
        back(type, size(), before);
    SiluShares(of(mask.half()), x.half(), y.half(), stream());
    SiluShares(of(mask.floats()), x.floats(), y.floats(), stream());
    y.ExpectRounded();
    SiluSharesBackward(of(mask.half()), x.half(), dy.half(), dx.half(), stream());
    SiluSharesBackward(of(mask.floats()), x.floats(), dy.floats(), dx.floats(), stream());
    dx.ExpectRounded();
    Silu(x.half(), silu.half(), size(), stream());
    Silu(x.floats(), silu.floats(), size(), stream());
    silu.ExpectRounded();
    SiluBackward(x.half(), dy.half(), write, back.half(), size(), stream());
    SiluBackward(x.floats(), dy.floats(), write, back.floats(), size(), stream());
    back.ExpectRounded();
  });
}

INSTANTIATE_TEST_SUITE_P(Devices, SiluAttentionTest, testing::ValuesIn(OpCases()), OpCaseName);

}  // namespace
}  // namespace cistern::op
