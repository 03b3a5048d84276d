// Rates of the ops that dominate a training step, at the shapes of an MLP 400-400-400 with batches
// of 4096: GFLOP/s for products and GB/s (minimum memory traffic) for the rest, next to the roofs
// that the same run measures: the library's largest square product and a copy.
//
//   build/release/bin/op_benchmark --benchmark_filter=BatchNorm
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "cuda/op/dense/batch_norm.h"
#include "cuda/op/dense/bias_gradient.h"
#include "cuda/op/dense/copy_columns.h"
#include "cuda/op/dense/fully_connected.h"
#include "cuda/op/dense/gemm.h"
#include "cuda/op/dense/relu.h"
#include "cuda/op/embedding/embedding_pool.h"
#include "cuda/op/update/dense_update.h"
#include "cuda/op/update/sparse_update.h"

namespace cistern::op {
namespace {

constexpr size_t kBatch = 4096, kWidth = 400;

std::vector<float> Random(size_t n) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> draw(-1, 1);
  std::vector<float> x(n);
  for (float& v : x) v = draw(random);
  return x;
}

void SetGflops(benchmark::State& state, double flops) {
  state.counters["GFLOP/s"] = benchmark::Counter(
      flops * static_cast<double>(state.iterations()) * 1e-9, benchmark::Counter::kIsRate);
}
void SetGigabytes(benchmark::State& state, double floats) {
  state.counters["GB/s"] = benchmark::Counter(
      floats * 4e-9 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void BM_RoofGemm(benchmark::State& state) {
  constexpr size_t kSide = 2048;
  Stream stream;
  const std::vector<float> a = Random(kSide * kSide), b = Random(kSide * kSide);
  std::vector<float> c(kSide * kSide);
  for (auto _ : state) {
    Gemm(Transpose::kNo, Transpose::kNo, kSide, kSide, kSide, a.data(), b.data(), Write::kOverwrite,
         c.data(), stream);
  }
  SetGflops(state, 2.0 * kSide * kSide * kSide);
  state.SetLabel(GemmLibrary());
}

void BM_RoofCopy(benchmark::State& state) {
  Stream stream;
  const std::vector<float> x = Random(kBatch * kWidth);
  std::vector<float> y(x.size());
  for (auto _ : state) {
    CopyColumns(x.data(), kWidth, Write::kOverwrite, y.data(), kWidth, kBatch, kWidth, stream);
  }
  SetGigabytes(state, 2.0 * kBatch * kWidth);
}

// Arguments of the layer benchmarks: inputs, outputs.
void BM_FullyConnected(benchmark::State& state) {
  Stream stream;
  const size_t k = static_cast<size_t>(state.range(0)), n = static_cast<size_t>(state.range(1));
  const std::vector<float> x = Random(kBatch * k), weight = Random(k * n), bias = Random(n);
  std::vector<float> y(kBatch * n),
      scratch(FullyConnectedScratchFloats(ElementType::kFloat, kBatch, k, n));
  for (auto _ : state) {
    FullyConnected(x.data(), weight.data(), bias.data(), y.data(), kBatch, k, n, scratch.data(),
                   stream);
  }
  SetGflops(state, 2.0 * kBatch * static_cast<double>(k * n));
}

void BM_FullyConnectedBackward(benchmark::State& state) {
  Stream stream;
  const size_t k = static_cast<size_t>(state.range(0)), n = static_cast<size_t>(state.range(1));
  const std::vector<float> x = Random(kBatch * k), weight = Random(k * n), y = Random(kBatch * n);
  std::vector<float> dy = y, dx(kBatch * k), dweight(k * n), dbias(n);
  std::vector<float> scratch(
      std::max(FullyConnectedScratchFloats(ElementType::kFloat, kBatch, k, n),
               BiasGradientScratchFloats(kBatch, n)));
  for (auto _ : state) {
    BiasGradient(y.data(), dy.data(), dbias.data(), kBatch, n, scratch.data(), stream);
    FullyConnectedBackward(x.data(), weight.data(), dy.data(), Write::kOverwrite, dx.data(),
                           dweight.data(), kBatch, k, n, scratch.data(), stream);
  }
  SetGflops(state, 4.0 * kBatch * static_cast<double>(k * n));
}

// One BatchNorm + ReLU + dropout layer; argument: dropout rate in percent.
struct NormLayer {
  std::vector<float> x = Random(kBatch * kWidth), y = x, dy = x, gamma = Random(kWidth);
  std::vector<float> beta = gamma, mean = gamma, inv_std = gamma, running = gamma;
  std::vector<float> running_var = gamma, dgamma = gamma, dbeta = gamma, dx = x;
  std::vector<float> scratch = std::vector<float>(BatchNormScratchFloats(kBatch, kWidth));
  Stream stream;

  void Statistics() {
    BatchNormStatistics(x.data(), 0.1f, 1e-5f, mean.data(), inv_std.data(), running.data(),
                        running_var.data(), kBatch, kWidth, scratch.data(), stream);
  }
  void Forward(const BatchNormEpilogue& epilogue) {
    BatchNormForward(x.data(), mean.data(), inv_std.data(), gamma.data(), beta.data(), epilogue,
                     y.data(), kBatch, kWidth, stream);
  }
  void Backward(const BatchNormEpilogue& epilogue) {
    BatchNormBackward(x.data(), y.data(), dy.data(), mean.data(), inv_std.data(), gamma.data(),
                      epilogue, Write::kOverwrite, dx.data(), dgamma.data(), dbeta.data(), kBatch,
                      kWidth, scratch.data(), stream);
  }
};

BatchNormEpilogue EpilogueOf(const benchmark::State& state) {
  return {true, {static_cast<float>(state.range(0)) / 100, 5, 6}};
}

void BM_BatchNormStatistics(benchmark::State& state) {
  NormLayer layer;
  for (auto _ : state) layer.Statistics();
  SetGigabytes(state, 1.0 * kBatch * kWidth);
}

void BM_BatchNormForward(benchmark::State& state) {
  NormLayer layer;
  layer.Statistics();
  for (auto _ : state) layer.Forward(EpilogueOf(state));
  SetGigabytes(state, 2.0 * kBatch * kWidth);
}

void BM_BatchNormBackward(benchmark::State& state) {
  NormLayer layer;
  layer.Statistics();
  layer.Forward(EpilogueOf(state));
  for (auto _ : state) layer.Backward(EpilogueOf(state));
  SetGigabytes(state, 7.0 * kBatch * kWidth);
}

void BM_ReluDropout(benchmark::State& state) {
  NormLayer layer;
  for (auto _ : state) {
    ReluDropout(layer.x.data(), {0.5f, 5, 6}, layer.y.data(), kBatch, kWidth, layer.stream);
  }
  SetGigabytes(state, 2.0 * kBatch * kWidth);
}

// A batch of one row per slot out of `rows` rows, with its segments for the backward pass.
struct LookupBatch {
  LookupBatch(size_t slots, size_t table_rows) {
    std::mt19937 random(3);
    std::vector<std::vector<uint32_t>> occurrences(table_rows);
    for (uint32_t o = 0; o < kBatch * slots; ++o) {
      offsets.push_back(o);
      rows.push_back(static_cast<uint32_t>(random() % table_rows));
      occurrences[rows.back()].push_back(o);
    }
    offsets.push_back(static_cast<uint32_t>(rows.size()));
    segment_offsets.push_back(0);
    for (uint32_t row = 0; row < table_rows; ++row) {
      if (occurrences[row].empty()) continue;
      segment_rows.push_back(row);
      outputs.insert(outputs.end(), occurrences[row].begin(), occurrences[row].end());
      segment_offsets.push_back(static_cast<uint32_t>(outputs.size()));
    }
  }
  std::vector<uint32_t> rows, offsets, segment_rows, segment_offsets, outputs;
};

constexpr size_t kSlots = 10, kTableRows = 5000;

// Argument of the embedding benchmarks: dimension.
void BM_EmbeddingPool(benchmark::State& state) {
  Stream stream;
  const size_t dim = static_cast<size_t>(state.range(0));
  const LookupBatch batch(kSlots, kTableRows);
  const std::vector<float> table = Random(kTableRows * 3 * dim);
  std::vector<float> out(kBatch * kSlots * dim);
  for (auto _ : state) {
    EmbeddingPool(table.data(), 3 * dim, batch.rows.data(), batch.offsets.data(), Pool::kSum,
                  out.data(), kSlots * dim, kBatch, kSlots, dim, stream);
  }
  SetGigabytes(state, 2.0 * static_cast<double>(out.size()));
}

void BM_EmbeddingPoolBackward(benchmark::State& state) {
  Stream stream;
  const size_t dim = static_cast<size_t>(state.range(0));
  const LookupBatch batch(kSlots, kTableRows);
  const std::vector<float> dout = Random(kBatch * kSlots * dim);
  std::vector<float> grads(batch.segment_rows.size() * dim);
  for (auto _ : state) {
    EmbeddingPoolBackward(dout.data(), kSlots * dim, batch.offsets.data(), Pool::kSum,
                          batch.segment_offsets.data(), batch.outputs.data(), batch.outputs.size(),
                          grads.data(), /*square_sum=*/nullptr, batch.segment_rows.size(), kSlots,
                          dim, /*scratch=*/nullptr, stream);
  }
  SetGigabytes(state, static_cast<double>(dout.size() + grads.size()));
}

void BM_SparseAdam(benchmark::State& state) {
  Stream stream;
  const size_t dim = static_cast<size_t>(state.range(0));
  const LookupBatch batch(kSlots, kTableRows);
  std::vector<float> table(kTableRows * 3 * dim, 0.5f);
  std::vector<float> grads = Random(batch.segment_rows.size() * dim);
  RuleParams rule;
  rule.kind = RuleKind::kAdam;
  for (auto _ : state) {
    SparseUpdate(rule, 1e-6f, batch.segment_rows.data(), grads.data(), table.data(),
                 table.data() + dim, 3 * dim, batch.segment_rows.size(), dim, nullptr, stream);
  }
  SetGigabytes(state, 7.0 * static_cast<double>(grads.size()));
}

void BM_DenseAdam(benchmark::State& state) {
  Stream stream;
  constexpr size_t kCount = 400000;
  std::vector<float> grad = Random(kCount), weight(kCount), moments(2 * kCount, 0.5f);
  RuleParams rule;
  rule.kind = RuleKind::kAdam;
  for (auto _ : state) {
    DenseUpdate(rule, 1e-6f, grad.data(), weight.data(), moments.data(), kCount, nullptr, stream);
  }
  SetGigabytes(state, 7.0 * kCount);
}

BENCHMARK(BM_RoofGemm)->UseRealTime();
BENCHMARK(BM_RoofCopy)->UseRealTime();
BENCHMARK(BM_FullyConnected)->Args({400, 400})->Args({100, 400})->Args({400, 1})->UseRealTime();
BENCHMARK(BM_FullyConnectedBackward)
    ->Args({400, 400})
    ->Args({100, 400})
    ->Args({400, 1})
    ->UseRealTime();
BENCHMARK(BM_BatchNormStatistics)->UseRealTime();
BENCHMARK(BM_BatchNormForward)->Arg(0)->Arg(50)->UseRealTime();
BENCHMARK(BM_BatchNormBackward)->Arg(0)->Arg(50)->UseRealTime();
BENCHMARK(BM_ReluDropout)->UseRealTime();
BENCHMARK(BM_EmbeddingPool)->Arg(10)->Arg(64)->UseRealTime();
BENCHMARK(BM_EmbeddingPoolBackward)->Arg(10)->Arg(64)->UseRealTime();
BENCHMARK(BM_SparseAdam)->Arg(10)->Arg(64)->UseRealTime();
BENCHMARK(BM_DenseAdam)->UseRealTime();

}  // namespace
}  // namespace cistern::op

BENCHMARK_MAIN();
