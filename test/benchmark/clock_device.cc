// The passes of a training around a device that only waits: what the host can feed to a device, and
// what such a device would wait for. Everything but the device is the code of a training on a GPU:
// samples are read and decoded, batches packed, rows pulled, pushed and committed on a server in
// this process. Prints one JSON object per dimension.
//
//   clock_device [--dims 16,64,128] [--slow 8] ...
//
// The device computes a step in --step-ms for 65,536 samples, collects keys in --key-ms, reads and
// writes --device-gb-s in its memory and --pcie-gb-s over the bus, all --slow times as slowly: 8
// puts 2 cores in the place of 16, as far as the host's work divides among cores. It computes
// nothing: the rows that are pushed are not trained, and rows of two passes are not copied.
//
// What differs from a GPU: rows are pulled into and pushed from ordinary memory, not pinned chunks,
// and the distinct keys of a pass, which a GPU sorts, come from the first epoch, which is not
// measured.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/base/pages.h"
#include "common/base/thread_limit.h"
#include "common/io/file_system.h"
#include "server/service/server_node.h"
#include "test/benchmark/bench_run.h"
#include "test/benchmark/options.h"
#include "worker/data/format/data_set.h"
#include "worker/data/format/sample_set_writer.h"
#include "worker/data/source/batch_builder.h"
#include "worker/data/source/key_collector.h"
#include "worker/model/layer/layer_list.h"
#include "worker/pass/pass_pipeline.h"
#include "worker/train/pass_committer.h"

namespace cistern {
namespace {

constexpr size_t kDense = 13;
constexpr double kFullBatch = 65536;
// The share of keys in each slot of the Criteo data, as in model_benchmark.
constexpr double kShares[] = {213000, 208,    92,     40,     108,  1,  38, 8, 1,
                              205800, 15800,  2150,   1,      12,   64, 1,  1, 5,
                              1,      213500, 137000, 211900, 3130, 69, 1,  1};
constexpr size_t kSlots = std::size(kShares);

struct Flags {
  std::string dims = "16,64,128";
  uint64_t batch = 8192, batches = 28, passes = 8, keys = 26'000'000 / 8, commit_every = 1;
  double step_ms = 4.2, key_ms = 0.5, device_gb_s = 3000, pcie_gb_s = 50, slow = 8;
};

using Seconds = std::chrono::duration<double>;

Clock::duration Ticks(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(Seconds(seconds));
}

void Sleep(double seconds) {
  std::this_thread::sleep_for(Seconds(seconds));
}

// A device that computes nothing, in the time that a GPU would need.
//
// Threads: one at a time.
class ClockDevice {
 public:
  explicit ClockDevice(const Flags& flags)
      : step_s_(flags.slow * flags.step_ms / 1e3 * static_cast<double>(flags.batch) / kFullBatch),
        bus_(flags.pcie_gb_s * 1e9 / flags.slow),
        memory_(flags.device_gb_s * 1e9 / flags.slow) {}

  // Enqueues a step whose batch arrives at `copied`.
  void Launch(Clock::time_point copied) {
    const Clock::time_point begin = std::max({Clock::now(), end_, copied});
    end_ = begin + Ticks(step_s_);
    ends_.push_back(end_);
    busy_s_ += step_s_;
  }
  // When a copy to the device that starts now has arrived, after those before it.
  Clock::time_point Copy(size_t bytes) {
    bus_free_ = std::max(Clock::now(), bus_free_) + Ticks(static_cast<double>(bytes) / bus_);
    return bus_free_;
  }
  // Waits until no more than `left` steps are running.
  void Wait(size_t left) {
    while (ends_.size() > left) {
      std::this_thread::sleep_until(ends_.front());
      ends_.erase(ends_.begin());
    }
  }
  // Reads and writes `bytes` of its memory, and waits for that.
  void CopyInside(size_t bytes) { Sleep(2 * static_cast<double>(bytes) / memory_); }
  double busy_s() const { return busy_s_; }

