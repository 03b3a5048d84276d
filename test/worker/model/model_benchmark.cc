// Measures training steps of whole models on one device: time, samples per second, and the share of
// distinct rows. Prints JSON to standard output.
//
//   model_benchmark [--device cpu|cuda] [--batch 65536] [--rows 26000000] [--steps 30]
//                   [--roofs COPY_GB_S,FP32,TF32,BF16] [--batches FILE] [--way WAY] [NAME ...]
//
// --way measures only that way ("bf16", say), for a profiler.
// With --roofs, the machine's peak rates (from gpu_benchmark; products in TFLOP/s), each line also
// has the lower bound of the step time (model_roof.h) and the share of it that was reached.
// The models have Criteo's shape (13 dense features, 26 one-hot slots): dlrm16, dlrm64, dlrm128,
// dcn2 (crosses with matrices), dcn (with vectors), deepfm, wdl; and, if it is named, dcnv2
// (DLRM-DCNv2 of MLPerf: 128 floats a row, rank 512). One pass table of --rows rows is
// divided among the slots as in the Criteo data (three quarters in five slots); keys of a slot
// follow a power law. test/benchmark/torch_models.py measures the same models with PyTorch on the
// same batches, which --batches writes to a file.
// On a GPU the program also times the cycle of a pass (rows in from pinned memory, their index, the
// steps, rows out), and checks that two runs of a few steps end with the same bits.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <random>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/hash.h"
#include "common/base/steady_time.h"
#include "cuda/core/device.h"
#include "cuda/core/device_context.h"
#include "cuda/op/key/key_index.h"
#include "test/worker/model/criteo_models.h"
#include "test/worker/model/model_roof.h"
#include "worker/data/source/batch_builder.h"
#include "worker/model/batch/device_keys.h"
#include "worker/model/batch/row_stage.h"
#include "worker/model/graph/model.h"
#include "worker/model/layer/layer_list.h"

