// The speed of predictions from a serving folder, in one process: lookups, requests of several
// sizes, and delays under an open load, in which requests are due at a fixed rate whether or not
// earlier ones are done. A delay counts from the moment at which a request was due.
//
//   serve_benchmark --folder DIR [--model deepfm|dlrm] [--rows N] [--precision P] [--threads N]
//                   [--onnx FILE]   also writes the network, for test/benchmark/serve_peers.py
//                   [--changes]     only the delays while commits are published
//                   [--pause-ms N]  between two commits (1000)
//                   [--low]         they are published at low priority, not only when idle
//
// DIR: a serving folder, which is made if it does not exist: random rows for 26 slots x 16 floats.
// Prints one JSON object a line.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <random>
#include <set>
#include <thread>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/base/low_priority.h"
#include "serve/predictor/open_predictor.h"
#include "serve/predictor/served_state.h"
#include "test/benchmark/options.h"
#include "test/benchmark/work_used.h"
#include "worker/export/onnx/onnx_model.h"
#include "worker/export/serving/version_series.h"
#include "worker/model/graph/model.h"
#include "worker/model/layer/layer_list.h"

namespace cistern {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kSlots = 26, kDim = 16, kDense = 13;

double Seconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

std::string Layer(const std::string& type, const std::string& bottom, const std::string& top,
                  const std::string& rest = "") {
  return absl::StrCat(",{\"type\":\"", type, "\",\"bottom\":[", bottom, "],\"top\":\"", top, "\"",
                      rest, "}");
}

std::string Dense(const std::string& bottom, const std::string& top, int outputs, bool relu) {
  const std::string linear = absl::StrCat(top, relu ? "_linear" : "");
  std::string text = Layer("InnerProduct", absl::StrCat("\"", bottom, "\""), linear,
                           absl::StrCat(",\"fc_param\":{\"num_output\":", outputs, "}"));
  if (relu) text += Layer("ReLU", absl::StrCat("\"", linear, "\""), top);
  return text;
}

// DeepFM: 26 x 16, three layers of 400, second-order interactions. DLRM: 512-256-16 bottom, dot
// products, 1024-1024-512-256-1 top.
std::string ModelFile(const std::string& model) {
  std::string text = absl::StrFormat(
      R"({"solver":{"lr_policy":"fixed","max_iter":1,"batchsize":1024,"seed":1,
"input_key_type":"I64"},"optimizer":{"type":"SGD","update_type":"Local",
"sgd_hparam":{"learning_rate":0.01}},"layers":[{"name":"data","type":"Data","source":"none",
"eval_source":"none","check":"None","label":{"top":"label","label_dim":1},
"dense":{"top":"dense","dense_dim":%d},"sparse":[{"top":"slots","type":"DistributedSlot",
"max_feature_num_per_sample":%d,"slot_num":%d}]},
{"name":"embedding","type":"DistributedSlotSparseEmbeddingHash","bottom":"slots","top":"rows",
"sparse_embedding_hparam":{"embedding_vec_size":%d,"combiner":"sum"}})",
      kDense, kSlots, kSlots, kDim);
  if (model == "dlrm") {
    text += Dense("dense", "b1", 512, true) + Dense("b1", "b2", 256, true) +
            Dense("b2", "b3", kDim, true) + Layer("Interaction", "\"b3\",\"rows\"", "pairs") +
            Dense("pairs", "t1", 1024, true) + Dense("t1", "t2", 1024, true) +
            Dense("t2", "t3", 512, true) + Dense("t3", "t4", 256, true) +
            Dense("t4", "logit", 1, false);
  } else {
    const std::string width = absl::StrCat(",\"leading_dim\":", kSlots * kDim);
    text += Layer("Reshape", "\"rows\"", "flat", width) +
            Layer("Concat", "\"flat\",\"dense\"", "all") + Dense("all", "f1", 400, true) +
            Dense("f1", "f2", 400, true) + Dense("f2", "f3", 400, true) +
            Dense("f3", "deep", 1, false) +
            Layer("FmOrder2", "\"flat\"", "fm", absl::StrCat(",\"out_dim\":", kDim)) +
            Layer("ReduceSum", "\"fm\"", "fm_sum", ",\"axis\":1") +
            Layer("Add", "\"deep\",\"fm_sum\"", "logit");
  }
  return text + Layer("BinaryCrossEntropyLoss", "\"logit\",\"label\"", "loss") + "]}";
}