 private:
  const double step_s_, bus_, memory_;
  Clock::time_point end_ = Clock::now(), bus_free_ = end_;
  std::vector<Clock::time_point> ends_;  // of the running steps
  double busy_s_ = 0;
};

// What GpuKeys does on the host, and the time of what it does on the device. The distinct keys of a
// pass are sorted in the first epoch and known in the others, which must cut the same passes.
class ClockKeys : public data::KeyCollector {
 public:
  explicit ClockKeys(const Flags& flags)
      : key_s_(flags.slow * flags.key_ms / 1e3 * static_cast<double>(flags.batch) / kFullBatch),
        bus_(flags.pcie_gb_s * 1e9 / flags.slow) {}

  absl::Status Add(const data::SampleBlock& samples) override {
    const std::vector<Key>& keys = samples.sparse[0].keys;
    pinned_.resize(std::max(pinned_.size(), keys.size()));
    std::copy(keys.begin(), keys.end(), pinned_.begin());
    Sleep(key_s_ + static_cast<double>(keys.size() * sizeof(Key)) / bus_);
    return absl::OkStatus();
  }
  size_t size(size_t) const override { return 0; }  // the batches alone end a pass
  absl::Span<const Key> added(size_t) const override { return {}; }
  void Drop() override {}
  data::HostBatch Take(data::SampleBlock&& samples) override {
    std::vector<Key> keys = std::move(samples.sparse[0].keys);
    data::HostBatch batch = data::MakeHostBatch(std::move(samples));
    batch.sparse[0].keys = std::move(keys);
    data::ReturnSlack(&batch.sparse[0].keys);
    return batch;
  }
  absl::Status Finish(data::Pass* pass) override {
    if (place_ == known_.size()) known_.push_back(Distinct(*pass));
    const std::vector<uint64_t>& mixed = known_[place_];
    place_ = pass->ends_epoch ? 0 : place_ + 1;
    Sleep(static_cast<double>(mixed.size() * sizeof(Key)) / bus_);
    std::vector<Key> keys(mixed.size());
#pragma omp parallel for num_threads(LoopThreads())
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = UnmixKey(mixed[i]);
    pass->keys.push_back(data::PassKeys::Ordered(std::move(keys)));
    return absl::OkStatus();
  }
  bool wants_segments() const override {
    return false;
  }

 private:
  static std::vector<uint64_t> Distinct(const data::Pass& pass) {
    std::vector<uint64_t> mixed;
    for (const data::HostBatch& batch : pass.batches) {
      for (const Key key : batch.sparse[0].keys) mixed.push_back(MixKey(key));
    }
    std::sort(mixed.begin(), mixed.end());
    mixed.erase(std::unique(mixed.begin(), mixed.end()), mixed.end());
    return mixed;
  }

  const double key_s_, bus_;
  std::vector<Key> pinned_;
  std::vector<std::vector<uint64_t>> known_;  // mixed keys, by pass of an epoch
  size_t place_ = 0;
};

std::vector<uint64_t> SlotSizes(uint64_t keys) {
  double sum = 0;
  for (const double share : kShares) sum += share;
  std::vector<uint64_t> sizes;
  for (const double share : kShares) {
    sizes.push_back(
        std::max<uint64_t>(1, static_cast<uint64_t>(static_cast<double>(keys) * share / sum)));
  }
  return sizes;
}

// A model whose only purpose is its data and its table.
model::ModelConfig ConfigOf(const Flags& flags, uint64_t dim, const std::string& source) {
  const std::string text = absl::StrCat(
      R"({"solver": {"num_epochs": 1000, "seed": 1, "batchsize": )", flags.batch,
      R"(, "input_key_type": "I32"},
          "optimizer": {"type": "AdaGrad", "update_type": "Local", "adagrad_hparam":
            {"learning_rate": 0.01, "initial_accu_value": 0.1, "epsilon": 1e-7}},
          "layers": [
            {"name": "data", "type": "Data", "format": "Raw", "check": "None", "source": ")",
      source, R"(", "num_samples": )", flags.batch * flags.batches * flags.passes,
      R"(, "float_label_dense": false, "slot_size_array": [)",
      absl::StrJoin(SlotSizes(flags.keys), ", "), R"(],
             "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": )",
      kDense, R"(}, "sparse": [{"top": "data1", "type": "DistributedSlot", "slot_num": )", kSlots,
      R"(, "max_feature_num_per_sample": )", kSlots, R"(}]},
            {"name": "emb", "type": "DistributedSlotSparseEmbeddingHash", "bottom": "data1",
             "top": "emb", "sparse_embedding_hparam": {"embedding_vec_size": )",
      dim, R"(, "combiner": "sum"}},
            {"name": "flat", "type": "Reshape", "bottom": "emb", "top": "flat", "leading_dim": )",
      kSlots * dim, R"(},
            {"name": "logit", "type": "InnerProduct", "bottom": "flat", "top": "logit",
             "fc_param": {"num_output": 1}},
            {"name": "loss", "type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"],
             "top": "loss"}]})");
  absl::StatusOr<model::ModelConfig> config =
      model::ParseModelConfig(text, "clock_device", {}, model::LayerGrammars());
  Must(config.status());
  return *std::move(config);
}