namespace cistern::model {
namespace {

// The share of keys in each of Criteo's slots, in file order, in millionths of all keys.
constexpr double kSlotShares[kSlots] = {213000, 208,    92,     40,     108,  1,  38, 8, 1,
                                        205800, 15800,  2150,   1,      12,   64, 1,  1, 5,
                                        1,      213500, 137000, 211900, 3130, 69, 1,  1};

struct Flags {
  DeviceKind device = DeviceKind::kCpu;
  size_t batch = 65536, rows = 26000000, steps = 30;
  Roofs roofs;
  std::string batches;  // the file to which batches are written; empty: none
  std::string way;      // the only part to measure; empty: all
  std::vector<std::string> models = CriteoModels();
};

// Makes a batch with one row per slot, whose rank r follows a density proportional to 1 / r^1.05.
data::HostBatch RandomBatch(const Flags& flags, uint32_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> draw(0, 1);
  data::HostBatch batch;
  batch.size = flags.batch;
  for (size_t i = 0; i < flags.batch; ++i) batch.label.push_back(random() % 4 == 0 ? 1.0f : 0.0f);
  for (size_t i = 0; i < flags.batch * kDenseColumns; ++i) {
    batch.dense.push_back(static_cast<float>(draw(random)));
  }
  data::HostSparseBatch& in = batch.sparse.emplace_back();
  in.slot_num = kSlots;
  in.offsets.push_back(0);
  double all = 0;
  for (double share : kSlotShares) all += share;
  for (size_t i = 0; i < flags.batch; ++i) {
    double first = 0;
    for (const double share : kSlotShares) {
      const double rows = std::max(1.0, std::floor(static_cast<double>(flags.rows) * share / all));
      constexpr double kAlpha = -0.05;  // exponent in the inverse of the distribution
      const double most = std::pow(rows, kAlpha);
      const double rank = std::pow(1 - draw(random) * (1 - most), 1 / kAlpha) - 1;
      const double row = std::min(first + std::floor(rank), static_cast<double>(flags.rows - 1));
      in.rows.push_back(static_cast<Row>(row));
      in.offsets.push_back(static_cast<uint32_t>(in.rows.size()));
      first += rows;
    }
  }
  data::SegmentBuilder().Build(&batch);
  return batch;
}

// Times of steps, each launched while the previous one runs, as in training; and the last loss.
struct Times {
  std::vector<double> ms;                    // ascending
  std::vector<double> launch_ms, finish_ms;  // of the host; ascending
  uint64_t graphs_built = 0;
  double loss = 0;
  double gib = 0;  // device memory in use
  double median() const { return ms[ms.size() / 2]; }
};

absl::StatusOr<Times> TimeSteps(const ModelConfig& config, const Flags& flags,
                                const std::vector<data::HostBatch>& batches, PassTable* table,
                                DeviceContext& device) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, Model::Create(config, device));
  constexpr size_t kWarmUp = 5;
  Times times;
  auto last = std::chrono::steady_clock::now();
  const size_t steps = kWarmUp + flags.steps + 1;
  for (size_t launched = 0, finished = 0; finished < steps;) {
    const auto begin = std::chrono::steady_clock::now();
    if (launched < steps) {
      ++launched;
      const data::HostBatch* const next[] = {&batches[(launched + 1) % batches.size()],
                                             &batches[(launched + 2) % batches.size()]};
      CISTERN_RETURN_IF_ERROR(
          model->Launch(batches[launched % batches.size()], {&table, 1}, launched, 1.0, next));
      if (launched > kWarmUp) times.launch_ms.push_back(1e3 * SecondsSince(begin));
      if (launched - finished < Model::kStepsInFlight) continue;
    }
    const auto waiting = std::chrono::steady_clock::now();
    CISTERN_ASSIGN_OR_RETURN(const StepResult result, model->Finish());
    if (finished >= kWarmUp) times.finish_ms.push_back(1e3 * SecondsSince(waiting));
    times.loss = result.loss;
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double, std::milli> took = now - std::exchange(last, now);
    // The last step is left out, because no other step runs after it.
    if (++finished > kWarmUp && finished < steps) times.ms.push_back(took.count());
  }
  CISTERN_RETURN_IF_ERROR(device.stream().Wait());
  times.gib = static_cast<double>(device.pool().bytes()) / (1 << 30);
  times.graphs_built = model->graphs_built();
  for (std::vector<double>* ms : {&times.ms, &times.launch_ms, &times.finish_ms}) {
    std::sort(ms->begin(), ms->end());
  }
  return times;
}

// The same batches with rows and segments made by the host, and, on a GPU, with keys.
struct Batches {
  std::vector<data::HostBatch> rows, keys;
};

// The mixed key of a row among `rows`: rows are in the order of mixed keys (device_keys.h).
uint64_t MixedKeyOf(size_t row, size_t rows) {
  return row * (std::numeric_limits<uint64_t>::max() / rows);
}

// The mixed keys of all rows, in pinned memory.
absl::StatusOr<Memory> MixedKeys(size_t rows, DeviceContext& device) {
  CISTERN_ASSIGN_OR_RETURN(Memory keys, device.pool().Take(MemoryPlace::kPinned, 8 * rows, "keys"));
  for (size_t i = 0; i < rows; ++i) keys.view<uint64_t>().data[i] = MixedKeyOf(i, rows);
  return keys;
}

// Gives the batches keys in place of rows, as training on one GPU does.
absl::Status MakeKeys(const Flags& flags, DeviceContext& device, Batches* batches) {
  const size_t rows = flags.rows;
  CISTERN_ASSIGN_OR_RETURN(const Memory host, MixedKeys(rows, device));
  CISTERN_ASSIGN_OR_RETURN(Memory mixed,
                           device.pool().Take(MemoryPlace::kDevice, 8 * rows, "keys"));
  CopyToDevice(host.data(), mixed.data(), host.bytes(), device.stream());
  CISTERN_ASSIGN_OR_RETURN(const std::shared_ptr<const DeviceKeys> finder,
                           DeviceKeys::Build(std::move(mixed), rows, device, device.stream()));
  batches->keys = batches->rows;
  for (data::HostBatch& batch : batches->keys) {
    data::HostSparseBatch& sparse = batch.sparse[0];
    for (const Row row : std::exchange(sparse.rows, {})) {
      sparse.keys.push_back(UnmixKey(MixedKeyOf(row, rows)));
    }
    sparse.finder = finder;
    sparse.segment_rows.clear();
    sparse.segment_offsets.clear();
    sparse.segment_outputs.clear();
  }
  return absl::OkStatus();
}