// A model whose row of key k has weights that depend on k and the commit; keys 0 .. rows - 1.
class RandomModel : public CommittedModel {
 public:
  RandomModel(const model::ModelConfig& config, uint64_t rows) : rows_(rows) {
    DeviceContext device;
    const auto model = model::Model::Create(config, device).value();
    schema_ = model->schema();
    for (size_t i = 0; i < static_cast<size_t>(schema_.dense_tables_size()); ++i) {
      dense_.push_back(model->ReadDense(i).value());
    }
  }
  const std::string& name() const override { return name_; }
  const v1::Schema& schema() const override { return schema_; }
  uint32_t shard_num() const override { return 1; }
  CommittedVersion version() const override {
    return {.commit = commit_, .manifest_xxh3 = commit_, .pass = commit_};
  }
  absl::Status Scan(TableId, const Visit& visit) override {
    float row[kDim];
    const uint64_t every = commit_ == 1 ? 1 : kChangedOneIn;
    for (Key key = commit_ % every; key < rows_; key += every) {
      Fill(key + (commit_ << 40), row);
      CISTERN_RETURN_IF_ERROR(visit(0, key, row, true));
    }
    return absl::OkStatus();
  }
  // The next commit, whose Scan visits the changed rows only: one in kChangedOneIn.
  void Commit() { ++commit_; }
  absl::Status Pull(TableId, absl::Span<const Key> keys, float* values, uint8_t*) override {
    for (size_t i = 0; i < keys.size(); ++i) Fill(keys[i] + (commit_ << 40), values + i * kDim);
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<float>> PullDense(TableId table) override { return dense_[table]; }
  absl::Status Recheck() override { return absl::OkStatus(); }

 private:
  static void Fill(Key key, float* row) {
    for (size_t i = 0; i < kDim; ++i) {
      row[i] = static_cast<float>(MixKey(key * kDim + i) >> 40) * 0x1p-24f * 0.1f - 0.05f;
    }
  }
  static constexpr uint64_t kChangedOneIn = 100;
  const uint64_t rows_;
  uint64_t commit_ = 1;
  const std::string name_ = "random";
  v1::Schema schema_;
  std::vector<std::vector<float>> dense_;
};

struct Flags {
  std::string onnx, folder, model = "deepfm", precision = "float32";
  uint64_t rows = 10'000'000;
  int threads = 2;
  double seconds = 5;
  bool changes = false, low = false;
  uint64_t pause_ms = 1000;
};

void MakeFolder(const Flags& flags) {
  if (std::filesystem::exists(flags.folder + "/HEAD")) return;
  const std::string text = ModelFile(flags.model);
  const model::ModelConfig config =
      model::ParseModelConfig(text, "bench.json", {}, model::LayerGrammars()).value();
  RandomModel model(config, flags.rows);
  LocalFileSystem files;
  const auto start = Clock::now();
  const auto written = WriteServingModel(files, config, {flags.model + ".json", text, {}}, model,
                                         {flags.folder, *PrecisionOf(flags.precision), 1});
  CISTERN_CHECK(written.ok());
  std::printf("{\"what\":\"export\",\"rows\":%llu,\"bytes\":%llu,\"seconds\":%.2f}\n",
              static_cast<unsigned long long>(written->rows),
              static_cast<unsigned long long>(written->bytes), Seconds(Clock::now() - start));
}

// The network for serve_peers.py.
void WriteOnnx(const Flags& flags) {
  if (flags.onnx.empty()) return;
  const model::ModelConfig config =
      model::ParseModelConfig(ModelFile(flags.model), "bench.json", {}, model::LayerGrammars())
          .value();
  RandomModel model(config, 0);
  LocalFileSystem files;
  CISTERN_CHECK(WriteOnnxModel(files, config, model, {flags.onnx}).ok());
}

// Random requests of `samples` samples: keys follow a power law, one a slot.
class Requests {
 public:
  Requests(size_t samples, uint64_t rows, uint64_t seed) : samples_(samples) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> uniform;
    keys_.resize(kKept * samples * kSlots);
    for (Key& key : keys_) {
      const double u = uniform(random);
      key = MixKey(static_cast<Key>(static_cast<double>(rows) * u * u * u)) % rows;
    }
    dense_.resize(kKept * samples * kDense);
    for (float& x : dense_) x = static_cast<float>(uniform(random));
    for (uint32_t i = 0; i <= samples * kSlots; ++i) offsets_.push_back(i);
  }
  serve::PredictRequest At(size_t i) const {
    const size_t n = samples_ * kSlots, d = samples_ * kDense, at = i % kKept;
    return {samples_,
            absl::MakeConstSpan(dense_).subspan(at * d, d),
            {{absl::MakeConstSpan(keys_).subspan(at * n, n), offsets_}}};
  }

 private:
  static constexpr size_t kKept = 512;
  const size_t samples_;
  std::vector<Key> keys_;
  std::vector<float> dense_;
  std::vector<uint32_t> offsets_;
};