// Writes one epoch: keys by a power law of exponent 1.05, as `cistern data generate` draws them.
std::string WriteData(const Flags& flags, const model::ModelConfig& config,
                      const std::string& folder) {
  LocalFileSystem files;
  auto writer = data::CreateSampleSetWriter(files, folder, model::DataSetOf(config, "x"), 0);
  Must(writer.status());
  std::mt19937_64 random(1);
  const std::vector<uint64_t> sizes = SlotSizes(flags.keys);
  const auto draw = [&random](uint64_t keys) {
    constexpr double kPower = 1 - 1.05;
    const double u = static_cast<double>(random() >> 11) * 0x1p-53;
    const double top = std::pow(static_cast<double>(keys) + 1, kPower);
    const double x = std::pow(1 + u * (top - 1), 1 / kPower);
    return std::min<uint64_t>(keys - 1, static_cast<uint64_t>(x) - 1);
  };
  data::SampleBlock block;
  for (uint64_t b = 0; b < flags.batches * flags.passes; ++b) {
    block.Reset(1);
    for (uint64_t i = 0; i < flags.batch; ++i) {
      block.label.push_back(static_cast<float>(random() % 2));
      for (size_t k = 0; k < kDense; ++k) block.dense.push_back(1);
      for (const uint64_t size : sizes) {
        block.sparse[0].keys.push_back(draw(size));
        block.sparse[0].offsets.push_back(static_cast<uint32_t>(block.sparse[0].keys.size()));
      }
      ++block.size;
    }
    Must((*writer)->Append(block));
  }
  Must((*writer)->Close());
  return folder + "/" + (*writer)->source();
}

std::unique_ptr<data::PassSource> OpenSource(const Flags& flags, const model::ModelConfig& config) {
  const data::DataSetOptions data = model::DataSetOf(config, config.data.source);
  data::PassOptions options;
  options.shape = data.shape;
  options.batchsize = flags.batch;
  options.num_epochs = 1000;
  options.threads = LoopThreads();
  options.read_ahead = true;
  options.byte_budget = uint64_t{1} << 40;
  options.value_bytes = {1};
  // As many batches as wanted: a batch takes the same in each pass.
  data::SampleBlock block;
  block.Reset(1);
  auto reader = data::OpenDataSet(data);
  Must(reader.status());
  Must((*reader)->Read(flags.batch, &block).status());
  options.batch_budget = data::BatchBytes(block, /*segments=*/true) * flags.batches + 1;
  return std::make_unique<data::PassSource>(
      options, data::PassSource::OpenReader([data](uint32_t) { return data::OpenDataSet(data); }),
      data::PassCursor(), std::make_unique<ClockKeys>(flags));
}

// The pinned places of BatchStage.
class Places {
 public:
  // Packs a batch; returns its bytes.
  size_t Pack(const data::HostBatch& batch) {
    std::vector<char>& place = places_[next_++ % places_.size()];
    size_t at = 0;
    const auto add = [&](const auto& values) {
      const size_t bytes = values.size() * sizeof(values[0]);
      if (place.size() < at + bytes) place.resize(at + bytes);
      const size_t part = (bytes + 15) / 16;
#pragma omp parallel for num_threads(LoopThreads())
      for (size_t i = 0; i < 16; ++i) {
        const size_t from = std::min(bytes, i * part), to = std::min(bytes, from + part);
        std::memcpy(place.data() + at + from, reinterpret_cast<const char*>(values.data()) + from,
                    to - from);
      }
      at += bytes;
    };
    add(batch.label);
    add(batch.dense);
    add(batch.sparse[0].offsets);
    add(batch.sparse[0].keys);
    return at;
  }

