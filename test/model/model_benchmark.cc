// Training steps of whole models on one device: time, samples a second, and the share of distinct
// rows, as JSON on standard output.
//
//   model_benchmark [--device cpu|cuda] [--batch 65536] [--rows 26000000] [--steps 30]
//                   [--roofs COPY_GB_S,FP32,TF32,BF16] [NAME ...]
//
// With the machine's roofs (gpu_benchmark; of products in TFLOP/s) each line has the least time of
// such a step (model_roof.h), and which share of it was reached.
// Models of Criteo's shape (13 dense features, 26 one-hot slots): dlrm16, dlrm64, dlrm128, dcn,
// deepfm, wdl. Rows lie in one pass table of --rows rows, shared among the slots as Criteo's are
// (three quarters in five slots), keys of a slot by a power law. test/benchmark/torch_models.py
// does the same with PyTorch.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cuda/device.h"
#include "cuda/device_context.h"
#include "test/model/model_roof.h"
#include "test/model/model_texts.h"
#include "worker/model/model.h"
#include "worker/pass/batch_builder.h"
#include "worker/pass/row_stage.h"

namespace cistern {
namespace {

constexpr size_t kSlots = 26, kDense = 13;
// Criteo's slots in the order of the files, in millionths of all keys.
constexpr double kSlotShares[kSlots] = {213000, 208,    92,     40,     108,  1,  38, 8, 1,
                                        205800, 15800,  2150,   1,      12,   64, 1,  1, 5,
                                        1,      213500, 137000, 211900, 3130, 69, 1,  1};

struct Flags {
  DeviceKind device = DeviceKind::kCpu;
  size_t batch = 65536, rows = 26000000, steps = 30;
  Roofs roofs;
  std::vector<std::string> models = {"dlrm128", "dlrm64", "dlrm16", "dcn", "deepfm", "wdl"};
};

std::string Layers(const std::vector<std::string>& layers) {
  return absl::StrJoin(layers, ", ");
}

// Fully connected layers with ReLU between `bottom` and `top`; the last without ReLU if `linear`.
std::string Tower(const std::string& name, std::string bottom, const std::vector<int>& widths,
                  const std::string& top, bool linear = false) {
  std::vector<std::string> layers;
  for (size_t i = 0; i < widths.size(); ++i) {
    const bool last = i + 1 == widths.size();
    const std::string fc = last && linear ? top : absl::StrCat(name, "_fc", i);
    layers.push_back(FullyConnected(bottom, fc, widths[i]));
    if (last && linear) break;
    const std::string relu = last ? top : absl::StrCat(name, "_relu", i);
    layers.push_back(Simple("ReLU", fc, relu));
    bottom = relu;
  }
  return Layers(layers);
}

std::string Flat(int dim) {
  return Simple("Reshape", "emb", "flat",
                absl::StrCat(R"("leading_dim": )", static_cast<int>(kSlots) * dim));
}

std::string Concat(const std::vector<std::string>& bottoms, const std::string& top) {
  return absl::StrCat(R"({"type": "Concat", "name": ")", top, R"(", "bottom": [")",
                      absl::StrJoin(bottoms, R"(", ")"), R"("], "top": ")", top, "\"}");
}

std::string Dlrm(int dim) {
  return Layers(
      {Embedding("emb", "data1", dim, "0"), Tower("bottom", "dense", {512, 256, dim}, "x"),
       R"({"type": "Interaction", "name": "pairs", "bottom": ["x", "emb"], "top": "pairs"})",
       Tower("top", "pairs", {1024, 1024, 512, 256, 1}, "logit", true)});
}

std::string Dcn() {
  return Layers({Embedding("emb", "data1", 16, "0"), Flat(16), Concat({"flat", "dense"}, "all"),
                 R"({"type": "Slice", "name": "slice", "bottom": "all", "top": ["in1", "in2"],
                     "ranges": [[0, 429], [0, 429]]})",
                 Simple("MultiCross", "in1", "cross", R"("mc_param": {"num_layers": 3})"),
                 Tower("deep", "in2", {1024, 1024, 1024}, "deep"),
                 Concat({"cross", "deep"}, "both"), FullyConnected("both", "logit", 1)});
}

