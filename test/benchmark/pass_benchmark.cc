// The test of HugeCTR's Embedding Training Cache (spec: "Parameter Server Performance"), scaled to
// a machine: ten passes, twice, over a table of 128 floats a row. The rows of pass i are loaded,
// then those of pass i - 1 are dumped. Prints one JSON object.
//
//   pass_benchmark                                     a server in this process
//   pass_benchmark --servers 127.0.0.1:7700,...        servers over gRPC
//   pass_benchmark --folder DIR [--memory-limit-mb N]  durable commits in DIR, rows beyond N MB in
//   files pass_benchmark --folder DIR --rocksdb              RocksDB with a cache of N MB
//   (rocks_store.h)
//
// The passes have the published sizes, times --rows / 113 million. Of each, 62 % of the keys are in
// all passes: ten passes of 26 million keys, of which 113 million are distinct. Rows that pass i -
// 1 also holds are carried over as in a training, and not loaded. Each row that is loaded is
// compared with what was last dumped.
#include <malloc.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/rpc/fleet.h"
#include "server/service/server_node.h"
#include "test/benchmark/bench_run.h"
#include "test/benchmark/options.h"
#include "test/benchmark/rocks_store.h"
#include "test/benchmark/roofs.h"
#include "worker/client/parameter_client.h"
#include "worker/data/source/pass_keys.h"

namespace cistern {
namespace {

constexpr size_t kDim = 128;
constexpr double kDistinct = 112.9e6, kInAllPasses = 16.1e6;
constexpr double kPassKeys[] = {24199179, 26015075, 27387817, 23672542, 26053910,
                                27697628, 24727672, 25643779, 26374086, 26580983};
constexpr size_t kPasses = std::size(kPassKeys);

v1::Schema BenchSchema() {
  v1::Schema schema;
  v1::TableSpec* table = schema.add_tables();
  table->set_name("bench");
  table->set_accessor(v1::TableSpec::EMBEDDING);
  table->set_dim(kDim);
  table->mutable_rule()->set_kind(v1::UpdateRule::SGD);
  return schema;
}

// The keys of pass `pass`: those of all passes first, from another one on in each pass.
data::PassKeys KeysOf(size_t pass, double scale) {
  const auto hot = static_cast<uint64_t>(kInAllPasses * scale);
  const auto all = static_cast<uint64_t>(kPassKeys[pass] * scale);
  data::KeyIndex keys;
  for (uint64_t i = 0; i < hot; ++i) keys.Add(KeyAt((i + pass * 7919) % hot));
  for (uint64_t i = hot; i < all; ++i) keys.Add(KeyAt((uint64_t{pass} + 1) << 40 | i));
  return data::PassKeys(std::move(keys));
}

// What the row of `key` holds after the pass that is number `turn`: in its first and last column.
float FirstOf(Key key, size_t turn) {
  return static_cast<float>(key % 65521) + static_cast<float>(turn) / 64;
}

// The rows of a pass: [rows, kDim].
struct Rows {
  data::PassKeys keys;
  std::vector<float> values;
};

struct Transfer {
  uint64_t rows = 0, carried = 0;
  double seconds = 0;
  double rate(uint64_t row_bytes) const {  // GB/s
    return seconds == 0 ? 0 : static_cast<double>(rows * row_bytes) / seconds / 1e9;
  }
};

// Where the rows are.
struct Store {
  // values: [keys, kDim]; an absent row is zero.
  std::function<void(absl::Span<const Key> keys, float* values)> pull;
  std::function<void(absl::Span<const Key> keys, const float* values)> commit;
};

Store StoreOf(ParameterClient& client) {
  return {[&client](absl::Span<const Key> keys, float* values) {
            std::vector<uint8_t> has_embedx(keys.size());
            Must(client.Pull(0, keys, /*absent_is_zero=*/true, values, has_embedx.data()));
          },
          [&client](absl::Span<const Key> keys, const float* values) {
            const std::vector<uint8_t> has_embedx(keys.size(), 1);
            Must(client.BeginPass());
            Must(client.Push(0, keys, values, has_embedx.data()));
            Must(client.CommitPass());
          }};
}

Store StoreOf(RocksStore& rocks) {
  return {[&rocks](absl::Span<const Key> keys, float* values) { rocks.Pull(keys, values); },
          [&rocks](absl::Span<const Key> keys, const float* values) {
            rocks.Push(keys, values);
            rocks.Commit();
          }};
}

class Bench {
 public:
  Bench(Store store, double scale) : store_(std::move(store)), scale_(scale) {}

  // Loads the rows of pass `turn` % kPasses that the pass before does not hold.
  Transfer Load(size_t turn) {
    auto now = std::make_unique<Rows>(Rows{KeysOf(turn % kPasses, scale_), {}});
    const size_t n = now->keys.size();
    now->values.resize(n * kDim);
    std::vector<Row> missing(n);
    for (size_t i = 0; i < n; ++i) missing[i] = static_cast<Row>(i);
    if (rows_ != nullptr) {
      data::SharedRows shared = data::FindShared(now->keys, rows_->keys);
      missing = std::move(shared.missing);
      for (size_t i = 0; i < shared.here.size(); ++i) {
        std::memcpy(&now->values[shared.here[i] * kDim], &rows_->values[shared.there[i] * kDim],
                    kDim * sizeof(float));
      }
    }
    std::vector<Key> keys;
    for (const Row row : missing) keys.push_back(now->keys.keys()[row]);
    loaded_.resize(keys.size() * kDim);
    const Clock::time_point start = Clock::now();
    store_.pull(keys, loaded_.data());
    const Transfer load = {keys.size(), n - keys.size(), SecondsSince(start)};
    for (size_t i = 0; i < keys.size(); ++i) {
      const float* value = &loaded_[i * kDim];
      const bool fresh = turn < kPasses;  // the second time round, pass `turn` - 10 has dumped it
      const float expected = fresh ? 0 : FirstOf(keys[i], turn - kPasses);
      CISTERN_CHECK(value[0] == expected && value[kDim - 1] == expected);
      std::memcpy(&now->values[missing[i] * kDim], value, kDim * sizeof(float));
    }
    next_ = std::move(now);
    return load;
  }

