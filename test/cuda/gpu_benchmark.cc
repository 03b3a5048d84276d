// Measures GPU 0 of this machine and the efficiency of the ops on it; prints one JSON to standard
// output.
//
// First the machine's roofs (copies, random rows, products, pinned transfers), then the embedding
// ops in the configurations of published figures (10 tables of 1.68 million rows, 1,048,570
// lookups, power law 1.05; DLRM's 26 tables at a batch of 65,536), then the dense ops at that
// batch (16-bit: gpu_half_figures.h), and the staging of a pass of such batches (gpu_staging.h).
// Without a GPU: "device": null with the reason, and exit code 0.
//
//   gpu_benchmark [--query]   prints only the device
//                 [--small]   small sizes, as a functional check: the figures are meaningless
#include <cmath>
#include <cstdio>
#include <cstring>

#include "cuda/core/device.h"
#include "cuda/core/element_type.h"
#include "cuda/op/dense/batch_norm.h"
#include "cuda/op/dense/bias_gradient.h"
#include "cuda/op/dense/dot_interaction.h"
#include "cuda/op/dense/elementwise.h"
#include "cuda/op/dense/fm_order2.h"
#include "cuda/op/dense/fully_connected.h"
#include "cuda/op/dense/gemm.h"
#include "cuda/op/dense/multi_cross.h"
#include "cuda/op/dense/relu.h"
#include "cuda/op/embedding/embedding_pool.h"
#include "cuda/op/loss/bce_loss.h"
#include "cuda/op/update/dense_update.h"
#include "cuda/op/update/sparse_update.h"
#include "test/cuda/gpu_figures.h"
#include "test/cuda/gpu_half_figures.h"
#include "test/cuda/gpu_staging.h"

