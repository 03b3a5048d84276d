#include "cuda/op/dense/fully_connected.h"

#include <algorithm>
#include <cmath>

#include "cuda/core/device_context.h"
#include "cuda/op/dense/bias_gradient.h"
#include "cuda/op/dense/gemm.h"
#include "cuda/op/dense/packed_weights.h"
#include "test/cuda/op/op_test.h"

namespace cistern::op {
namespace {

constexpr double kFullyConnectedTolerance = 2e-5;

// a [m, k] times b [k, n].
Doubles Times(const Doubles& a, const Doubles& b, size_t m, size_t k, size_t n) {
  Doubles c(m * n, 0.0);
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < k; ++j) {
      for (size_t l = 0; l < n; ++l) c[i * n + l] += a[i * k + j] * b[j * n + l];
    }
  }
  return c;
}

Doubles Transposed(const Doubles& a, size_t rows, size_t columns) {
  Doubles t(a.size());
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < columns; ++c) t[c * rows + r] = a[r * columns + c];
  }
  return t;
}

Doubles Layer(const Doubles& x, const Doubles& weight, const Doubles& bias, size_t b, size_t k,
              size_t n) {
  Doubles y = Times(x, weight, b, k, n);
  for (size_t i = 0; i < y.size(); ++i) y[i] += bias[i % n];
  return y;
}

class GemmTest : public OpTest {};
class FullyConnectedTest : public OpTest {
 protected:
  size_t ScratchFloats() const {
    return std::max(FullyConnectedScratchFloats(ElementType::kFloat, b(), k(), n()),
                    BiasGradientScratchFloats(b(), n()));
  }
};

TEST_P(GemmTest, IsTheProductForEveryTranspose) {
  const Doubles a = Random(b() * k()), w = Random(k() * n());
  const Doubles expected = Times(a, w, b(), k(), n());
  for (const Transpose ta : {Transpose::kNo, Transpose::kYes}) {
    for (const Transpose tb : {Transpose::kNo, Transpose::kYes}) {
      const Floats left(ta == Transpose::kYes ? Transposed(a, b(), k()) : a);
      const Floats right(tb == Transpose::kYes ? Transposed(w, k(), n()) : w);
      Floats c(b() * n(), kUnset);
      Gemm(ta, tb, b(), n(), k(), left.data(), right.data(), Write::kOverwrite, c.data(), stream());
      ExpectNear(expected, c, kFullyConnectedTolerance);
      Gemm(ta, tb, b(), n(), k(), left.data(), right.data(), Write::kAccumulate, c.data(),
           stream());
      Doubles twice = expected;
      for (double& v : twice) v *= 2;
      ExpectNear(twice, c, kFullyConnectedTolerance);
    }
  }
}

// 11 or 8 bits of each factor are left, whether it is rounded or truncated. That the emulated GPU
// rounds shows that the precision reached it.
TEST_P(GemmTest, RoundsInputsOnlyAsFarAsTheStreamAllows) {
  const Doubles a = Random(b() * k()), w = Random(k() * n());
  const Doubles exact = Times(a, w, b(), k(), n());
  Doubles sizes[2] = {a, w};
  for (Doubles& x : sizes) {
    for (double& v : x) v = std::abs(v);
  }
  const Doubles size = Times(sizes[0], sizes[1], b(), k(), n());
  for (const auto& [precision, share] :
       {std::pair(ProductPrecision::kTf32, 0x1p-9), {ProductPrecision::kBfloat16, 0x1p-7}}) {
    Floats c(b() * n(), kUnset);
    stream().set_product_precision(precision);
    Gemm(Transpose::kNo, Transpose::kNo, b(), n(), k(), Floats(a).data(), Floats(w).data(),
         Write::kOverwrite, c.data(), stream());
    stream().set_product_precision(ProductPrecision::kFloat32);
    const std::vector<float>& values = c.Read();
    double error = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
      ASSERT_NEAR(exact[i], values[i], share * size[i] + kFullyConnectedTolerance) << "at " << i;
      error = std::max(error, std::abs(exact[i] - double{values[i]}));
    }
    const bool emulated = GetParam().device == DeviceKind::kCuda &&
                          DescribeCudaBuild().find("emulated") != std::string::npos;
    if (emulated && exact.size() > 1000 && k() > 1) {
      EXPECT_GT(error, share / 64);
    }
  }
}