std::string DeepFm() {
  return Layers(
      {Embedding("emb", "data1", 16, "0"), Flat(16), Concat({"flat", "dense"}, "all"),
       R"({"type": "Slice", "name": "slice", "bottom": "flat", "top": ["fm_in", "rest"],
                     "ranges": [[0, 416], [0, 416]]})",
       Simple("FmOrder2", "fm_in", "fm", R"("out_dim": 16)"),
       Simple("ReduceSum", "fm", "fm_sum", R"("axis": 1)"),
       Tower("deep", "all", {400, 400, 400, 1}, "deep", true),
       R"({"type": "Add", "name": "logit", "bottom": ["deep", "fm_sum"], "top": "logit"})"});
}

std::string Wdl() {
  return Layers({Embedding("emb", "data1", 16, "0"), Flat(16), Concat({"flat", "dense"}, "all"),
                 Tower("deep", "all", {1024, 1024, 1}, "logit", true)});
}

std::string TextOf(const std::string& name, size_t batch) {
  const std::string layers = name == "dlrm16"    ? Dlrm(16)
                             : name == "dlrm64"  ? Dlrm(64)
                             : name == "dlrm128" ? Dlrm(128)
                             : name == "dcn"     ? Dcn()
                             : name == "deepfm"  ? DeepFm()
                                                 : Wdl();
  return absl::StrCat(
      R"({"solver": {"max_iter": 1, "seed": 5, "batchsize": )", batch, R"(, "batchsize_eval": )",
      batch,
      R"(}, "optimizer": {"type": "AdaGrad", "adagrad_hparam": {"learning_rate": 0.01,
          "initial_accu_value": 0.1, "epsilon": 1e-7}},
          "layers": [{"type": "Data", "source": "x", "label": {"top": "label", "label_dim": 1},
          "dense": {"top": "dense", "dense_dim": 13},
          "sparse": [{"top": "data1", "slot_num": 26, "type": "DistributedSlot"}]}, )",
      layers,
      R"(, {"type": "BinaryCrossEntropyLoss", "name": "loss", "bottom": ["logit", "label"]}]})");
}

// One row a slot: rank r of n rows with a density that falls as 1 / r^1.05.
Batch RandomBatch(const Flags& flags, uint32_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> draw(0, 1);
  Batch batch;
  batch.size = flags.batch;
  for (size_t i = 0; i < flags.batch; ++i) batch.label.push_back(random() % 4 == 0 ? 1.0f : 0.0f);
  for (size_t i = 0; i < flags.batch * kDense; ++i) {
    batch.dense.push_back(static_cast<float>(draw(random)));
  }
  SparseBatch& in = batch.sparse.emplace_back();
  in.slot_num = kSlots;
  in.offsets.push_back(0);
  double all = 0;
  for (double share : kSlotShares) all += share;
  for (size_t i = 0; i < flags.batch; ++i) {
    double first = 0;
    for (const double share : kSlotShares) {
      const double rows = std::max(1.0, std::floor(static_cast<double>(flags.rows) * share / all));
      constexpr double kAlpha = -0.05;  // of the inverse of the distribution
      const double most = std::pow(rows, kAlpha);
      const double rank = std::pow(1 - draw(random) * (1 - most), 1 / kAlpha) - 1;
      const double row = std::min(first + std::floor(rank), static_cast<double>(flags.rows - 1));
      in.rows.push_back(static_cast<Row>(row));
      in.offsets.push_back(static_cast<uint32_t>(in.rows.size()));
      first += rows;
    }
  }
  SegmentBuilder().Build(&batch);
  return batch;
}

// Times of steps, each begun while the one before runs, as in training; and the last loss.
struct Times {
  std::vector<double> ms;  // ascending
  double loss = 0;
  double gib = 0;  // of the device's memory
  double median() const { return ms[ms.size() / 2]; }
};

absl::StatusOr<Times> TimeSteps(const ModelConfig& config, const Flags& flags,
                                const std::vector<Batch>& batches, PassTable* table,
                                DeviceContext& device) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, Model::Create(config, device));
  constexpr size_t kWarmUp = 5;
  Times times;
  auto last = std::chrono::steady_clock::now();
  const size_t steps = kWarmUp + flags.steps + 1;
  for (size_t launched = 0, finished = 0; finished < steps;) {
    if (launched < steps) {
      ++launched;
      CISTERN_RETURN_IF_ERROR(model->Launch(batches[launched % batches.size()], {&table, 1},
                                            launched, 1.0,
                                            &batches[(launched + 1) % batches.size()]));
      if (launched - finished < Model::kStepsInFlight) continue;
    }
    CISTERN_ASSIGN_OR_RETURN(const StepResult result, model->Finish());
    times.loss = result.loss;
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double, std::milli> took = now - std::exchange(last, now);
    // The last one has no step behind it.
    if (++finished > kWarmUp && finished < steps) times.ms.push_back(took.count());
  }
  CISTERN_RETURN_IF_ERROR(device.stream().Wait());
  times.gib = static_cast<double>(device.pool().bytes()) / (1 << 30);
  std::sort(times.ms.begin(), times.ms.end());
  return times;
}