double At(const std::vector<double>& sorted, double share) {
  return sorted[std::min(sorted.size() - 1,
                         static_cast<size_t>(share * static_cast<double>(sorted.size())))];
}

// One after another on one thread. Returns requests per second.
double Closed(serve::Predictor& predictor, const Requests& requests, size_t samples,
              double seconds) {
  std::vector<float> out(samples);
  std::vector<double> delays;
  serve::ServedVersion version;
  const auto start = Clock::now();
  for (size_t i = 0; Seconds(Clock::now() - start) < seconds; ++i) {
    const auto begun = Clock::now();
    CISTERN_CHECK(predictor.Predict(requests.At(i), absl::MakeSpan(out), &version, nullptr).ok());
    delays.push_back(Seconds(Clock::now() - begun) * 1e3);
  }
  const double rate = static_cast<double>(delays.size()) / Seconds(Clock::now() - start);
  std::sort(delays.begin(), delays.end());
  std::printf(
      "{\"what\":\"closed\",\"samples\":%zu,\"requests_per_s\":%.0f,\"samples_per_s\":%.0f,"
      "\"p50_ms\":%.3f,\"p99_ms\":%.3f}\n",
      samples, rate, rate * static_cast<double>(samples), At(delays, 0.5), At(delays, 0.99));
  return rate;
}

// what: "open", or what happens meanwhile.
// Returns the work of the requests.
Work Open(serve::Predictor& predictor, const Requests& requests, size_t samples, double rate,
          const Flags& flags, const char* what = "open") {
  const auto total = static_cast<size_t>(rate * flags.seconds);
  std::vector<double> delays(total);
  std::vector<Work> work(static_cast<size_t>(flags.threads));
  std::atomic<size_t> next{0};
  const auto start = Clock::now() + std::chrono::milliseconds(10);
  std::vector<std::thread> clients;
  for (int t = 0; t < flags.threads; ++t) {
    clients.emplace_back([&, t] {
      std::vector<float> out(samples);
      serve::ServedVersion version;
      const Work before = Work::Of(RUSAGE_THREAD);
      for (size_t i = next++; i < total; i = next++) {
        const auto due = start + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(static_cast<double>(i) / rate));
        // Sleeping wakes up late by 50 us or more, so the last part is spun.
        std::this_thread::sleep_until(due - std::chrono::microseconds(100));
        while (Clock::now() < due) {
        }
        CISTERN_CHECK(
            predictor.Predict(requests.At(i), absl::MakeSpan(out), &version, nullptr).ok());
        delays[i] = Seconds(Clock::now() - due) * 1e3;
      }
      work[static_cast<size_t>(t)] = Work::Of(RUSAGE_THREAD) - before;
    });
  }
  for (std::thread& client : clients) client.join();
  Work all;
  for (const Work& one : work) all = all + one;
  std::sort(delays.begin(), delays.end());
  std::printf(
      "{\"what\":\"%s\",\"samples\":%zu,\"rate\":%.0f,\"p50_ms\":%.3f,\"p99_ms\":%.3f,"
      "\"p999_ms\":%.3f,\"max_ms\":%.3f,\"cpu_s\":%.3f,\"page_faults\":%lld,\"preempted\":%lld}\n",
      what, samples, rate, At(delays, 0.5), At(delays, 0.99), At(delays, 0.999), delays.back(),
      all.cpu, static_cast<long long>(all.faults), static_cast<long long>(all.waited));
  std::fflush(stdout);
  return all;
}

void Lookups(const Flags& flags) {
  LocalFileSystem files;
  const auto start = Clock::now();
  const auto state =
      serve::ServedState::Open(flags.folder, ReadHead(files, flags.folder).value(), nullptr, false)
          .value();
  std::printf("{\"what\":\"open_folder\",\"seconds\":%.4f}\n", Seconds(Clock::now() - start));
  const Requests requests(100, flags.rows, 3);
  std::vector<float> out(100 * kSlots * kDim);
  for (const bool warm : {false, true}) {
    uint64_t rows = 0, i = 0;
    const auto begun = Clock::now();
    while (Seconds(Clock::now() - begun) < flags.seconds / 5) {
      state->tables()[0]->Lookup(requests.At(i++).inputs[0].keys, out.data(), kDim);
      rows += 100 * kSlots;
    }
    std::printf("{\"what\":\"lookups\",\"warm\":%s,\"rows_per_s\":%.0f}\n", warm ? "true" : "false",
                static_cast<double>(rows) / Seconds(Clock::now() - begun));
  }
}

