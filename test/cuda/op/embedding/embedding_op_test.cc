// The ops on the rows of a pass table: pooling, its gradient, L2, and the optimizer.
#include <algorithm>
#include <map>

#include "common/base/half.h"
#include "cuda/op/dense/elementwise.h"
#include "cuda/op/embedding/embedding_pool.h"
#include "cuda/op/update/sparse_update.h"
#include "test/cuda/op/op_test.h"

namespace cistern::op {
namespace {

constexpr double kEmbeddingTolerance = 1e-5;
using Rows = Array<uint32_t>;

// A batch of b samples with k slots of 0 to 4 rows each; few distinct rows, so that many repeat.
struct SparseCase {
  std::vector<uint32_t> rows, offsets;
  std::vector<uint32_t> segment_rows, segment_offsets, segment_outputs;
};

class EmbeddingOpTest : public OpTest {
 protected:
  static constexpr size_t kTableRows = 40;
  size_t outputs() const { return b() * k(); }
  size_t dim() const { return n(); }
  // Values have other fields around the weights: before_ floats in front and twice as many after.
  size_t stride() const { return n() + 3 * before_; }

  SparseCase RandomBatch() {
    SparseCase batch;
    batch.offsets.push_back(0);
    std::map<uint32_t, std::vector<uint32_t>> occurrences;
    for (uint32_t o = 0; o < outputs(); ++o) {
      for (size_t count = RandomIndex(5); count > 0; --count) {
        batch.rows.push_back(static_cast<uint32_t>(RandomIndex(kTableRows)));
        occurrences[batch.rows.back()].push_back(o);
      }
      batch.offsets.push_back(static_cast<uint32_t>(batch.rows.size()));
    }
    batch.segment_offsets.push_back(0);
    for (const auto& [row, at] : occurrences) {
      batch.segment_rows.push_back(row);
      batch.segment_outputs.insert(batch.segment_outputs.end(), at.begin(), at.end());
      batch.segment_offsets.push_back(static_cast<uint32_t>(batch.segment_outputs.size()));
    }
    return batch;
  }

  // Pooled vectors, [outputs, dim]; the weights of row r begin at table + r * stride + before_.
  Doubles Pooled(const SparseCase& batch, const Doubles& table, Pool pool) const {
    Doubles out(outputs() * dim(), 0.0);
    for (size_t o = 0; o < outputs(); ++o) {
      const size_t count = batch.offsets[o + 1] - batch.offsets[o];
      for (size_t j = batch.offsets[o]; j < batch.offsets[o + 1]; ++j) {
        for (size_t e = 0; e < dim(); ++e) {
          out[o * dim() + e] += table[batch.rows[j] * stride() + before_ + e] /
                                (pool == Pool::kMean ? static_cast<double>(count) : 1.0);
        }
      }
    }
    return out;
  }