  // Dumps and commits the pass before the loaded one, as trained at `turn`; the loaded one follows.
  Transfer Dump(size_t turn) {
    Transfer dump;
    if (rows_ != nullptr) {
      const absl::Span<const Key> keys = rows_->keys.keys();
      const Clock::time_point start = Clock::now();
      store_.commit(keys, rows_->values.data());
      dump = {keys.size(), 0, SecondsSince(start)};
    }
    rows_ = std::move(next_);
    const absl::Span<const Key> keys = rows_->keys.keys();
    for (size_t i = 0; i < keys.size(); ++i) {
      float* value = &rows_->values[i * kDim];
      value[0] = value[kDim - 1] = FirstOf(keys[i], turn);
    }
    return dump;
  }

 private:
  const Store store_;
  const double scale_;
  std::unique_ptr<Rows> rows_, next_;
  std::vector<float> loaded_;
};

int Main(int argc, char** argv) {
  Options options("Ten passes, twice, over rows of 128 floats");
  std::string servers, folder;
  uint64_t rows = 6'500'000, limit_mb = 0;
  bool rocksdb = false, cold = false;
  options.Add("--servers", &servers, "host:port,...; without it a server in this process");
  options.Add("--rows", &rows, "distinct rows of all passes; 6500000 are 3.3 GB");
  options.Add("--folder", &folder, "is emptied, and gets each pass as a durable commit");
  options.Add("--memory-limit-mb", &limit_mb,
              "rows beyond it are read from the folder; 0: none are");
  options.Add("--cold", &cold, "drops the page cache before each load");
  options.Add("--rocksdb", &rocksdb, "RocksDB in the folder instead, whose cache has the limit");
  if (const std::optional<int> code = options.Parse(argc, argv)) return *code;
  if (!folder.empty()) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
  }
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);

  constexpr size_t kRowBytes = kDim * sizeof(float);
  const double copy = CopyRate(1ull << 30, kRowBytes), stream = LoopbackStream();
  std::unique_ptr<Fleet> fleet;
  std::unique_ptr<server::ServerNode> node;
  std::vector<ServerLink> links;
  std::unique_ptr<RocksStore> rocks;
  std::unique_ptr<ParameterClient> client;
  if (rocksdb) {
    constexpr int kThreads = 16;
    rocks = RocksStore::Open(folder, kDim, limit_mb << 20, kThreads);
    if (rocks == nullptr) {
      std::fprintf(stderr, "benchmark: built without RocksDB (Debian: librocksdb-dev)\n");
      return 2;
    }
  } else if (servers.empty()) {
    server::ServerOptions server;
    server.data_dir = folder;
    server.durable = !folder.empty();
    server.memory_limit_bytes = limit_mb << 20;
    server.staged_limit_bytes = uint64_t{64} << 30;
    absl::StatusOr<std::unique_ptr<server::ServerNode>> made = server::ServerNode::Create(server);
    Must(made.status());
    node = *std::move(made);
    links = {node->link("embedded")};
  } else {
    absl::StatusOr<std::unique_ptr<Fleet>> connected = ConnectFleet(servers);
    Must(connected.status());
    fleet = *std::move(connected);
    links = fleet->links();
  }
  if (rocks == nullptr) {
    absl::StatusOr<std::unique_ptr<ParameterClient>> connected =
        ParameterClient::Connect(links, ClientOptions());
    Must(connected.status());
    client = *std::move(connected);
    Must(client->CreateTables(BenchSchema()));
    Must(client->ClaimTerm());
  }

  Bench bench(rocks != nullptr ? StoreOf(*rocks) : StoreOf(*client),
              static_cast<double>(rows) / kDistinct);
  nlohmann::ordered_json out;
  std::vector<double> loads, again, dumps;
  uint64_t loaded = 0, carried = 0;
  for (size_t turn = 0; turn < 2 * kPasses; ++turn) {
    if (cold) DropCaches();
    const Transfer load = bench.Load(turn), dump = bench.Dump(turn);
    out["passes"].push_back({{"pass", turn},
                             {"loaded_rows", load.rows},
                             {"carried_rows", load.carried},
                             {"load_gb_per_s", load.rate(kRowBytes)},
                             {"dump_gb_per_s", dump.rate(kRowBytes)}});
    loads.push_back(load.rate(kRowBytes));
    if (turn >= kPasses) again.push_back(load.rate(kRowBytes));
    if (turn > 0) dumps.push_back(dump.rate(kRowBytes));
    loaded += load.rows;
    carried += load.carried;
  }
  out["rows_gb"] = static_cast<double>(rows * kRowBytes) / 1e9;
  out["loaded_rows"] = loaded;
  out["carried_rows"] = carried;
  out["load_gb_per_s"] = Median(loads);
  out["load_again_gb_per_s"] = Median(again);  // the second time, when every row is there
  out["dump_gb_per_s"] = Median(dumps);
  out["roof_copy_gb_per_s"] = copy;
  out["roof_loopback_gb_per_s"] = stream;
  std::printf("%s\n", out.dump(2).c_str());
  return 0;
}

}  // namespace
}  // namespace cistern

int main(int argc, char** argv) {
  return cistern::Main(argc, argv);
}