// In which arithmetic, and how a GPU is given a step.
struct Way {
  const char* name;
  std::vector<std::string> settings;
  double element_bytes = 4;
  double Roofs::*products = &Roofs::fp32_tflop_s;
};
std::vector<Way> WaysOn(DeviceKind device) {
  if (device == DeviceKind::kCpu) return {{"fp32", {}, 4, &Roofs::fp32_tflop_s}};
  const std::string halves = "cistern.activations=bfloat16";
  return {{"fp32", {}, 4, &Roofs::fp32_tflop_s},
          {"tf32", {"cistern.gpu_products=tf32"}, 4, &Roofs::tf32_tflop_s},
          {"bf16", {halves}, 2, &Roofs::bf16_tflop_s},
          {"bf16, no graph", {halves, "solver.cuda_graph=false"}, 2, &Roofs::bf16_tflop_s}};
}

// What the roofs say of a step that took so long; empty where they are not known.
std::string ShareOfRoof(const std::string& name, const Way& way, const Flags& flags,
                        double distinct, double ms) {
  const double tflop_s = flags.roofs.*way.products;
  if (flags.roofs.copy_gb_s <= 0 || tflop_s <= 0) return "";
  const double least = LeastStepMs(ShapeOf(name), static_cast<double>(flags.batch), distinct,
                                   way.element_bytes, flags.roofs.copy_gb_s, tflop_s);
  return absl::StrFormat(R"(, "roof_ms": %.3f, "share_of_roof": %.3f)", least, least / ms);
}

absl::StatusOr<std::string> MeasureWay(const std::string& name, const Way& way, const Flags& flags,
                                       const std::vector<Batch>& batches, PassTable* table,
                                       DeviceContext& device) {
  CISTERN_ASSIGN_OR_RETURN(const ModelConfig config,
                           ParseModelConfig(TextOf(name, flags.batch), name, way.settings));
  CISTERN_ASSIGN_OR_RETURN(const Times times, TimeSteps(config, flags, batches, table, device));
  return absl::StrFormat(
      R"(    {"model": "%s", "way": "%s", "batch": %d, "ms": %.3f, "ms_min": %.3f, )"
      R"("samples_per_s": %.0f, "distinct_share": %.3f, "loss": %.6f, "memory_gib": %.2f%s})",
      name, way.name, flags.batch, times.median(), times.ms.front(),
      static_cast<double>(flags.batch) / times.median() * 1000,
      static_cast<double>(batches[0].sparse[0].segment_rows.size()) /
          static_cast<double>(batches[0].sparse[0].rows.size()),
      times.loss, times.gib,
      ShareOfRoof(name, way, flags, static_cast<double>(batches[0].sparse[0].segment_rows.size()),
                  times.median()));
}