// The arithmetic of a step, and whether a GPU runs it as a CUDA graph.
struct Way {
  const char* name;
  std::vector<std::string> settings;
  double element_bytes = 4;
  double Roofs::*products = &Roofs::fp32_tflop_s;
  bool by_keys = true;  // the device finds rows and makes segments, as in training on one GPU
};
std::vector<Way> WaysOn(DeviceKind device) {
  if (device == DeviceKind::kCpu) return {{"fp32", {}, 4, &Roofs::fp32_tflop_s}};
  const std::string halves = "cistern.activations=bfloat16";
  return {{"fp32", {}, 4, &Roofs::fp32_tflop_s},
          {"tf32", {"cistern.gpu_products=tf32"}, 4, &Roofs::tf32_tflop_s},
          {"bf16", {halves}, 2, &Roofs::bf16_tflop_s},
          {"bf16, rows", {halves}, 2, &Roofs::bf16_tflop_s, false},
          {"bf16, no graph", {halves, "solver.cuda_graph=false"}, 2, &Roofs::bf16_tflop_s}};
}

// The JSON fields that compare `ms` with the lower bound; empty if the roofs are not known.
std::string ShareOfRoof(const std::string& name, const Way& way, const Flags& flags,
                        double distinct, double ms) {
  const double tflop_s = flags.roofs.*way.products;
  if (flags.roofs.copy_gb_s <= 0 || tflop_s <= 0) return "";
  const double least = LeastStepMs(ShapeOf(name), static_cast<double>(flags.batch), distinct,
                                   way.element_bytes, flags.roofs.copy_gb_s, tflop_s);
  return absl::StrFormat(R"(, "roof_ms": %.3f, "share_of_roof": %.3f)", least, least / ms);
}

// *ms: the step time of the fastest way so far; 0: none.
absl::StatusOr<std::string> MeasureWay(const std::string& name, const Way& way, const Flags& flags,
                                       const Batches& in, PassTable* table, DeviceContext& device,
                                       double* ms) {
  CISTERN_ASSIGN_OR_RETURN(
      const ModelConfig config,
      ParseModelConfig(CriteoModel(name, flags.batch), name, way.settings, LayerGrammars()));
  const bool by_keys = way.by_keys && !in.keys.empty();
  CISTERN_ASSIGN_OR_RETURN(const Times times,
                           TimeSteps(config, flags, by_keys ? in.keys : in.rows, table, device));
  const data::HostSparseBatch& first = in.rows[0].sparse[0];
  const auto distinct = static_cast<double>(first.segment_rows.size());
  *ms = *ms > 0 ? std::min(*ms, times.median()) : times.median();
  return absl::StrFormat(
      R"(    {"model": "%s", "way": "%s", "batch": %d, "ms": %.3f, "ms_min": %.3f, )"
      R"("samples_per_s": %.0f, "launch_ms": %.3f, "finish_ms": %.3f, "graphs_built": %d, )"
      R"("distinct_share": %.3f, "loss": %.6f, "memory_gib": %.2f%s})",
      name, way.name, flags.batch, times.median(), times.ms.front(),
      static_cast<double>(flags.batch) / times.median() * 1000,
      times.launch_ms[times.launch_ms.size() / 2], times.finish_ms[times.finish_ms.size() / 2],
      times.graphs_built, distinct / static_cast<double>(first.rows.size()), times.loss, times.gib,
      ShareOfRoof(name, way, flags, distinct, times.median()));
}