namespace cistern::op {
namespace {

float* F(Memory& memory) {
  return memory.view<float>().data;
}
const uint32_t* U(const Memory& memory) {
  return memory.view<uint32_t>().data;
}

void Copies(Figures& figures) {
  const auto bytes = static_cast<double>(figures.Small(size_t{1} << 30));
  Memory from = figures.Random(bytes / 4), to = figures.Take(bytes);
  const auto copy = [&](size_t) {
    CopyOnDevice(from.data(), to.data(), from.bytes(), figures.stream());
  };
  const double ms = figures.Time(copy);
  if (ms > 0) figures.set_copy_gb_s(2 * bytes / ms * 1e-6);
  figures.Measure("copy on the device, 1 GiB", 2 * bytes, 0, copy);
  Memory pinned = figures.Take(bytes / 4, MemoryPlace::kPinned);
  if (!figures.stream().status().ok()) return;
  figures.Measure("pinned memory to the device, 256 MiB", bytes / 4, 0, [&](size_t) {
    CopyToDevice(pinned.data(), to.data(), pinned.bytes(), figures.stream());
  });
  figures.Measure("device to pinned memory, 256 MiB", bytes / 4, 0, [&](size_t) {
    CopyToHost(to.data(), pinned.data(), pinned.bytes(), figures.stream());
  });
}

// Random rows, sixteen pooled into each output, so that writes hardly count.
void RandomRows(Figures& figures) {
  constexpr size_t kHot = 16;
  const size_t lookups = figures.Small(size_t{1} << 22), outputs = lookups / kHot;
  std::vector<uint32_t> offsets(outputs + 1), rows(lookups);
  for (size_t o = 0; o <= outputs; ++o) offsets[o] = static_cast<uint32_t>(o * kHot);
  const Memory places = figures.Upload(offsets);
  Memory out = figures.Take(static_cast<double>(outputs) * 512);
  std::mt19937 random(11);
  for (const double gib : {1.0, 8.0, 64.0}) {
    const auto bytes = static_cast<double>(figures.Small(static_cast<size_t>(gib * (1 << 30))));
    if (!figures.Fits(bytes)) continue;
    Memory table = figures.Take(bytes);
    for (const size_t row_bytes : {32, 64, 128, 256, 512}) {
      const size_t dim = row_bytes / 4, table_rows = table.bytes() / row_bytes;
      if (!figures.stream().status().ok()) return;
      for (uint32_t& row : rows) row = static_cast<uint32_t>(random() % table_rows);
      const Memory wanted = figures.Upload(rows);
      figures.Measure(absl::StrFormat("random rows of %d bytes in %g GiB", row_bytes, gib),
                      static_cast<double>(lookups * (row_bytes + 4)), 0, [&](size_t) {
                        EmbeddingPool(F(table), dim, U(wanted), U(places), Pool::kSum, F(out), dim,
                                      outputs, 1, dim, figures.stream());
                      });
    }
  }
}

// The arithmetic of a product. DenseOps uses the last one.
struct Arithmetic {
  const char* name;
  ElementType type;
  ProductPrecision precision;
};
constexpr Arithmetic kArithmetics[] = {{"bf16", ElementType::kBfloat16, ProductPrecision::kFloat32},
                                       {"tf32", ElementType::kFloat, ProductPrecision::kTf32},
                                       {"fp32", ElementType::kFloat, ProductPrecision::kFloat32}};

Memory RandomOf(Figures& figures, size_t count, ElementType type) {
  Memory floats = figures.Random(static_cast<double>(count));
  if (type == ElementType::kFloat) return floats;
  Memory halves = figures.Take(2.0 * static_cast<double>(count));
  Convert(F(floats), Values(halves.data(), type), count, figures.stream());
  (void)figures.stream().Wait();  // before floats is freed
  return halves;
}

void Product(Figures& figures, size_t m, size_t k, size_t n, const Arithmetic& in, bool is_roof) {
  Memory a = RandomOf(figures, m * k, in.type), b = RandomOf(figures, k * n, in.type);
  const auto elements = static_cast<double>(m * k + k * n + m * n);
  const auto bytes = static_cast<double>(BytesOf(in.type));
  Memory c = figures.Take(bytes * static_cast<double>(m * n));
  if (!figures.stream().status().ok()) return;
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n * k);
  const auto multiply = [&](size_t) {
    Gemm(Transpose::kNo, Transpose::kNo, m, n, k, {a.data(), in.type}, {b.data(), in.type},
         Write::kOverwrite, {c.data(), in.type}, figures.stream());
  };
  figures.stream().set_product_precision(in.precision);
  if (is_roof) {
    const double ms = figures.Time(multiply);
    if (ms > 0) figures.set_product_roof(in.name, flops / ms * 1e-9);
  }
  figures.Measure(absl::StrFormat("product %s [%d, %d] [%d, %d]", in.name, m, k, k, n),
                  bytes * elements, flops, multiply);
  figures.stream().set_product_precision(ProductPrecision::kFloat32);
}

// Products alone, and the layers of the same types against the same roof.
void Products(Figures& figures) {
  const size_t square = figures.Small(8192), samples = figures.Small(65536);
  const size_t shapes[][2] = {{13, 512},    {512, 256},  {479, 1024},
                              {1024, 1024}, {1024, 512}, {512, 256}};
  for (const Arithmetic& in : kArithmetics) {
    Product(figures, square, square, square, in, true);
    for (const auto& [k, n] : shapes) Product(figures, samples, k, n, in, false);
    if (in.type == ElementType::kFloat) continue;
    for (const ElementType type : {ElementType::kHalf, ElementType::kBfloat16}) {
      HalfFigures(figures, type).Measure();
    }
  }
}

// A batch of one row per slot; rank r of a table's rows has probability proportional to r^-1.05.
struct Lookups {
  Lookups(Figures& figures, size_t tables, size_t table_rows, size_t b, uint32_t seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> draw(0, 1);
    const double power = 1 - 1.05, most = std::pow(static_cast<double>(table_rows), power);
    std::vector<uint32_t> wanted, places = {0}, distinct_rows, ends = {0}, outputs;
    std::vector<uint64_t> sorted;
    for (size_t o = 0; o < b * tables; ++o) {
      const auto rank = static_cast<size_t>(std::pow(1 + draw(random) * (most - 1), 1 / power));
      // 1000003 is coprime to the table sizes used here, so each rank maps to its own row.
      const size_t row = std::min(rank, table_rows - 1) * 1000003 % table_rows;
      wanted.push_back(static_cast<uint32_t>(o % tables * table_rows + row));
      places.push_back(static_cast<uint32_t>(o + 1));
      sorted.push_back(uint64_t{wanted.back()} << 32 | o);
    }
    std::sort(sorted.begin(), sorted.end());
    for (const uint64_t at : sorted) {
      const auto row = static_cast<uint32_t>(at >> 32);
      if (distinct_rows.empty() || distinct_rows.back() != row) {
        if (!distinct_rows.empty()) ends.push_back(static_cast<uint32_t>(outputs.size()));
        distinct_rows.push_back(row);
      }
      outputs.push_back(static_cast<uint32_t>(at));
    }
    ends.push_back(static_cast<uint32_t>(outputs.size()));
    distinct = distinct_rows.size();
    rows = figures.Upload(wanted);
    offsets = figures.Upload(places);
    segment_rows = figures.Upload(distinct_rows);
    segment_offsets = figures.Upload(ends);
    segment_outputs = figures.Upload(outputs);
  }
  Memory rows, offsets, segment_rows, segment_offsets, segment_outputs;
  size_t distinct = 0;
};

void Embeddings(Figures& figures, const std::string& name, size_t tables, size_t table_rows,
                size_t b, std::vector<size_t> dims) {
  constexpr uint32_t kBatches = 4;  // rotated, so that the next batch's rows are not cached
  std::vector<Lookups> batches;
  for (uint32_t i = 0; i < kBatches; ++i) batches.emplace_back(figures, tables, table_rows, b, i);
  const double outputs = static_cast<double>(b * tables);
  for (const size_t dim : dims) {
    const double width = static_cast<double>(dim),
                 unique = static_cast<double>(batches[0].distinct);
    const double floats = static_cast<double>(tables * table_rows) * 3 * width;
    if (!figures.Fits(4 * (floats + 2 * outputs * width))) continue;
    Memory table = figures.Random(floats);
    Memory out = figures.Random(outputs * width), grads = figures.Random(outputs * width);
    Memory chunks = figures.Random(static_cast<double>(
        EmbeddingPoolBackwardScratchFloats(b * tables, static_cast<size_t>(outputs), dim)));
    if (!figures.stream().status().ok()) return;
    const std::string title =
        absl::StrFormat("%s, D=%d, %d distinct: ", name, dim, batches[0].distinct);
    figures.Measure(title + "forward", 4 * (unique * width + 2 * outputs + outputs * width),
                    outputs * width, [&](size_t run) {
                      const Lookups& in = batches[run % kBatches];
                      EmbeddingPool(F(table), dim, U(in.rows), U(in.offsets), Pool::kSum, F(out),
                                    tables * dim, b, tables, dim, figures.stream());
                    });
    figures.Measure(title + "backward", 4 * (outputs * width + outputs + unique + unique * width),
                    outputs * width, [&](size_t run) {
                      const Lookups& in = batches[run % kBatches];
                      EmbeddingPoolBackward(F(out), tables * dim, U(in.offsets), Pool::kSum,
                                            U(in.segment_offsets), U(in.segment_outputs),
                                            b * tables, F(grads), /*square_sum=*/nullptr,
                                            in.distinct, tables, dim, F(chunks), figures.stream());
                    });
    const std::pair<RuleKind, const char*> rules[] = {
        {RuleKind::kSgd, "SGD"}, {RuleKind::kAdagrad, "AdaGrad"}, {RuleKind::kAdam, "Adam"}};
    for (const auto& [kind, rule_name] : rules) {
      RuleParams rule;
      rule.kind = kind;
      const size_t fields = kind == RuleKind::kSgd ? 0 : (kind == RuleKind::kAdam ? 2 : 1);
      const size_t stride = dim * (1 + fields);
      const double state = 8.0 * static_cast<double>(fields) * width;
      // With state 1 and step size 0 the numbers stay finite however often this runs.
      Fill(1, F(table), table.bytes() / 4, figures.stream());
      figures.Measure(title + rule_name, unique * (4 + 12 * width + state), unique * width * 10,
                      [&](size_t run) {
                        const Lookups& in = batches[run % kBatches];
                        SparseUpdate(rule, 0, U(in.segment_rows), F(grads), F(table),
                                     F(table) + dim, stride, in.distinct, dim, nullptr,
                                     figures.stream());
                      });
    }
  }
}

void DenseOps(Figures& figures) {
  constexpr size_t kSlots = 26;
  const size_t b = figures.Small(65536), n = figures.Small(1024, 128), cross = figures.Small(432);
  const auto samples = static_cast<double>(b), elements = static_cast<double>(b * n),
             weights = static_cast<double>(n * n);
  Stream& stream = figures.stream();
  Memory x = figures.Random(elements), y = figures.Random(elements), dy = figures.Random(elements);
  Memory weight = figures.Random(weights), dweight = figures.Take(4 * weights);
  Memory v[6];
  for (Memory& vector : v) vector = figures.Random(16.0 * static_cast<double>(n));
  Memory scratch =
      figures.Take(4.0 * static_cast<double>(std::max({BatchNormScratchFloats(b, n),
                                                       BiasGradientScratchFloats(b, n),
                                                       MultiCrossScratchFloats(b, 3, cross)})));
  if (!stream.status().ok()) return;
  figures.Measure("FullyConnected 65536 x 1024 x 1024", 4 * (2 * elements + weights),
                  2 * elements * static_cast<double>(n), [&](size_t) {
                    FullyConnected(F(x), F(weight), F(v[0]), F(y), b, n, n, F(scratch), stream);
                  });
  figures.Measure("BiasGradient with ReLU 65536 x 1024", 12 * elements, 2 * elements,
                  [&](size_t) { BiasGradient(F(x), F(dy), F(v[1]), b, n, F(scratch), stream); });
  figures.Measure("FullyConnectedBackward 65536 x 1024 x 1024", 4 * (3 * elements + 2 * weights),
                  4 * elements * static_cast<double>(n), [&](size_t) {
                    FullyConnectedBackward(F(x), F(weight), F(dy), Write::kOverwrite, F(y),
                                           F(dweight), b, n, n, F(scratch), stream);
                  });
  figures.Measure("ReluDropout 65536 x 1024", 8 * elements, elements, [&](size_t) {
    ReluDropout(F(x), {0.5f, 1, 2}, F(y), b, n, stream);
  });
  figures.Measure("BatchNormStatistics 65536 x 1024", 4 * elements, 4 * elements, [&](size_t) {
    BatchNormStatistics(F(x), 0.1f, 1e-5f, F(v[0]), F(v[1]), F(v[2]), F(v[3]), b, n, F(scratch),
                        stream);
  });
  figures.Measure("BatchNormForward 65536 x 1024", 8 * elements, 4 * elements, [&](size_t) {
    BatchNormForward(F(x), F(v[0]), F(v[1]), F(v[4]), F(v[5]), {}, F(y), b, n, stream);
  });
  figures.Measure("BatchNormBackward 65536 x 1024", 20 * elements, 8 * elements, [&](size_t) {
    BatchNormBackward(F(x), nullptr, F(dy), F(v[0]), F(v[1]), F(v[4]), {}, Write::kOverwrite, F(y),
                      F(v[2]), F(v[3]), b, n, F(scratch), stream);
  });
  Memory loss = figures.Take(8);
  figures.Measure("BceLoss 65536", 12 * samples, 60 * samples, [&](size_t) {
    BceLoss(F(x), F(y), loss.view<double>().data, F(dy), b, b, F(scratch), stream);
  });
  RuleParams adam;
  adam.kind = RuleKind::kAdam;
  Fill(1, F(y), y.bytes() / 4, stream);
  const size_t parameters = figures.Small(2400000);
  figures.Measure("DenseUpdate Adam, 2.4 million", 28.0 * static_cast<double>(parameters),
                  10.0 * static_cast<double>(parameters), [&](size_t) {
                    DenseUpdate(adam, 0, F(dy), F(x), F(y), parameters, nullptr, stream);
                  });
  const auto crossed = static_cast<double>(b * cross);
  figures.Measure("MultiCross 65536 x 432, 3 layers", 8 * crossed, 8 * crossed, [&](size_t) {
    MultiCross(F(x), F(weight), F(y), b, 3, cross, F(scratch), stream);
  });
  figures.Measure("MultiCrossBackward 65536 x 432, 3 layers", 12 * crossed, 24 * crossed,
                  [&](size_t) {
                    MultiCrossBackward(F(x), F(weight), F(dy), Write::kOverwrite, F(y), F(dweight),
                                       b, 3, cross, F(scratch), stream);
                  });
  for (const size_t dim : {16, 64, 128}) {
    const double vectors = static_cast<double>(b * (kSlots + 1) * dim), pairs = 351 * samples;
    const double columns = static_cast<double>(b * DotInteractionColumns(kSlots, dim));
    Memory slots = figures.Random(static_cast<double>(b * kSlots * dim));
    Memory wide = figures.Random(columns),
           dslots = figures.Take(static_cast<double>(slots.bytes()));
    if (!stream.status().ok()) return;
    const double flops = 2 * pairs * static_cast<double>(dim);
    figures.Measure(
        absl::StrFormat("DotInteraction, 26 slots, D=%d", dim), 4 * (vectors + columns), flops,
        [&](size_t) { DotInteraction(F(x), F(slots), F(wide), b, kSlots, dim, stream); });
    figures.Measure(absl::StrFormat("DotInteractionBackward, 26 slots, D=%d", dim),
                    4 * (2 * vectors + columns), 2 * flops, [&](size_t) {
                      DotInteractionBackward(F(x), F(slots), F(wide), Write::kOverwrite, F(y),
                                             Write::kOverwrite, F(dslots), b, kSlots, dim, stream);
                    });
    figures.Measure(
        absl::StrFormat("FmOrder2, 26 slots, D=%d", dim), 4 * vectors, 3 * vectors,
        [&](size_t) { FmOrder2(F(slots), kSlots * dim, F(y), b, kSlots, dim, stream); });
  }
}

// Returns the exit code.
int Run(bool query_only, bool small) {
  const DeviceQuery query = QueryGpus();
  if (query.gpus.empty()) {
    std::printf("{\n  \"device\": null,\n  \"reason\": \"%s\"\n}\n", query.reason.c_str());
    return 0;
  }
  if (query_only) {
    std::printf("{\n  \"device\": \"%s\"\n}\n", query.gpus[0].name.c_str());
    return 0;
  }
  absl::StatusOr<Stream> stream = Stream::OnGpu(0);
  if (!stream.ok()) {
    std::fprintf(stderr, "gpu_benchmark: %s\n", stream.status().ToString().c_str());
    return 1;
  }
  const GpuInfo& gpu = query.gpus[0];
  MemoryPool pool(DeviceKind::kCuda, 0, gpu.memory_bytes);
  Figures figures(*stream, pool, small ? 2048 : 1);
  Copies(figures);
  Products(figures);
  RandomRows(figures);
  Embeddings(figures, "10 tables of 1.68 million rows", 10, figures.Small(1680000),
             figures.Small(104857), {128});
  Embeddings(figures, "26 tables of 1 million rows", 26, figures.Small(1000000),
             figures.Small(65536), {16, 64, 128});
  DenseOps(figures);
  StagingOps(figures);
  const absl::Status status = stream->Wait();
  std::printf(
      "{\n  \"device\": \"%s\",\n  \"driver\": %d,\n  \"runtime\": %d,\n"
      "  \"multiprocessors\": %d,\n  \"memory_bytes\": %llu,\n  \"error\": \"%s\",\n%s\n}\n",
      gpu.name.c_str(), query.driver_version, query.runtime_version, gpu.multiprocessors,
      static_cast<unsigned long long>(gpu.memory_bytes),
      status.ok() ? "" : status.ToString().c_str(), figures.Json().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace
int RunGpuBenchmark(bool query_only, bool small) {
  return Run(query_only, small);
}

}  // namespace cistern::op

int main(int argc, char** argv) {
  const auto is = [&](const char* flag) { return argc > 1 && std::strcmp(argv[1], flag) == 0; };
  return cistern::op::RunGpuBenchmark(is("--query"), is("--small"));
}