// How long the rows of a pass take to the host and back, without what the host does with them.
absl::StatusOr<std::string> MeasureStaging(const std::string& name, PassTable* table,
                                           DeviceContext& device) {
  RowStage stage(device);
  const auto seconds_since = [](std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const auto take = [](size_t, size_t, const float*, const uint8_t*) { return absl::OkStatus(); };
  const auto fill = [](size_t, size_t, float*, uint8_t*) { return absl::OkStatus(); };
  CISTERN_RETURN_IF_ERROR(stage.Read(*table, take));  // chunks are taken
  auto start = std::chrono::steady_clock::now();
  CISTERN_RETURN_IF_ERROR(stage.Read(*table, take));
  const double read = seconds_since(start);
  start = std::chrono::steady_clock::now();
  CISTERN_RETURN_IF_ERROR(stage.Write(fill, *table));
  const double write = seconds_since(start);
  const double gb = static_cast<double>(table->rows() * table->stride() * sizeof(float)) * 1e-9;
  return absl::StrFormat(
      R"(    {"model": "%s", "way": "staging", "rows": %d, "gb": %.2f, "to_host_gb_s": %.2f, )"
      R"("to_device_gb_s": %.2f})",
      name, table->rows(), gb, gb / read, gb / write);
}

// Rows of a pass with their first values.
absl::Status FillTable(const Flags& flags, DeviceContext& device, PassTable* table) {
  CISTERN_RETURN_IF_ERROR(table->Resize(flags.rows));
  const ValueLayout& layout = table->layout();
  const auto first_values = [&layout](size_t first, size_t count, float* values, uint8_t* full) {
#pragma omp parallel for
    for (size_t i = 0; i < count; ++i) {
      full[i] = layout.Initialize(first + i, values + i * layout.full_floats());
    }
    return absl::OkStatus();
  };
  return RowStage(device).Write(first_values, *table);
}

// A line for each of `ways` from *way on, and one for the staging of the rows, until one fails:
// after an error a device's stream is of no use.
absl::Status MeasureWays(const std::string& name, const Flags& flags,
                         const std::vector<Batch>& batches, const std::vector<Way>& ways,
                         size_t* way, std::vector<std::string>* lines) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceContext> device,
                           DeviceContext::Open(flags.device));
  CISTERN_ASSIGN_OR_RETURN(const ModelConfig config,
                           ParseModelConfig(TextOf(name, flags.batch), name, {}));
  CISTERN_ASSIGN_OR_RETURN(const ValueLayout layout,
                           ValueLayout::Create(config.embeddings[0].spec));
  PassTable table(layout, *device);
  CISTERN_RETURN_IF_ERROR(FillTable(flags, *device, &table));
  const auto add = [lines](const std::string& line) {
    std::fprintf(stderr, "%s\n", line.c_str());
    lines->push_back(line);
  };
  for (; *way < ways.size(); ++*way) {
    CISTERN_ASSIGN_OR_RETURN(const std::string line,
                             MeasureWay(name, ways[*way], flags, batches, &table, *device));
    add(line);
  }
  if (device->kind() == DeviceKind::kCpu) return absl::OkStatus();
  CISTERN_ASSIGN_OR_RETURN(const std::string line, MeasureStaging(name, &table, *device));
  add(line);
  return absl::OkStatus();
}

// The same, where an error is a line, and what is behind it is measured anew. Returns how many.
size_t Measure(const std::string& name, const Flags& flags, const std::vector<Batch>& batches,
               std::vector<std::string>* lines) {
  const std::vector<Way> ways = WaysOn(flags.device);
  size_t errors = 0;
  for (size_t way = 0; way <= ways.size(); ++way) {
    const absl::Status measured = MeasureWays(name, flags, batches, ways, &way, lines);
    if (measured.ok()) break;
    lines->push_back(absl::StrFormat(
        R"(    {"model": "%s", "way": "%s", "error": "%s"})", name,
        way < ways.size() ? ways[way].name : "staging",
        absl::StrReplaceAll(measured.message(), {{"\"", "'"}, {"\\", "/"}, {"\n", " "}})));
    std::fprintf(stderr, "%s\n", lines->back().c_str());
    ++errors;
  }
  return errors;
}

absl::Status Run(const Flags& flags) {
  CISTERN_RETURN_IF_ERROR(DeviceContext::Open(flags.device).status());
  std::vector<Batch> batches;
  for (uint32_t seed = 1; seed <= 4; ++seed) batches.push_back(RandomBatch(flags, seed));
  std::vector<std::string> lines;
  size_t errors = 0;
  for (const std::string& name : flags.models) errors += Measure(name, flags, batches, &lines);
  std::printf("{\n  \"rows\": %zu,\n  \"models\": [\n%s\n  ]\n}\n", flags.rows,
              absl::StrJoin(lines, ",\n").c_str());
  if (errors == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(errors, " lines are errors"));
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
    if (word == "--device") {
      flags->device = value == "cuda" ? DeviceKind::kCuda : DeviceKind::kCpu;
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
}  // namespace cistern

int main(int argc, char** argv) {
  cistern::Flags flags;
  if (!cistern::Parse(argc, argv, &flags)) {
    std::fprintf(stderr,
                 "usage: model_benchmark [--device cpu|cuda] [--batch N] [--rows N] [--steps N] "
                 "[--roofs COPY_GB_S,FP32,TF32,BF16] [NAME ...]\n");
    return 2;
  }
  const absl::Status status = cistern::Run(flags);
  if (status.ok()) return 0;
  std::fprintf(stderr, "model_benchmark: %s\n", std::string(status.message()).c_str());
  return 1;
}
