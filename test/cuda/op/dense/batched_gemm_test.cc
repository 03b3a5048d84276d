// Many small matrix products, of floats and of 16-bit elements.
#include "cuda/op/dense/batched_gemm.h"

#include "test/cuda/op/dense/half_op.h"

namespace cistern::op {
namespace {

// Cases are [m, k] times [k, n], with m = b.
class BatchedGemmTest : public HalfOpTest {
 protected:
  size_t m() const { return b(); }

  Doubles Reference(bool ta, bool tb, size_t batch, const Doubles& left, const Doubles& right) {
    Doubles c(batch * m() * n());
    for (size_t i = 0; i < c.size(); ++i) {
      const size_t product = i / (m() * n()), row = i / n() % m(), column = i % n();
      for (size_t j = 0; j < k(); ++j) {
        c[i] += left[product * m() * k() + (ta ? j * m() + row : row * k() + j)] *
                right[product * k() * n() + (tb ? column * k() + j : j * n() + column)];
      }
    }
    return c;
  }
};

TEST_P(BatchedGemmTest, IsTheProductOfEachPair) {
  for (const size_t batch : {0, 1, 5}) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        const Doubles left = Random(batch * m() * k()), right = Random(batch * k() * n());
        Doubles expected = Reference(ta, tb, batch, left, right);
        for (const Write write : {Write::kOverwrite, Write::kAccumulate}) {
          Floats c = Gradient(expected.size(), write);
          BatchedGemm(ta ? Transpose::kYes : Transpose::kNo, tb ? Transpose::kYes : Transpose::kNo,
                      batch, m(), n(), k(), Floats(left).data(), Floats(right).data(), write,
                      c.data(), stream());
          Doubles sum = expected;
          for (double& v : sum) v += Base(write);
          ExpectNear(sum, c, 3e-6);
        }
      }
    }
  }
}

TEST_P(BatchedGemmTest, Half) {
  ForWrites([&](ElementType type, Write write, float before) {
    const Typed left = RandomOf(type, 3 * m() * k()), right = RandomOf(type, 3 * k() * n());
    Typed c(type, 3 * m() * n(), before);
    BatchedGemm(Transpose::kNo, Transpose::kYes, 3, m(), n(), k(), left.half(), right.half(), write,
                c.half(), stream());
    BatchedGemm(Transpose::kNo, Transpose::kYes, 3, m(), n(), k(), left.floats(), right.floats(),
                write, c.floats(), stream());
    c.ExpectRounded();
  });
}

INSTANTIATE_TEST_SUITE_P(Devices, BatchedGemmTest, testing::ValuesIn(OpCases()), OpCaseName);

}  // namespace
}  // namespace cistern::op