  // Runs body with an alignment that no vectorized load fits, and with one that fits if dim is a
  // multiple of 4.
  void ForAlignments(const std::function<void()>& body) {
    for (const size_t floats : {1, 4}) {
      before_ = floats;
      body();
    }
  }
  size_t before_ = 1;
};

TEST_P(EmbeddingOpTest, PoolsRowsIntoAWiderMatrix) {
  const SparseCase batch = RandomBatch();
  ForAlignments([&] {
    const Doubles table = Random(kTableRows * stride());
    const Floats values(table);
    const size_t width = k() * dim(), out_stride = width + 2 * before_;
    for (const Pool pool : {Pool::kSum, Pool::kMean}) {
      Floats out(b() * out_stride + before_, kUnset);
      EmbeddingPool(values.data() + before_, stride(), Rows(batch.rows).data(),
                    Rows(batch.offsets).data(), pool, out.data() + before_, out_stride, b(), k(),
                    dim(), stream());
      const Doubles expected = Pooled(batch, table, pool);
      const std::vector<float>& written = out.Read();
      for (size_t i = 0; i < b(); ++i) {
        const float* row = written.data() + before_ + i * out_stride;
        for (size_t c = 0; c < width; ++c) {
          ASSERT_NEAR(expected[i * width + c], row[c], kEmbeddingTolerance) << i << " " << c;
        }
        EXPECT_EQ(row[-1], kUnset);
        for (size_t c = width; c < width + 2 * before_; ++c) EXPECT_EQ(row[c], kUnset);
      }
    }
  });
}

// Sums are floats: pooled vectors are rounded once, and sums of gradients are not rounded.
TEST_P(EmbeddingOpTest, PoolsInto16BitTypes) {
  const SparseCase batch = RandomBatch();
  ForAlignments([&] {
    const Doubles table = Random(kTableRows * stride());
    const Floats values(table);
    const size_t size = outputs() * dim(), width = k() * dim();
    const size_t distinct = batch.segment_rows.size();
    for (const ElementType type : {ElementType::kHalf, ElementType::kBfloat16}) {
      for (const Pool pool : {Pool::kSum, Pool::kMean}) {
        Array<HalfBits> out(size, HalfBits{7});
        Floats expected(size, kUnset), wide(size, kUnset);
        EmbeddingPool(values.data() + before_, stride(), Rows(batch.rows).data(),
                      Rows(batch.offsets).data(), pool, Values(out.data(), type), width, b(), k(),
                      dim(), stream());
        EmbeddingPool(values.data() + before_, stride(), Rows(batch.rows).data(),
                      Rows(batch.offsets).data(), pool, expected.data(), width, b(), k(), dim(),
                      stream());
        const std::vector<float>& sums = expected.Read();
        const std::vector<HalfBits>& bits = out.Read();
        for (size_t i = 0; i < size; ++i) {
          ASSERT_EQ(bits[i],
                    type == ElementType::kHalf ? FloatToHalf(sums[i]) : FloatToBfloat16(sums[i]));
        }
        Convert(ConstValues(out.data(), type), wide.data(), size, stream());
        Floats grads(distinct * dim(), kUnset), float_grads(distinct * dim(), kUnset);
        const size_t occurrences = batch.segment_outputs.size();
        Floats scratch(EmbeddingPoolBackwardScratchFloats(occurrences, distinct, dim()), kUnset);
        for (const auto& [dout, to] : {std::pair(ConstValues(out.data(), type), &grads),
                                       std::pair(ConstValues(wide.data()), &float_grads)}) {
          EmbeddingPoolBackward(
              dout, width, Rows(batch.offsets).data(), pool, Rows(batch.segment_offsets).data(),
              Rows(batch.segment_outputs).data(), occurrences, to->data(),
              /*square_sum=*/nullptr, distinct, k(), dim(), scratch.data(), stream());
        }
        ExpectNear(Doubles(float_grads.Read().begin(), float_grads.Read().end()), grads, 1e-6);
      }
    }
  });
}

TEST_P(EmbeddingOpTest, BackwardIsTheDerivativeOfEachDistinctRow) {
  const SparseCase batch = RandomBatch();
  ForAlignments([&] {
    const Doubles table = Random(kTableRows * stride());
    const size_t distinct = batch.segment_rows.size(), wide = k() * dim() + 2 * before_;
    const Doubles dout = Random(outputs() * dim());
    Doubles spread(b() * wide, kUnset);
    for (size_t i = 0; i < dout.size(); ++i) {
      spread[i / (k() * dim()) * wide + i % (k() * dim())] = dout[i];
    }
    const Floats strided(spread);
    for (const Pool pool : {Pool::kSum, Pool::kMean}) {
      Floats grads(distinct * dim(), kUnset);
      Array<double> square_sum(1, -1);
      const size_t occurrences = batch.segment_outputs.size();
      Floats scratch(EmbeddingPoolBackwardScratchFloats(occurrences, distinct, dim()), kUnset);
      EmbeddingPoolBackward(strided.data(), wide, Rows(batch.offsets).data(), pool,
                            Rows(batch.segment_offsets).data(), Rows(batch.segment_outputs).data(),
                            occurrences, grads.data(), square_sum.data(), distinct, k(), dim(),
                            scratch.data(), stream());
      double squares = 0;
      for (const float g : grads.Read()) squares += double{g} * double{g};
      EXPECT_NEAR(squares, square_sum.Read()[0], 1e-12 * squares);
      // The weights of the distinct rows alone; the loss puts them back into the table.
      Doubles weights;
      for (const uint32_t row : batch.segment_rows) {
        const auto first = table.begin() + static_cast<ptrdiff_t>(row * stride() + before_);
        weights.insert(weights.end(), first, first + static_cast<ptrdiff_t>(dim()));
      }
      const auto loss = [&](const Doubles& w) {
        Doubles changed = table;
        for (size_t i = 0; i < w.size(); ++i) {
          changed[batch.segment_rows[i / dim()] * stride() + before_ + i % dim()] = w[i];
        }
        return Dot(dout, Pooled(batch, changed, pool));
      };
      ExpectGradient(loss, weights, grads, kEmbeddingTolerance);
    }
  });
}

// Segments of all kinds beside each other: short, long, and of several chunks;
// more of them than a block sums.
TEST_P(EmbeddingOpTest, BackwardSumsShortSegmentsBesideLongOnes) {
  if (dim() == 0 || outputs() == 0) return;
  std::vector<uint32_t> segment_offsets = {0}, segment_outputs;
  constexpr uint32_t kLengths[] = {1, 3, kLongSegment + 1, 17, kLongSegment, 2, 9};
  for (uint32_t i = 0; i < 300 / dim() + 20; ++i) {
    const uint32_t length = i == 5 ? 2 * kSegmentChunk + 3 : kLengths[i % std::size(kLengths)];
    for (uint32_t j = 0; j < length; ++j) {
      segment_outputs.push_back(static_cast<uint32_t>(RandomIndex(outputs())));
    }
    segment_offsets.push_back(static_cast<uint32_t>(segment_outputs.size()));
  }
  const size_t distinct = segment_offsets.size() - 1, occurrences = segment_outputs.size();
  const Doubles dout = Random(outputs() * dim());
  Doubles expected(distinct * dim(), 0.0);
  double squares = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const size_t row = i / dim();
    for (uint32_t j = segment_offsets[row]; j < segment_offsets[row + 1]; ++j) {
      expected[i] += dout[segment_outputs[j] * dim() + i % dim()];
    }
    squares += expected[i] * expected[i];
  }
  Floats grads(distinct * dim(), kUnset);
  Floats scratch(EmbeddingPoolBackwardScratchFloats(occurrences, distinct, dim()), kUnset);
  Array<double> square_sum(1, -1);
  EmbeddingPoolBackward(Floats(dout).data(), k() * dim(), nullptr, Pool::kSum,
                        Rows(segment_offsets).data(), Rows(segment_outputs).data(), occurrences,
                        grads.data(), square_sum.data(), distinct, k(), dim(), scratch.data(),
                        stream());
  ExpectNear(expected, grads, 1e-4);
  // The CPU adds 1,027 floats one by one, which may all be the same.
  EXPECT_NEAR(squares, square_sum.Read()[0], 3e-5 * squares);
}

// Rows to update: a permutation of every other row of a table.
std::vector<uint32_t> DistinctRows(size_t count) {
  std::vector<uint32_t> rows(count);
  for (size_t i = 0; i < count; ++i) rows[i] = static_cast<uint32_t>(2 * (count - 1 - i));
  return rows;
}

// The textbook step of one weight in double, from the paper or program that update_rule.h names.
void StepInDouble(const RuleParams& rule, double step, double g, double* w, double* s) {
  switch (rule.kind) {
    case RuleKind::kSgd:
      *w -= step * g;
      return;
    case RuleKind::kAdagrad:
      s[0] += g * g;
      *w -= step * g /
            (std::sqrt(static_cast<double>(rule.initial_g2sum) + s[0]) +
             static_cast<double>(rule.epsilon));
      return;
    case RuleKind::kAdam:
      s[0] = static_cast<double>(rule.beta1) * s[0] + (1 - static_cast<double>(rule.beta1)) * g;
      s[1] = static_cast<double>(rule.beta2) * s[1] + (1 - static_cast<double>(rule.beta2)) * g * g;
      *w -= step * s[0] / (std::sqrt(s[1]) + static_cast<double>(rule.epsilon));
      return;
    case RuleKind::kAdamW:
      s[0] = static_cast<double>(rule.beta1) * s[0] + (1 - static_cast<double>(rule.beta1)) * g;
      s[1] = static_cast<double>(rule.beta2) * s[1] + (1 - static_cast<double>(rule.beta2)) * g * g;
      *w -= static_cast<double>(rule.step_decay) * *w;
      *w -= step * s[0] / (std::sqrt(s[1]) + static_cast<double>(rule.epsilon));
      return;
    case RuleKind::kMomentum:
      s[0] = static_cast<double>(rule.beta1) * s[0] - step * g;
      *w += s[0];
      return;
    default:
      FAIL();
  }
}

TEST_P(EmbeddingOpTest, UpdateChangesTheRowsOfTheBatchOnly) {
  const std::vector<uint32_t> rows = DistinctRows(b());
  for (const RuleKind kind : {RuleKind::kSgd, RuleKind::kAdagrad, RuleKind::kAdam, RuleKind::kAdamW,
                              RuleKind::kMomentum}) {
    RuleParams rule;
    rule.kind = kind;
    rule.step_decay = 0.25f;
    ForAlignments([&] {
      const size_t cells = RuleStateFloats(kind, static_cast<uint32_t>(dim()));
      const size_t fields = RuleStateFloats(kind, 1), wide = dim() + cells + before_;
      Doubles table = Random(2 * b() * wide, 0.1, 1);
      const Doubles grads = Random(b() * dim());
      Floats values(table);
      SparseUpdate(rule, 0.05f, Rows(rows).data(), Floats(grads).data(), values.data(),
                   values.data() + dim(), wide, b(), dim(), nullptr, stream());
      for (size_t i = 0; i < b(); ++i) {
        double* value = table.data() + rows[i] * wide;
        for (size_t e = 0; e < dim(); ++e) {
          double state[2] = {};
          for (size_t f = 0; f < fields; ++f) state[f] = value[dim() + f * dim() + e];
          StepInDouble(rule, 0.05f, grads[i * dim() + e], value + e, state);
          for (size_t f = 0; f < fields; ++f) value[dim() + f * dim() + e] = state[f];
        }
      }
      ExpectNear(table, values, kEmbeddingTolerance);
    });
  }
}

// The mean square of a row's gradient joins its one sum: in FBGEMM's row-wise AdaGrad first, in
// PSLib's after the weights have moved.
TEST_P(EmbeddingOpTest, RulesWithOneStateMoveWholeRows) {
  if (dim() == 0) return;
  const std::vector<uint32_t> rows = DistinctRows(b());
  for (const RuleKind kind : {RuleKind::kAdagradRowwise, RuleKind::kAdagradShared}) {
    RuleParams rule;
    rule.kind = kind;
    rule.weight_bound = 0.9f;
    const size_t wide = dim() + 1;
    Doubles table = Random(2 * b() * wide, 0.1, 1);
    const Doubles grads = Random(b() * dim());
    Floats values(table);
    SparseUpdate(rule, 0.05f, Rows(rows).data(), Floats(grads).data(), values.data(),
                 values.data() + dim(), wide, b(), dim(), nullptr, stream());
    for (size_t i = 0; i < b(); ++i) {
      double* const value = table.data() + rows[i] * wide;
      double squares = 0;
      for (size_t e = 0; e < dim(); ++e) squares += grads[i * dim() + e] * grads[i * dim() + e];
      const double before = value[dim()], after = before + squares / static_cast<double>(dim());
      const double start = rule.initial_g2sum;
      const double ratio = kind == RuleKind::kAdagradRowwise
                               ? 0.05 / (std::sqrt(after) + static_cast<double>(rule.epsilon))
                               : 0.05 * std::sqrt(start / (start + before));
      for (size_t e = 0; e < dim(); ++e) {
        const double moved = value[e] - ratio * grads[i * dim() + e];
        value[e] = std::clamp(moved, -0.9, 0.9);
      }
      value[dim()] = after;
    }
    ExpectNear(table, values, kEmbeddingTolerance);
  }
}

TEST_P(EmbeddingOpTest, RowL2AddsTheGradientOfHalfTheSquares) {
  const std::vector<uint32_t> rows = DistinctRows(b());
  const Doubles table = Random(2 * b() * stride()), grads = Random(b() * dim());
  Floats actual(grads), scratch(AddRowL2ScratchFloats(b()));
  Array<double> square_sum(1, -1);
  AddRowL2(0.25f, Rows(rows).data(), Floats(table).data(), stride(), actual.data(),
           square_sum.data(), b(), dim(), scratch.data(), stream());
  Doubles expected = grads;
  double squares = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double w = table[rows[i / dim()] * stride() + i % dim()];
    expected[i] += 0.25 * w;
    squares += w * w;
  }
  ExpectNear(expected, actual, kEmbeddingTolerance);
  EXPECT_NEAR(squares, square_sum.Read()[0], kEmbeddingTolerance * std::max(1.0, squares));
}

INSTANTIATE_TEST_SUITE_P(Devices, EmbeddingOpTest, testing::ValuesIn(OpCases()), OpCaseName);

}  // namespace
}  // namespace cistern::op
