// Every op that sums gives the same bits on 1, 2 and 4 threads, and from run to run.
#include <omp.h>

#include "cuda/op/dense/batch_norm.h"
#include "cuda/op/dense/bias_gradient.h"
#include "cuda/op/dense/dot_interaction.h"
#include "cuda/op/dense/fully_connected.h"
#include "cuda/op/dense/multi_cross.h"
#include "cuda/op/dense/multiply.h"
#include "cuda/op/dense/reduce_sum.h"
#include "cuda/op/dense/relu.h"
#include "cuda/op/dense/sum.h"
#include "cuda/op/embedding/embedding_pool.h"
#include "cuda/op/loss/bce_loss.h"
#include "cuda/op/loss/label_loss.h"
#include "cuda/op/update/sparse_update.h"
#include "test/cuda/op/op_test.h"

namespace cistern::op {
namespace {

// All outputs of some op calls.
using Written = std::vector<float>;

class DeterminismTest : public OpTest {
 protected:
  // Runs `ops` on 1, 2, 4 and again 4 threads, and compares the outputs.
  void ExpectSameBits(const std::function<Written()>& ops) {
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    const Written expected = ops();
    for (const int n : {2, 4, 4}) {
      omp_set_num_threads(n);
      EXPECT_TRUE(expected == ops()) << "on " << n << " threads";
    }
    omp_set_num_threads(threads);
  }

