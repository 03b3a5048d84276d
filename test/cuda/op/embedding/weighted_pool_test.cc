// Pooling where each occurrence of a row has a factor, against the formula in double:
// torch.nn.functional.embedding_bag(mode="sum", per_sample_weights) over many slots.
#include "cuda/op/embedding/weighted_pool.h"

#include "common/base/half.h"
#include "test/cuda/op/op_test.h"

namespace cistern::op {
namespace {

using Rows = Array<uint32_t>;

// A batch of b samples with k slots of 0 to 4 rows each; few distinct rows, so that many repeat,
// also within a slot.
class WeightedPoolTest : public OpTest {
 protected:
  static constexpr size_t kTableRows = 20;
  size_t outputs() const { return b() * k(); }
  size_t dim() const { return n(); }

  void SetUp() override {
    OpTest::SetUp();
    offsets_.push_back(0);
    std::vector<uint32_t> output_of;
    for (uint32_t o = 0; o < outputs(); ++o) {
      for (size_t count = RandomIndex(5); count > 0; --count) {
        rows_.push_back(static_cast<uint32_t>(RandomIndex(kTableRows)));
        output_of.push_back(o);
      }
      offsets_.push_back(static_cast<uint32_t>(rows_.size()));
    }
    factors_ = Random(rows_.size(), -2, 2);
    segment_offsets_.push_back(0);
    for (uint32_t row = 0; row < kTableRows; ++row) {
      for (uint32_t place = 0; place < rows_.size(); ++place) {
        if (rows_[place] != row) continue;
        places_.push_back(place);
        segment_outputs_.push_back(output_of[place]);
      }
      if (places_.size() == segment_offsets_.back()) continue;
      segment_rows_.push_back(row);
      segment_offsets_.push_back(static_cast<uint32_t>(places_.size()));
    }
  }

  // table: [kTableRows, dim]. Result: [outputs, dim].
  Doubles Pooled(const Doubles& table) const {
    Doubles out(outputs() * dim(), 0.0);
    for (size_t o = 0; o < outputs(); ++o) {
      for (size_t j = offsets_[o]; j < offsets_[o + 1]; ++j) {
        for (size_t e = 0; e < dim(); ++e) {
          out[o * dim() + e] += factors_[j] * table[rows_[j] * dim() + e];
        }
      }
    }
    return out;
  }

  std::vector<uint32_t> rows_, offsets_, segment_rows_, segment_offsets_, segment_outputs_, places_;
  Doubles factors_;
};

TEST_P(WeightedPoolTest, PoolsRowsTimesTheirFactors) {
  const Doubles table = Random(kTableRows * dim());
  const size_t width = k() * dim(), stride = width + 3;
  Floats out(b() * stride, 7.0f);
  WeightedPool(Floats(table).data(), dim(), Rows(rows_).data(), Floats(factors_).data(),
               Rows(offsets_).data(), out.data(), stride, b(), k(), dim(), stream());
  const Doubles expected = Pooled(table);
  const std::vector<float>& written = out.Read();
  for (size_t i = 0; i < b(); ++i) {
    for (size_t c = 0; c < stride; ++c) {
      const double wanted = c < width ? expected[i * width + c] : 7.0;
      ASSERT_NEAR(wanted, written[i * stride + c], 1e-6 * std::max(1.0, std::abs(wanted)));
    }
  }
}

TEST_P(WeightedPoolTest, RoundsOnceTo16Bits) {
  const Doubles table = Random(kTableRows * dim());
  const size_t size = outputs() * dim(), width = k() * dim();
  Floats sums(size, 0.0f);
  Array<HalfBits> halves(size, HalfBits{7});
  for (const Values out : {Values(sums.data()), Values(halves.data(), ElementType::kBfloat16)}) {
    WeightedPool(Floats(table).data(), dim(), Rows(rows_).data(), Floats(factors_).data(),
                 Rows(offsets_).data(), out, width, b(), k(), dim(), stream());
  }
  const std::vector<float>& wide = sums.Read();
  const std::vector<HalfBits>& narrow = halves.Read();
  for (size_t i = 0; i < size; ++i) ASSERT_EQ(narrow[i], FloatToBfloat16(wide[i]));
}

TEST_P(WeightedPoolTest, BackwardIsTheDerivativeOfEachDistinctRow) {
  const Doubles table = Random(kTableRows * dim()), dout = Random(outputs() * dim());
  const size_t distinct = segment_rows_.size();
  Floats grads(distinct * dim(), 7.0f);
  WeightedPoolBackward(Floats(dout).data(), k() * dim(), Floats(factors_).data(),
                       Rows(segment_offsets_).data(), Rows(segment_outputs_).data(),
                       Rows(places_).data(), grads.data(), distinct, k(), dim(), stream());
  Doubles weights;
  for (const uint32_t row : segment_rows_) {
    weights.insert(weights.end(), table.begin() + static_cast<ptrdiff_t>(row * dim()),
                   table.begin() + static_cast<ptrdiff_t>((row + 1) * dim()));
  }
  const auto loss = [&](const Doubles& w) {
    Doubles changed = table;
    for (size_t i = 0; i < w.size(); ++i) {
      changed[segment_rows_[i / dim()] * dim() + i % dim()] = w[i];
    }
    return Dot(dout, Pooled(changed));
  };
  ExpectGradient(loss, weights, grads, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Op, WeightedPoolTest, testing::ValuesIn(OpCases()), OpCaseName);

}  // namespace
}  // namespace cistern::op