TEST_P(FullyConnectedTest, InferIsTheProductAndItsRelu) {
  const Doubles x = Random(b() * k()), weight = Random(k() * n()), bias = Random(n());
  Doubles expected = Layer(x, weight, bias, b(), k(), n());
  const Floats in(x), w(weight), shift(bias);
  Floats y(b() * n(), kUnset), scratch(ScratchFloats());
  FullyConnectedInfer(in.data(), w.data(), shift.data(), /*relu=*/false, y.data(), b(), k(), n(),
                      scratch.data(), stream());
  ExpectNear(expected, y, kFullyConnectedTolerance);
  FullyConnectedInfer(in.data(), w.data(), shift.data(), /*relu=*/true, y.data(), b(), k(), n(),
                      scratch.data(), stream());
  for (double& v : expected) v = std::max(v, 0.0);
  ExpectNear(expected, y, kFullyConnectedTolerance);
}

// On the CPU. The widths cover whole and partial tiles, the depths whole and partial panels.
TEST(FullyConnectedInfer, ARowDependsOnItsInputAlone) {
  DeviceContext cpu;
  Stream& stream = cpu.stream();
  for (const size_t k : {1, 31, 429, 1025}) {
    for (const size_t n : {2, 16, 77, 400}) {
      constexpr size_t kRows = 201;
      std::vector<float> x(kRows * k), w(k * n), bias(n, 0.25f), all(kRows * n);
      for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
      for (size_t i = 0; i < w.size(); ++i) w[i] = std::cos(static_cast<float>(i) * 0.7f);
      const auto infer = [&](size_t first, size_t rows, float* y) {
        FullyConnectedInfer(x.data() + first * k, w.data(), bias.data(), /*relu=*/false, y, rows, k,
                            n, nullptr, stream);
      };
      infer(0, kRows, all.data());
      for (const size_t rows : {1, 2, 3, 4, 7, 100}) {
        std::vector<float> some(kRows * n);
        for (size_t first = 0; first < kRows; first += rows) {
          infer(first, std::min(rows, kRows - first), some.data() + first * n);
        }
        EXPECT_EQ(some, all) << k << " x " << n << ", " << rows << " rows at a time";
      }
    }
  }
}

// On the CPU, whatever the width of its vectors: one order of the sums for all processors. The
// depth spans two panels.
TEST(FullyConnectedInfer, IsAChainOfFusedMultiplyAdds) {
  DeviceContext cpu;
  constexpr size_t kDepth = 600;
  for (const size_t n : {2, 8, 33, 80}) {
    for (const size_t rows : {1, 3, 4, 12, 30}) {
      std::vector<float> x(rows * kDepth), w(kDepth * n), y(rows * n), expected(rows * n);
      for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
      for (size_t i = 0; i < w.size(); ++i) w[i] = std::cos(static_cast<float>(i) * 0.7f);
      for (size_t r = 0; r < rows; ++r) {
        for (size_t i = 0; i < kDepth; ++i) {
          for (size_t c = 0; c < n; ++c) {
            expected[r * n + c] = std::fma(x[r * kDepth + i], w[i * n + c], expected[r * n + c]);
          }
        }
      }
      FullyConnectedInfer(x.data(), w.data(), nullptr, /*relu=*/false, y.data(), rows, kDepth, n,
                          nullptr, cpu.stream());
      EXPECT_EQ(y, expected) << rows << " x " << n;
      std::fill(y.begin(), y.end(), kUnset);
      const PackedWeights packed(w.data(), kDepth, n);
      FullyConnectedInferPacked(x.data(), w.data(), packed, nullptr, /*relu=*/false, y.data(), rows,
                                kDepth, n);
      EXPECT_EQ(y, expected) << rows << " x " << n << ", packed";
    }
  }
}

TEST_P(FullyConnectedTest, ForwardIsProductPlusBias) {
  const Doubles x = Random(b() * k()), weight = Random(k() * n()), bias = Random(n());
  Floats y(b() * n(), kUnset);
  Floats scratch(FullyConnectedScratchFloats(ElementType::kFloat, b(), k(), n()), kUnset);
  FullyConnected(Floats(x).data(), Floats(weight).data(), Floats(bias).data(), y.data(), b(), k(),
                 n(), scratch.data(), stream());
  ExpectNear(Layer(x, weight, bias, b(), k(), n()), y, kFullyConnectedTolerance);
  FullyConnected(Floats(x).data(), Floats(weight).data(), nullptr, y.data(), b(), k(), n(),
                 scratch.data(), stream());
  ExpectNear(Times(x, weight, b(), k(), n()), y, kFullyConnectedTolerance);
}