 private:
  std::vector<std::vector<char>> places_ = std::vector<std::vector<char>>(3);
  size_t next_ = 0;
};

class Run {
 public:
  Run(const Flags& flags, const model::ModelConfig& config, ParameterClient& client,
      DeviceContext& device)
      : flags_(flags),
        clock_(flags),
        row_bytes_(client.layout(0).full_floats() * sizeof(float) + 1),
        pipeline_(config, client, device, nullptr, OpenSource(flags, config), nullptr,
                  /*reads_ahead=*/true),
        committer_(client, device, nullptr) {}

  // The first epoch, and one that is measured.
  nlohmann::ordered_json Measure() {
    for (uint64_t pass = 0; pass < flags_.passes; ++pass) TrainPass();
    const Clock::time_point begin = Clock::now();
    idle_ = {};
    const double busy = clock_.busy_s();
    push_s_ = pull_s_ = 0;
    rows_ = pulled_ = pushed_ = 0;
    for (uint64_t pass = 0; pass < flags_.passes; ++pass) TrainPass();
    const double seconds = SecondsSince(begin);
    const IdleTimes idle = idle_.Over(seconds);
    const auto samples = static_cast<double>(flags_.batch * flags_.batches * flags_.passes);
    const auto passes = static_cast<double>(flags_.passes);
    const auto bytes = static_cast<double>(row_bytes_);
    nlohmann::ordered_json out;
    out["busy"] = (clock_.busy_s() - busy) / seconds;
    out["idle"] = {{"data", idle.data},
                   {"pull", idle.pull},
                   {"carry_over", idle.carry_over},
                   {"commit", idle.commit}};
    out["samples_per_s"] = flags_.slow * samples / seconds;
    out["pass_s"] = seconds / passes;
    out["pull_s"] = pull_s_ / passes;
    out["push_and_commit_s"] = push_s_ / passes;
    out["rows"] = rows_ / passes;
    out["pulled_rows"] = pulled_ / passes;
    out["pushed_rows"] = pushed_ / passes;
    out["pushed_bytes_per_sample"] = pushed_ * bytes / samples;
    out["pulled_bytes_per_sample"] = pulled_ * bytes / samples;
    return out;
  }

 private:
  void TrainPass() {
    IdleTimes idle;
    absl::StatusOr<std::shared_ptr<ReadyPass>> next = pipeline_.Next(&idle);
    Must(next.status());
    const std::shared_ptr<ReadyPass> ready = *next;
    const size_t carried = ready->carried[0].to.size(), rows = ready->tables[0]->rows();
    const Clock::time_point before = Clock::now();
    clock_.CopyInside(carried * row_bytes_);
    idle.carry_over += SecondsSince(before);
    idle_ += idle;
    pull_s_ += SecondsBetween(ready->times.commit_end, ready->times.pull_end);
    rows_ += static_cast<double>(rows);
    pulled_ += static_cast<double>(rows - carried);

    const std::vector<data::HostBatch>& batches = ready->pass->batches;
    std::vector<Clock::time_point> copied;
    const auto begin_until = [&](size_t end) {
      while (copied.size() < std::min(end, batches.size())) {
        copied.push_back(clock_.Copy(places_.Pack(batches[copied.size()])));
      }
    };
    for (size_t i = 0; i < batches.size(); ++i) {
      begin_until(i + 1);
      clock_.Launch(copied[i]);
      begin_until(i + 3);
      clock_.Wait(i + 1 < batches.size() ? 1 : 0);
      if (committer_.has_result()) FinishCommit();
    }
    FinishCommit();
    if (ready->pass->blocks != nullptr) {
      ready->pass->blocks->Release(std::exchange(ready->pass->batches, {}));
    }
    FrozenPass frozen;
    frozen.options.durable = false;
    frozen.rows = ready;
    pushed_ += static_cast<double>(rows);
    const auto shared = ++passes_ % flags_.commit_every == 0 ? nullptr : pipeline_.SharedWithNext();
    if (shared != nullptr) {
      frozen.staying.emplace_back(shared, &(*shared)[0].from);
      pushed_ -= static_cast<double>((*shared)[0].from.size());
    }
    commit_begin_ = Clock::now();
    committer_.Start(std::move(frozen), [this] {
      push_s_ += SecondsSince(commit_begin_);
      pipeline_.Committed();
    });
  }
  void FinishCommit() {
    const Clock::time_point begin = Clock::now();
    Must(committer_.Wait());
    idle_.commit += SecondsSince(begin);
  }