// Returns the seconds to build the index of `count` keys on the device, from pinned memory.
absl::StatusOr<double> TimeIndex(size_t count, DeviceContext& device) {
  MemoryPool& pool = device.pool();
  CISTERN_ASSIGN_OR_RETURN(const Memory host, MixedKeys(count, device));
  CISTERN_ASSIGN_OR_RETURN(Memory mixed, pool.Take(MemoryPlace::kDevice, 8 * count, "keys"));
  CISTERN_ASSIGN_OR_RETURN(Memory index,
                           pool.Take(MemoryPlace::kDevice, 4 * op::KeyIndexEntries(count), "keys"));
  const auto start = std::chrono::steady_clock::now();
  CopyToDevice(host.data(), mixed.data(), host.bytes(), device.stream());
  op::BuildKeyIndex(mixed.view<uint64_t>().data, count, index.view<uint32_t>().data,
                    device.stream());
  CISTERN_RETURN_IF_ERROR(device.stream().Wait());
  return SecondsSince(start);
}

// Measures the device's part of a pass, without the host's work on rows. step_ms: time per step.
absl::StatusOr<std::string> MeasureCycle(const std::string& name, double step_ms,
                                         const Flags& flags, PassTable* table,
                                         DeviceContext& device) {
  RowStage stage(device);
  const auto take = [](size_t, size_t, const float*, const uint8_t*) { return absl::OkStatus(); };
  const auto fill = [](auto...) { return absl::OkStatus(); };
  CISTERN_RETURN_IF_ERROR(stage.Read(*table, take));  // allocates the chunks
  auto start = std::chrono::steady_clock::now();
  CISTERN_RETURN_IF_ERROR(stage.Read(*table, take));
  const double read = SecondsSince(start);
  start = std::chrono::steady_clock::now();
  CISTERN_RETURN_IF_ERROR(stage.Write(fill, *table));
  const double write = SecondsSince(start);
  CISTERN_ASSIGN_OR_RETURN(const double index, TimeIndex(table->rows(), device));
  const double gb = static_cast<double>(table->rows() * table->stride() * sizeof(float)) * 1e-9;
  const double steps = static_cast<double>(flags.steps) * step_ms * 1e-3;
  return absl::StrFormat(
      R"(    {"model": "%s", "way": "pass cycle", "rows": %d, "gb": %.2f, "steps": %d, )"
      R"("seconds": %.3f, "rows_in_s": %.3f, "index_s": %.4f, "steps_s": %.3f, )"
      R"("rows_out_s": %.3f, "to_host_gb_s": %.2f, "to_device_gb_s": %.2f})",
      name, table->rows(), gb, flags.steps, write + index + steps + read, write, index, steps, read,
      gb / read, gb / write);
}

// Fills the table with the initial values of its rows.
absl::Status FillTable(const Flags& flags, DeviceContext& device, PassTable* table) {
  CISTERN_RETURN_IF_ERROR(table->Resize(flags.rows));
  const ValueLayout& layout = table->layout();
  const auto initial = [&](size_t first, size_t count, auto, float* values, uint8_t* has_embedx) {
#pragma omp parallel for
    for (size_t i = 0; i < count; ++i) {
      has_embedx[i] = layout.Initialize(first + i, values + i * layout.full_floats());
    }
    return absl::OkStatus();
  };
  return RowStage(device).Write(initial, *table);
}

// Returns a digest of the results of a run: its rows and its last loss.
absl::StatusOr<uint64_t> DigestOfRun(const ModelConfig& config, const Flags& flags,
                                     const std::vector<data::HostBatch>& batches, PassTable* table,
                                     DeviceContext& device) {
  CISTERN_RETURN_IF_ERROR(FillTable(flags, device, table));
  CISTERN_ASSIGN_OR_RETURN(const Times times, TimeSteps(config, flags, batches, table, device));
  uint64_t digest = HashBytes(&times.loss, sizeof(times.loss));
  const auto take = [&](size_t, size_t count, const float* values, const uint8_t*) {
    digest = MixKey(digest ^ HashBytes(values, count * table->stride() * sizeof(float)));
    return absl::OkStatus();
  };
  CISTERN_RETURN_IF_ERROR(RowStage(device).Read(*table, take));
  return digest;
}

