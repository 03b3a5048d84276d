// A step of a gated recurrent unit, of floats and of 16-bit elements.
#include "cuda/op/dense/gru_cell.h"

#include "test/cuda/op/dense/half_op.h"

namespace cistern::op {
namespace {

double GateInDouble(double x) {
  return 1 / (1 + std::exp(-x));
}

// Cases are [b, n]; k is not used.
class GruCellTest : public HalfOpTest {
 protected:
  size_t size() const { return b() * n(); }

  // y by definition; product and h may be empty: 0.
  Doubles Forward(const Doubles& x, const Doubles& product, const Doubles& h) const {
    Doubles y(size());
    for (size_t i = 0; i < y.size(); ++i) {
      const size_t at = i / n() * 3 * n() + i % n();
      const auto part = [&](size_t p) { return product.empty() ? 0 : product[at + p * n()]; };
      const double r = GateInDouble(x[at] + part(0)), update = GateInDouble(x[at + n()] + part(1));
      const double memory = std::tanh(x[at + 2 * n()] + r * part(2));
      y[i] = (1 - update) * memory + (h.empty() ? 0 : update * h[i]);
    }
    return y;
  }
};

TEST_P(GruCellTest, IsItsFormulaWithTheGradientOfEachInput) {
  const Doubles x = Random(3 * size(), -2, 2), product = Random(3 * size(), -2, 2),
                h = Random(size()), dy = Random(size());
  Floats gates(x), y(size(), kUnset), dgates(3 * size(), kUnset), dproduct(3 * size(), kUnset),
      dh(size(), kUnset);
  const Floats from(product), before(h), grad(dy);
  GruCell(gates.data(), from.data(), before.data(), y.data(), b(), n(), stream());
  ExpectNear(Forward(x, product, h), y, 1e-6);
  GruCellBackward(gates.data(), from.data(), before.data(), grad.data(), dgates.data(),
                  dproduct.data(), dh.data(), b(), n(), stream());
  ExpectGradient([&](const Doubles& v) { return Dot(dy, Forward(v, product, h)); }, x, dgates,
                 1e-5);
  ExpectGradient([&](const Doubles& v) { return Dot(dy, Forward(x, v, h)); }, product, dproduct,
                 1e-5);
  ExpectGradient([&](const Doubles& v) { return Dot(dy, Forward(x, product, v)); }, h, dh, 1e-5);
}

TEST_P(GruCellTest, TheFirstStepHasNothingBeforeIt) {
  const Doubles x = Random(3 * size(), -2, 2), dy = Random(size());
  Floats gates(x), y(size(), kUnset), dproduct(3 * size(), kUnset), dh(dy);
  GruCell(gates.data(), ConstValues(nullptr), ConstValues(nullptr), y.data(), b(), n(), stream());
  ExpectNear(Forward(x, {}, {}), y, 1e-6);
  // In place.
  GruCellBackward(gates.data(), ConstValues(nullptr), ConstValues(nullptr), dh.data(), gates.data(),
                  dproduct.data(), dh.data(), b(), n(), stream());
  ExpectGradient([&](const Doubles& v) { return Dot(dy, Forward(v, {}, {})); }, x, gates, 1e-5);
}

TEST_P(GruCellTest, Half) {
  ForTypes([&](ElementType type) {
    const Typed product = RandomOf(type, 3 * size(), -2, 2), h = RandomOf(type, size()),
                dy = RandomOf(type, size());
    Typed gates = RandomOf(type, 3 * size(), -2, 2), y(type, size(), 100);
    GruCell(gates.half(), product.half(), h.half(), y.half(), b(), n(), stream());
    GruCell(gates.floats(), product.floats(), h.floats(), y.floats(), b(), n(), stream());
    gates.ExpectRounded();
    y.ExpectRounded();
    const Typed same(type, gates.Read());
    Typed dgates(type, 3 * size(), 100), dproduct(type, 3 * size(), 100), dh(type, size(), 100);
    GruCellBackward(same.half(), product.half(), h.half(), dy.half(), dgates.half(),
                    dproduct.half(), dh.half(), b(), n(), stream());
    GruCellBackward(same.floats(), product.floats(), h.floats(), dy.floats(), dgates.floats(),
                    dproduct.floats(), dh.floats(), b(), n(), stream());
    dgates.ExpectRounded();
    dproduct.ExpectRounded();
    dh.ExpectRounded();
  });
}

INSTANTIATE_TEST_SUITE_P(Devices, GruCellTest, testing::ValuesIn(OpCases()), OpCaseName);

}  // namespace
}  // namespace cistern::op