// Publishes commits that change one row in a hundred, while requests of 100 samples are due.
void ChangesUnderLoad(const Flags& flags, serve::Predictor& predictor, double rate) {
  LocalFileSystem files;
  const std::string text = ModelFile(flags.model);
  const model::ModelConfig config =
      model::ParseModelConfig(text, "bench.json", {}, model::LayerGrammars()).value();
  RandomModel model(config, flags.rows);
  std::atomic<bool> stop{false};
  std::vector<double> seconds, publish_seconds;
  std::set<std::string> bases;  // that versions name
  Work published;
  std::thread publisher([&] {
    flags.low ? LowerPriority() : RunWhenIdle();  // as cistern publish, or publish --idle, does
    const Work before = Work::Of(RUSAGE_THREAD);
    VersionSeries series(&files, flags.folder);
    while (!stop) {
      const ServingHead head = ReadHead(files, flags.folder).value();
      const ServingChanges changes = {
          ReadVersion(files, flags.folder, head.folder, head.xxh3).value(), /*complete=*/false};
      while (model.version().commit <= changes.previous.commit) model.Commit();
      const auto start = Clock::now();
      const auto written =
          series.WriteChanges(config, {flags.model + ".json", text, {}}, model, changes,
                              {flags.folder, *PrecisionOf(flags.precision), 3});
      CISTERN_CHECK(written.ok());
      const double publish = Seconds(Clock::now() - start);
      while (predictor.version().commit != written->version.commit) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      seconds.push_back(Seconds(Clock::now() - start));
      publish_seconds.push_back(publish);
      bases.insert(written->version.tables[0].layers[0].path);
      std::this_thread::sleep_for(std::chrono::milliseconds(flags.pause_ms));
    }
    published = Work::Of(RUSAGE_THREAD) - before;
  });
  const Requests requests(100, flags.rows, 9);
  const Work before = Work::Of(RUSAGE_SELF);
  const Work served = Open(predictor, requests, 100, rate, flags, "changes_under_load");
  stop = true;
  publisher.join();
  const Work opened = Work::Of(RUSAGE_SELF) - before - served - published;
  std::sort(seconds.begin(), seconds.end());
  std::sort(publish_seconds.begin(), publish_seconds.end());
  std::printf(
      "{\"what\":\"commit_to_served\",\"rows\":%llu,\"commits\":%zu,\"bases\":%zu,"
      "\"p50_s\":%.3f,\"p99_s\":%.3f,\"max_s\":%.3f,\"publish_p50_s\":%.3f,"
      "\"publish_max_s\":%.3f,\"publish_cpu_s\":%.3f,\"publish_faults\":%lld,"
      "\"open_cpu_s\":%.3f,\"open_faults\":%lld}\n",
      static_cast<unsigned long long>(flags.rows / 100), seconds.size(), bases.size(),
      At(seconds, 0.5), At(seconds, 0.99), seconds.back(), At(publish_seconds, 0.5),
      publish_seconds.back(), published.cpu, static_cast<long long>(published.faults), opened.cpu,
      static_cast<long long>(opened.faults));
}

int Main(int argc, char** argv) {
  Flags flags;
  Options parser("The speed of predictions from a serving folder.");
  parser.Require("--folder", &flags.folder);
  parser.Add("--model", &flags.model);
  parser.Add("--rows", &flags.rows);
  parser.Add("--precision", &flags.precision);
  parser.Add("--threads", &flags.threads);
  parser.Add("--seconds", &flags.seconds);
  parser.Add("--onnx", &flags.onnx);
  parser.Add("--changes", &flags.changes);
  parser.Add("--pause-ms", &flags.pause_ms);
  parser.Add("--low", &flags.low);
  if (const std::optional<int> code = parser.Parse(argc, argv)) return *code;
  WriteOnnx(flags);
  MakeFolder(flags);
  Lookups(flags);
  serve::PredictorOptions options;
  options.threads = flags.threads;
  const auto predictor = serve::OpenPredictor(flags.folder, options).value();
  double hundred = 0;  // requests of 100 samples that one core answers per second
  for (const size_t samples : {1, 100, 256, 1024}) {
    if (flags.changes && samples != 100) continue;
    const Requests requests(samples, flags.rows, samples);
    const double rate = Closed(*predictor, requests, samples, flags.seconds / 2);
    for (const double share : {0.3, 0.6, 0.9, 1.2, 1.5}) {
      if (flags.changes && share != 0.6) continue;
      Open(*predictor, requests, samples, std::floor(rate * share), flags);
    }
    if (samples == 1) Open(*predictor, requests, samples, 1000, flags);
    if (samples == 100) hundred = rate;
  }
  Flags longer = flags;
  longer.seconds = std::max(flags.seconds, 20.0);
  ChangesUnderLoad(longer, *predictor, std::floor(hundred * 0.6));
  return 0;
}

}  // namespace
}  // namespace cistern

int main(int argc, char** argv) {
  return cistern::Main(argc, argv);
}