// Compares two runs of a few bfloat16 steps from the same rows.
absl::StatusOr<std::string> CompareRuns(const std::string& name, Flags flags,
                                        const std::vector<data::HostBatch>& batches,
                                        PassTable* table, DeviceContext& device) {
  flags.steps = std::min<size_t>(flags.steps, 5);
  CISTERN_ASSIGN_OR_RETURN(const ModelConfig config,
                           ParseModelConfig(CriteoModel(name, flags.batch), name,
                                            {"cistern.activations=bfloat16"}, LayerGrammars()));
  uint64_t digests[2];
  for (uint64_t& digest : digests) {
    CISTERN_ASSIGN_OR_RETURN(digest, DigestOfRun(config, flags, batches, table, device));
  }
  if (digests[0] != digests[1]) {
    return absl::InternalError("two runs of the same steps ended with different bits");
  }
  return absl::StrFormat(
      R"(    {"model": "%s", "way": "determinism", "runs": 2, "same_bits": true, )"
      R"("digest": "%016x"})",
      name, digests[0]);
}

// The measurements of a model: steps in each way; on a GPU also pass cycle and determinism.
std::vector<std::string> PartsOf(const std::string& name, const Flags& flags) {
  const DeviceKind device = flags.device;
  std::vector<std::string> parts;
  for (const Way& way : WaysOn(device)) parts.push_back(way.name);
  if (device == DeviceKind::kCpu) return parts;
  parts.push_back("pass cycle");
  if (ShapeOf(name).dim == 16) parts.push_back("determinism");  // too slow for larger tables
  return parts;
}

// Appends a line for each of `parts` from *part on. Stops at the first failure, because the
// device's stream is unusable after an error.
absl::Status MeasureParts(const std::string& name, const Flags& flags,
                          const std::vector<data::HostBatch>& rows,
                          const std::vector<std::string>& parts, size_t* part,
                          std::vector<std::string>* lines) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceContext> device,
                           DeviceContext::Open(flags.device));
  CISTERN_ASSIGN_OR_RETURN(
      const ModelConfig config,
      ParseModelConfig(CriteoModel(name, flags.batch), name, {}, LayerGrammars()));
  CISTERN_ASSIGN_OR_RETURN(const ValueLayout layout,
                           ValueLayout::Create(config.embeddings[0].spec));
  PassTable table(layout, *device);
  CISTERN_RETURN_IF_ERROR(FillTable(flags, *device, &table));
  Batches batches{rows, {}};
  if (flags.device == DeviceKind::kCuda) {
    CISTERN_RETURN_IF_ERROR(MakeKeys(flags, *device, &batches));
  }
  const std::vector<Way> ways = WaysOn(flags.device);
  double step_ms = 0;
  const auto measure = [&]() -> absl::StatusOr<std::string> {
    if (*part < ways.size()) {
      return MeasureWay(name, ways[*part], flags, batches, &table, *device, &step_ms);
    }
    return parts[*part] == "pass cycle" ? MeasureCycle(name, step_ms, flags, &table, *device)
                                        : CompareRuns(name, flags, batches.keys, &table, *device);
  };
  for (; *part < parts.size(); ++*part) {
    if (!flags.way.empty() && parts[*part] != flags.way) continue;
    CISTERN_ASSIGN_OR_RETURN(const std::string line, measure());
    std::fprintf(stderr, "%s\n", line.c_str());
    lines->push_back(line);
  }
  return absl::OkStatus();
}