TEST_P(FullyConnectedTest, BackwardIsTheDerivative) {
  const Doubles x = Random(b() * k()), weight = Random(k() * n()), bias = Random(n());
  const Doubles dy = Random(b() * n());
  for (const Write write : {Write::kOverwrite, Write::kAccumulate}) {
    Floats dx = Gradient(x.size(), write), dweight(weight.size(), kUnset), dbias(n(), kUnset);
    Floats scratch(ScratchFloats(), kUnset), same(dy);
    BiasGradient(nullptr, same.data(), dbias.data(), b(), n(), scratch.data(), stream());
    ExpectNear(dy, same, 0);
    FullyConnectedBackward(Floats(x).data(), Floats(weight).data(), Floats(dy).data(), write,
                           dx.data(), dweight.data(), b(), k(), n(), scratch.data(), stream());
    const auto loss = [&](const Doubles& x_, const Doubles& w_, const Doubles& b_) {
      return Dot(dy, Layer(x_, w_, b_, b(), k(), n()));
    };
    ExpectGradient([&](const Doubles& v) { return loss(v, weight, bias); }, x, dx,
                   kFullyConnectedTolerance, Base(write));
    ExpectGradient([&](const Doubles& v) { return loss(x, v, bias); }, weight, dweight,
                   kFullyConnectedTolerance);
    ExpectGradient([&](const Doubles& v) { return loss(x, weight, v); }, bias, dbias,
                   kFullyConnectedTolerance);
  }
}

TEST_P(FullyConnectedTest, BackwardSkipsANullInputGradient) {
  const Floats x(Random(b() * k())), weight(Random(k() * n())), dy(Random(b() * n()));
  Floats dx(b() * k()), all(k() * n(), kUnset), only(k() * n(), kUnset), scratch(ScratchFloats());
  FullyConnectedBackward(x.data(), weight.data(), dy.data(), Write::kOverwrite, dx.data(),
                         all.data(), b(), k(), n(), scratch.data(), stream());
  FullyConnectedBackward(x.data(), weight.data(), dy.data(), Write::kOverwrite, nullptr,
                         only.data(), b(), k(), n(), scratch.data(), stream());
  EXPECT_EQ(all.Read(), only.Read());
}

Doubles Relu(Doubles x) {
  for (double& v : x) v = std::max(v, 0.0);
  return x;
}

TEST_P(FullyConnectedTest, ReluFollowsTheProduct) {
  const Doubles x = Random(b() * k()), weight = Random(k() * n()), bias = Random(n());
  Floats y(b() * n(), kUnset), scratch(ScratchFloats());
  FullyConnectedRelu(Floats(x).data(), Floats(weight).data(), Floats(bias).data(), y.data(), b(),
                     k(), n(), scratch.data(), stream());
  ExpectNear(Relu(Layer(x, weight, bias, b(), k(), n())), y, kFullyConnectedTolerance);
}

// The derivative with respect to the input of the ReLU that computed x.
TEST_P(FullyConnectedTest, DotBackwardIncludesTheReluInFront) {
  const Doubles x = Relu(Random(b() * k())), weight = Random(k()), dy = Random(b());
  Floats dx(x.size(), kUnset), dweight(k(), kUnset);
  Floats scratch(FullyConnectedScratchFloats(ElementType::kFloat, b(), k(), 1), kUnset);
  DotBackwardBehindRelu(Floats(x).data(), Floats(weight).data(), Floats(dy).data(), dx.data(),
                        dweight.data(), b(), k(), scratch.data(), stream());
  Doubles expected = Times(dy, weight, b(), 1, k());
  for (size_t i = 0; i < expected.size(); ++i) expected[i] *= x[i] > 0 ? 1 : 0;
  ExpectNear(expected, dx, kFullyConnectedTolerance);
  ExpectNear(Times(Transposed(x, b(), k()), dy, k(), b(), 1), dweight,
             5 * kFullyConnectedTolerance);
}

TEST_P(FullyConnectedTest, BiasGradientIncludesReluBackward) {
  const Doubles y = Relu(Random(b() * n())), dy = Random(b() * n());
  Doubles expected = dy;
  for (size_t i = 0; i < y.size(); ++i) expected[i] *= y[i] > 0 ? 1 : 0;
  Floats grad(dy), dbias(n(), kUnset), scratch(ScratchFloats(), kUnset);
  BiasGradient(Floats(y).data(), grad.data(), dbias.data(), b(), n(), scratch.data(), stream());
  ExpectNear(expected, grad, 0);
  ExpectNear(Times(Doubles(b(), 1.0), expected, 1, b(), n()), dbias, kFullyConnectedTolerance);
}

INSTANTIATE_TEST_SUITE_P(Devices, GemmTest, testing::ValuesIn(OpCases()), OpCaseName);
INSTANTIATE_TEST_SUITE_P(Devices, FullyConnectedTest, testing::ValuesIn(OpCases()), OpCaseName);

}  // namespace
}  // namespace cistern::op