  const Flags flags_;
  ClockDevice clock_;
  const size_t row_bytes_;
  Places places_;
  IdleTimes idle_;
  Clock::time_point commit_begin_;
  double push_s_ = 0, pull_s_ = 0, rows_ = 0, pulled_ = 0, pushed_ = 0;
  uint64_t passes_ = 0;
  PassPipeline pipeline_;
  PassCommitter committer_;  // last: it calls pipeline_
};

nlohmann::ordered_json MeasureDim(const Flags& flags, uint64_t dim, const std::string& source) {
  const model::ModelConfig config = ConfigOf(flags, dim, source);
  server::ServerOptions server;
  server.staged_limit_bytes = uint64_t{64} << 30;
  absl::StatusOr<std::unique_ptr<server::ServerNode>> node = server::ServerNode::Create(server);
  Must(node.status());
  auto client = ParameterClient::Connect({(*node)->link("embedded")}, ClientOptions());
  Must(client.status());
  v1::Schema schema;
  *schema.add_tables() = config.embeddings[0].spec;
  Must((*client)->CreateTables(schema));
  Must((*client)->ClaimTerm());
  absl::StatusOr<std::unique_ptr<DeviceContext>> device = DeviceContext::Open(DeviceKind::kCpu);
  Must(device.status());
  Run run(flags, config, **client, **device);
  nlohmann::ordered_json out = {{"dim", dim}};
  out.update(run.Measure());
  return out;
}

int Main(int argc, char** argv) {
  Options options("The passes of a training around a device that only waits");
  Flags flags;
  options.Add("--dims", &flags.dims, "floats a row, separated by commas");
  options.Add("--batch", &flags.batch, "samples of a batch");
  options.Add("--batches", &flags.batches, "batches of a pass");
  options.Add("--passes", &flags.passes, "passes of an epoch; the second epoch is measured");
  options.Add("--keys", &flags.keys, "keys of all slots");
  options.Add("--commit-every", &flags.commit_every,
              "passes between commits that push all rows; others leave out rows that stay");
  options.Add("--step-ms", &flags.step_ms, "a step of 65,536 samples");
  options.Add("--key-ms", &flags.key_ms, "collecting the keys of 65,536 samples on the device");
  options.Add("--device-gb-s", &flags.device_gb_s, "the device's memory");
  options.Add("--pcie-gb-s", &flags.pcie_gb_s, "the bus");
  options.Add("--slow", &flags.slow, "how many times as slow the device is");
  if (const std::optional<int> code = options.Parse(argc, argv)) return *code;
  std::vector<uint64_t> dims;
  for (const absl::string_view word : absl::StrSplit(flags.dims, ',')) {
    if (!absl::SimpleAtoi(word, &dims.emplace_back()) || dims.back() == 0) {
      std::fprintf(stderr, "benchmark: --dims: '%s' is no list of numbers\n", flags.dims.c_str());
      return 2;
    }
  }
  KeepFreedMemory();  // as cistern train does

  std::string folder = std::filesystem::temp_directory_path() / "clock_device.XXXXXX";
  CISTERN_CHECK(mkdtemp(folder.data()) != nullptr);
  const std::string source = WriteData(flags, ConfigOf(flags, 1, "x"), folder);
  for (const uint64_t dim : dims) {
    std::printf("%s\n", MeasureDim(flags, dim, source).dump().c_str());
    std::fflush(stdout);
  }
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace cistern

int main(int argc, char** argv) {
  return cistern::Main(argc, argv);
}