// Measures all parts of a model. A failed part becomes an error line, and the next part starts on a
// fresh device. Returns the number of errors.
size_t Measure(const std::string& name, const Flags& flags,
               const std::vector<data::HostBatch>& batches, std::vector<std::string>* lines) {
  const std::vector<std::string> parts = PartsOf(name, flags);
  size_t errors = 0;
  for (size_t part = 0; part < parts.size(); ++part) {
    const absl::Status measured = MeasureParts(name, flags, batches, parts, &part, lines);
    if (measured.ok()) break;
    lines->push_back(absl::StrFormat(
        R"(    {"model": "%s", "way": "%s", "error": "%s"})", name, parts[part],
        absl::StrReplaceAll(measured.message(), {{"\"", "'"}, {"\\", "/"}, {"\n", " "}})));
    std::fprintf(stderr, "%s\n", lines->back().c_str());
    ++errors;
  }
  return errors;
}

// Writes the labels (floats), dense features (floats) and rows (32-bit integers) of each batch.
absl::Status WriteBatches(const std::vector<data::HostBatch>& batches, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  const auto write = [&file](const auto& values) {
    file.write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size() * sizeof(values[0])));
  };
  for (const data::HostBatch& batch : batches) {
    write(batch.label);
    write(batch.dense);
    write(batch.sparse[0].rows);
  }
  file.close();
  return file ? absl::OkStatus()
              : absl::UnavailableError(absl::StrCat(path, ": cannot write the file"));
}

absl::Status Run(const Flags& flags) {
  CISTERN_RETURN_IF_ERROR(DeviceContext::Open(flags.device).status());
  std::vector<data::HostBatch> batches;
  for (uint32_t seed = 1; seed <= 4; ++seed) batches.push_back(RandomBatch(flags, seed));
  if (!flags.batches.empty()) CISTERN_RETURN_IF_ERROR(WriteBatches(batches, flags.batches));
  std::vector<std::string> lines;
  size_t errors = 0;
  for (const std::string& name : flags.models) errors += Measure(name, flags, batches, &lines);
  std::printf("{\n  \"rows\": %zu,\n  \"models\": [\n%s\n  ]\n}\n", flags.rows,
              absl::StrJoin(lines, ",\n").c_str());
  if (errors == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(errors, " measurements failed; see the error lines"));
}

bool Parse(int argc, char** argv, Flags* flags) {
  std::vector<std::string> names;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (word.rfind("--", 0) != 0) {
      names.push_back(word);
      continue;
    }
    ++i;
    if (word == "--way") {
      flags->way = value;
    } else if (word == "--device") {
      flags->device = value == "cuda" ? DeviceKind::kCuda : DeviceKind::kCpu;
    } else if (word == "--batches") {
      flags->batches = value;
    } else if (word == "--roofs") {
      Roofs& roofs = flags->roofs;
      if (std::sscanf(value.c_str(), "%lf,%lf,%lf,%lf", &roofs.copy_gb_s, &roofs.fp32_tflop_s,
                      &roofs.tf32_tflop_s, &roofs.bf16_tflop_s) != 4) {
        return false;
      }
    } else if (!((word == "--batch" && absl::SimpleAtoi(value, &flags->batch)) ||
                 (word == "--rows" && absl::SimpleAtoi(value, &flags->rows)) ||
                 (word == "--steps" && absl::SimpleAtoi(value, &flags->steps)))) {
      return false;
    }
  }
  if (!names.empty()) flags->models = names;
  return flags->batch > 0 && flags->rows >= 1000 && flags->steps > 0;
}

}  // namespace
}  // namespace cistern::model

int main(int argc, char** argv) {
  cistern::model::Flags flags;
  if (!cistern::model::Parse(argc, argv, &flags)) {
    std::fprintf(stderr,
                 "usage: model_benchmark [--device cpu|cuda] [--batch N] [--rows N] [--steps N] "
                 "[--roofs COPY_GB_S,FP32,TF32,BF16] [--batches FILE] [--way WAY] [NAME ...]\n");
    return 2;
  }
  const absl::Status status = cistern::model::Run(flags);
  if (status.ok()) return 0;
  return std::fprintf(stderr, "model_benchmark: %s\n", std::string(status.message()).c_str()), 1;
}