  static void Append(const Floats& from, Written* to) {
    to->insert(to->end(), from.Read().begin(), from.Read().end());
  }
};

TEST_P(DeterminismTest, FullyConnected) {
  const Floats x(Random(b() * k())), weight(Random(k() * n())), bias(Random(n()));
  const Floats dy(Random(b() * n()));
  ExpectSameBits([&] {
    Floats y(b() * n()), dx(b() * k()), dweight(k() * n()), dbias(n()), grad = dy;
    Floats scratch(std::max(FullyConnectedScratchFloats(ElementType::kFloat, b(), k(), n()),
                            BiasGradientScratchFloats(b(), n())));
    FullyConnected(x.data(), weight.data(), bias.data(), y.data(), b(), k(), n(), scratch.data(),
                   stream());
    BiasGradient(y.data(), grad.data(), dbias.data(), b(), n(), scratch.data(), stream());
    FullyConnectedBackward(x.data(), weight.data(), grad.data(), Write::kOverwrite, dx.data(),
                           dweight.data(), b(), k(), n(), scratch.data(), stream());
    Written written;
    for (const Floats* out : {&y, &dx, &dweight, &dbias}) Append(*out, &written);
    return written;
  });
}

TEST_P(DeterminismTest, BatchNorm) {
  const Floats x(Random(b() * n())), gamma(Random(n())), beta(Random(n())), dy(Random(b() * n()));
  ExpectSameBits([&] {
    const BatchNormEpilogue epilogue = {true, {0.5f, 3, 4}};
    Floats mean(n()), inv_std(n()), running_mean(n()), running_var(n()), y(b() * n());
    Floats dx(b() * n()), dgamma(n()), dbeta(n()), scratch(BatchNormScratchFloats(b(), n()));
    BatchNormStatistics(x.data(), 0.1f, 1e-5f, mean.data(), inv_std.data(), running_mean.data(),
                        running_var.data(), b(), n(), scratch.data(), stream());
    BatchNormForward(x.data(), mean.data(), inv_std.data(), gamma.data(), beta.data(), epilogue,
                     y.data(), b(), n(), stream());
    BatchNormBackward(x.data(), y.data(), dy.data(), mean.data(), inv_std.data(), gamma.data(),
                      epilogue, Write::kOverwrite, dx.data(), dgamma.data(), dbeta.data(), b(), n(),
                      scratch.data(), stream());
    Written written;
    for (const Floats* out :
         {&mean, &inv_std, &running_mean, &running_var, &y, &dx, &dgamma, &dbeta}) {
      Append(*out, &written);
    }
    return written;
  });
}

TEST_P(DeterminismTest, Sums) {
  const Floats x(Random(b() * n())), other(Random(b() * n())), wide(Random(b() * n() * 3));
  const Floats weight(Random(n() * 3)), labels(Random(b() * n(), 0, 1));
  ExpectSameBits([&] {
    Floats columns(n()), dweight(n() * 3), dlogits(x.size());
    Floats scratch(MultiplyScratchFloats(b(), n(), 3) + SumScratchFloats(x.size()) +
                   BceLossScratchFloats(x.size()));
    Array<double> squares(1), magnitudes(1), loss(1);
    SumOfSquares(x.data(), squares.data(), x.size(), scratch.data(), stream());
    SumOfMagnitudes(x.data(), magnitudes.data(), x.size(), scratch.data(), stream());
    BceLoss(x.data(), labels.data(), loss.data(), dlogits.data(), x.size(), x.size(),
            scratch.data(), stream());
    ScaledSum(1, x.data(), Write::kOverwrite, columns.data(), 1, b(), n(), stream());
    MultiplyBackward(x.data(), weight.data(), wide.data(), Write::kOverwrite, nullptr,
                     dweight.data(), b(), n(), 3, scratch.data(), stream());
    Written written;
    for (const Floats* out : {&columns, &dweight, &dlogits}) Append(*out, &written);
    for (const Array<double>* of : {&squares, &magnitudes, &loss}) {
      const double sum = of->Read()[0];
      const float high = static_cast<float>(sum);
      written.insert(written.end(), {high, static_cast<float>(sum - static_cast<double>(high))});
    }
    return written;
  });
}

TEST_P(DeterminismTest, CrossesInteractionsAndLabelLosses) {
  const size_t layers = 3, slot_num = std::min<size_t>(k(), 40);  // pairs grow with its square
  const size_t columns = DotInteractionColumns(slot_num, n());
  const Floats x(Random(b() * n())), dy(Random(b() * n())), parameters(Random(2 * layers * n()));
  const Floats slots(Random(b() * slot_num * n())), dpairs(Random(b() * columns));
  const Floats logits(Random(2 * b())), labels(Random(b()));
  ExpectSameBits([&] {
    Floats y(b() * n()), dx(b() * n()), dparameters(2 * layers * n());
    Floats scratch(MultiCrossScratchFloats(b(), layers, n()));
    MultiCross(x.data(), parameters.data(), y.data(), b(), layers, n(), scratch.data(), stream());
    MultiCrossBackward(x.data(), parameters.data(), dy.data(), Write::kOverwrite, dx.data(),
                       dparameters.data(), b(), layers, n(), scratch.data(), stream());
    Floats pairs(b() * columns), dslots(slots.size());
    DotInteraction(x.data(), slots.data(), pairs.data(), b(), slot_num, n(), stream());
    DotInteractionBackward(x.data(), slots.data(), dpairs.data(), Write::kAccumulate, dx.data(),
                           Write::kOverwrite, dslots.data(), b(), slot_num, n(), stream());
    Floats dlogits(2 * b()), loss_scratch(LabelLossScratchFloats(b()));
    Array<double> loss(1);
    TwoClassLoss(logits.data(), labels.data(), loss.data(), dlogits.data(), b(), b(),
                 loss_scratch.data(), stream());
    Written written = {static_cast<float>(loss.Read()[0])};
    for (const Floats* out : {&y, &dx, &dparameters, &pairs, &dslots, &dlogits}) {
      Append(*out, &written);
    }
    return written;
  });
}

// Row 0 occurs in half of the outputs, all other rows once: the worst load balance.
TEST_P(DeterminismTest, EmbeddingGradientAndUpdate) {
  const auto outputs = static_cast<uint32_t>(b());
  const uint32_t often = outputs / 2;
  std::vector<uint32_t> segment_offsets = {0}, segment_outputs, rows;
  for (uint32_t o = 0; o < often; ++o) segment_outputs.push_back(2 * o);
  if (often > 0) segment_offsets.push_back(often);
  for (uint32_t o = 0; o < outputs; ++o) {
    segment_outputs.push_back(o);
    segment_offsets.push_back(static_cast<uint32_t>(segment_outputs.size()));
  }
  const size_t distinct = segment_offsets.size() - 1;
  for (uint32_t i = 0; i < distinct; ++i) rows.push_back(i);
  const Floats dout(Random(b() * n())), table(Random(distinct * 3 * n(), 0.1, 1));
  const Array<uint32_t> offsets(segment_offsets), of_outputs(segment_outputs), updated(rows);
  ExpectSameBits([&] {
    const size_t occurrences = segment_outputs.size();
    Floats grads(distinct * n()),
        values = table, scratch(AddRowL2ScratchFloats(distinct)),
        chunks(EmbeddingPoolBackwardScratchFloats(occurrences, distinct, n()));
    Array<double> squares(1), grad_squares(1);
    EmbeddingPoolBackward(dout.data(), n(), nullptr, Pool::kSum, offsets.data(), of_outputs.data(),
                          occurrences, grads.data(), grad_squares.data(), distinct, 1, n(),
                          chunks.data(), stream());
    AddRowL2(0.1f, updated.data(), values.data(), 3 * n(), grads.data(), squares.data(), distinct,
             n(), scratch.data(), stream());
    RuleParams rule;
    rule.kind = RuleKind::kAdam;
    SparseUpdate(rule, 0.1f, updated.data(), grads.data(), values.data(), values.data() + n(),
                 3 * n(), distinct, n(), nullptr, stream());
    Written written = {static_cast<float>(squares.Read()[0]),
                       static_cast<float>(grad_squares.Read()[0])};
    Append(grads, &written);
    Append(values, &written);
    return written;
  });
}

std::vector<OpCase> DeterminismCases() {
  std::vector<OpCase> cases;
  for (const DeviceKind device : TestedDevices()) {
    for (const auto& [b, k, n] :
         std::vector<std::array<size_t, 3>>{{1000, 130, 1}, {777, 65, 200}, {2049, 400, 33}}) {
      cases.push_back({device, b, k, n});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Devices, DeterminismTest, testing::ValuesIn(DeterminismCases()),
                         OpCaseName);

}  // namespace
}  // namespace cistern::op
