// Rows beyond memory: the rate of cold pulls compared with the disk's rate of random reads.
//
//   tier_benchmark FOLDER [ROWS] [KEYS] [DIM]   FOLDER: on the disk to measure, emptied; ROWS:
//                                               16000000; KEYS of a pull: 20000; DIM: 12 floats
//
// Prints one JSON object. One server in this process with a memory limit of a byte: every row is in
// a file. `random_4k`, `random_8k`: reads at random offsets of the base, as many in flight as a
// pull has. A row lies on one or two pages, so the rate of 8 KiB is the roof of sparse pulls.
// `sparse`: random keys, each in a block of its own; `dense`: neighbouring keys, as of a pass that
// has most rows; `absent`: keys that no file has. Disk bytes are the kernel's count of this
// process; `kernel_us_per_row` is the part of the processor time in system calls.
//
// `pulls_alone`, `pulls_beside_a_merge`: times of pulls of 1,000 random keys. `with_limit`,
// `in_memory`: a server with and without the limit starts on these files; seconds until it is
// ready, and until the end of its first pull of 1,000 random keys.
//
// `rocksdb`: the same rows and pulls with RocksDB, if this was built with it (rocks_store.h), which
// reads with 16 threads; its rows were compacted into one level. `bytes_written` of both is all
// that the process wrote to disk until the rows were in place, for each byte of the rows.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "common/base/aligned_buffer.h"
#include "common/base/check.h"
#include "common/io/file_system.h"
#include "server/service/server_node.h"
#include "test/benchmark/bench_run.h"
#include "test/benchmark/rocks_store.h"
#include "test/benchmark/work_used.h"
#include "worker/client/parameter_client.h"

namespace cistern {
namespace {

constexpr uint64_t kPasses = 4;
constexpr uint64_t kCallKeys = 1000;  // of a call, as workers make them

// A count of /proc/self/io: "read_bytes" and "write_bytes" are those of disks.
double DiskBytes(const std::string& name) {
  std::FILE* file = std::fopen("/proc/self/io", "r");
  CISTERN_CHECK(file != nullptr);
  char line[100];
  unsigned long long bytes = 0;
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    if (std::sscanf(line, (name + ": %llu").c_str(), &bytes) == 1) break;
  }
  std::fclose(file);
  return static_cast<double>(bytes);
}

class TierBench {
 public:
  TierBench(std::string folder, uint64_t rows, uint64_t keys, uint32_t dim)
      : folder_(std::move(folder)), rows_(rows), keys_(keys), dim_(dim) {
    v1::TableSpec* table = schema_.add_tables();
    table->set_name("deep");
    table->set_dim(dim_);
    table->mutable_rule()->set_kind(v1::UpdateRule::SGD);
  }

  void Run() {
    const double begun = DiskBytes("write_bytes");
    Start(/*memory_limit_bytes=*/1);
    Must(client_->CreateTables(schema_));
    Must(client_->ClaimTerm());
    for (uint64_t pass = 0; pass < kPasses; ++pass) Commit(pass);
    node_->AwaitCompaction();
    Commit(kPasses);  // adopts the merged base
    const double written = DiskBytes("write_bytes") - begun;
    v1::StatsRequest request;
    *request.mutable_identity() = client_->identity();
    v1::StatsReply stats;
    Must(node_->control().Stats(request, &stats));
    std::printf("{\"rows\": %llu, \"floats_of_a_row\": %u, \"keys_of_a_pull\": %llu,\n",
                static_cast<unsigned long long>(rows_), dim_,
                static_cast<unsigned long long>(keys_));
    PrintIndex(static_cast<double>(stats.tables(0).cold_index_bytes()), written);
    DropCaches();
    RandomReads("random_4k", 4096);
    const double eight = RandomReads("random_8k", 8192);
    PullAll(eight, [&](const std::vector<Key>& keys, std::vector<float>& values) {
      Must(client_->Pull(0, keys, /*absent_is_zero=*/true, values.data(), has_embedx_.data()));
    });
    PullBesideMerge();
    Stop();
    Recover("with_limit", /*memory_limit_bytes=*/1);
    Recover("in_memory", /*memory_limit_bytes=*/0);
    RunRocks(eight);
    std::printf(" \"done\": true}\n");
  }

 private:
  static Key KeyOf(uint64_t row) { return row * 7 + 1; }

  // A limit of 0 bytes is none.
  void Start(uint64_t memory_limit_bytes) {
    server::ServerOptions options;
    options.data_dir = folder_ + "/cistern";
    options.durable = true;
    options.threads = 2;
    options.keep_commits = 1;
    options.memory_limit_bytes = memory_limit_bytes;
    auto node = server::ServerNode::Create(options);
    Must(node.status());
    node_ = *std::move(node);
    auto client = ParameterClient::Connect({node_->link("embedded")}, {});
    Must(client.status());
    client_ = *std::move(client);
  }

  void Stop() {
    client_.reset();
    node_.reset();
  }

  // Starts a server on the files, and pulls random rows.
  void Recover(const char* name, uint64_t memory_limit_bytes) {
    DropCaches();
    const std::vector<Key> keys = RandomKeys(kCallKeys);
    std::vector<float> values(kCallKeys * dim_);
    const auto start = Clock::now();
    Start(memory_limit_bytes);
    Must(client_->CreateTables(schema_));
    const double ready = SecondsSince(start);
    Must(client_->Pull(0, keys, /*absent_is_zero=*/true, values.data(), has_embedx_.data()));
    std::printf(" \"%s\": {\"ready_s\": %.3f, \"first_pull_s\": %.3f},\n", name, ready,
                SecondsSince(start));
    CISTERN_CHECK(values.front() == 0.5f && values.back() == 0.5f);
    Stop();
  }

  std::vector<Key> RandomKeys(uint64_t count) {
    std::vector<Key> keys(count);
    for (Key& key : keys) key = KeyOf(random_() % rows_);
    return keys;
  }

  // Pulls until `done`, with a client of its own.
  void PrintPulls(const char* name, const std::function<bool(size_t pulls)>& done) {
    auto client = ParameterClient::Connect({node_->link("embedded")}, {});
    Must(client.status());
    std::vector<float> values(kCallKeys * dim_);
    std::vector<double> milliseconds;
    while (!done(milliseconds.size())) {
      const std::vector<Key> keys = RandomKeys(kCallKeys);
      const auto start = Clock::now();
      Must((*client)->Pull(0, keys, /*absent_is_zero=*/true, values.data(), has_embedx_.data()));
      milliseconds.push_back(SecondsSince(start) * 1e3);
    }
    std::sort(milliseconds.begin(), milliseconds.end());
    const size_t pulls = milliseconds.size();
    CISTERN_CHECK(pulls > 0);
    std::printf(" \"%s\": {\"pulls\": %zu, \"p50_ms\": %.2f, \"p99_ms\": %.2f},\n", name, pulls,
                milliseconds[pulls / 2], milliseconds[pulls * 99 / 100]);
  }

  // All rows are pushed once more, so that the files are to be merged.
  void PullBesideMerge() {
    PrintPulls("pulls_alone", [](size_t pulls) { return pulls == 500; });
    for (uint64_t pass = 0; pass < kPasses; ++pass) Commit(pass);
    std::atomic<bool> merged = false;
    std::thread merge([&] {
      node_->AwaitCompaction();
      merged = true;
    });
    PrintPulls("pulls_beside_a_merge", [&](size_t) { return merged.load(); });
    merge.join();
  }

  // Calls `push` with the rows of each part of the table; the last pass has one of them again.
  template <typename Push>
  void PushOf(uint64_t pass, const Push& push) const {
    constexpr uint64_t kPush = 1 << 17;
    const uint64_t part = rows_ / kPasses;
    const uint64_t begin = pass < kPasses ? pass * part : 0;
    const uint64_t end = pass < kPasses ? begin + part : 1;
    const std::vector<float> values(kPush * dim_, 0.5f);
    for (uint64_t row = begin; row < end; row += kPush) {
      std::vector<Key> keys;
      for (uint64_t i = row; i < std::min(end, row + kPush); ++i) keys.push_back(KeyOf(i));
      push(keys, values.data());
    }
  }

  void Commit(uint64_t pass) {
    Must(client_->BeginPass());
    PushOf(pass, [&](const std::vector<Key>& keys, const float* values) {
      const std::vector<uint8_t> has_embedx(keys.size(), 1);
      Must(client_->Push(0, keys, values, has_embedx.data()));
    });
    Must(client_->CommitPass());
  }

  // Reads a second.
  double RandomReads(const char* name, size_t bytes) {
    std::string largest;
    uint64_t size = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
      if (entry.is_regular_file() && entry.file_size() > size) {
        size = entry.file_size();
        largest = entry.path();
      }
    }
    LocalFileSystem files;
    auto file = files.Open(largest);
    Must(file.status());
    constexpr size_t kRequests = 40000;
    AlignedBuffer buffer(kRequests * 8192);
    std::vector<ReadRequest> requests;
    for (size_t i = 0; i < kRequests; ++i) {
      requests.push_back({random_() % (size / 8192) * 8192, bytes, buffer.data() + i * 8192});
    }
    const Work before = Work::Of(RUSAGE_SELF);
    const auto start = Clock::now();
    Must((*file)->ReadMany(requests));
    const double rate = kRequests / SecondsSince(start);
    std::printf(" \"%s\": {\"reads_s\": %.0f, \"cpu_us_per_read\": %.2f},\n", name, rate,
                (Work::Of(RUSAGE_SELF) - before).cpu / kRequests * 1e6);
    return rate;
  }

  void RunRocks(double roof) {
    constexpr uint64_t kCache = 32 << 20;
    constexpr int kThreads = 16;
    const double begun = DiskBytes("write_bytes");
    const auto rocks = RocksStore::Open(folder_ + "/rocksdb", dim_, kCache, kThreads);
    if (rocks == nullptr) return;
    for (uint64_t pass = 0; pass <= kPasses; ++pass) {
      PushOf(pass,
             [&](absl::Span<const Key> keys, const float* values) { rocks->Push(keys, values); });
      rocks->Commit();
    }
    rocks->Compact();
    const double written = DiskBytes("write_bytes") - begun;
    std::printf(" \"rocksdb\": {\n");
    PrintIndex(static_cast<double>(rocks->index_bytes()), written);
    DropCaches();
    PullAll(roof, [&](const std::vector<Key>& keys, std::vector<float>& values) {
      rocks->Pull(keys, values.data());
    });
    std::printf(" \"threads\": %d},\n", kThreads);
  }

  void PrintIndex(double index_bytes, double written) const {
    const auto rows = static_cast<double>(rows_);
    std::printf(" \"index_bytes_per_row\": %.2f, \"bytes_written\": %.2f,\n", index_bytes / rows,
                written / (rows * (sizeof(Key) + dim_ * sizeof(float))));
  }

  template <typename PullRows>
  void PullAll(double roof, const PullRows& pull) {
    Pull(
        "sparse", [&](uint64_t) { return random_() % rows_; }, roof, pull);
    const uint64_t first = random_() % (rows_ - keys_);
    Pull(
        "dense", [&](uint64_t i) { return first + i; }, roof, pull);
    Pull(
        "absent", [&](uint64_t i) { return rows_ * 2 + i; }, roof, pull);
  }

  template <typename RowOf, typename PullRows>
  void Pull(const char* name, const RowOf& row_of, double roof, const PullRows& pull_rows) {
    constexpr int kPulls = 20;
    std::vector<Key> keys(keys_);
    std::vector<float> values(keys_ * dim_);
    double seconds = 0, bytes = 0;
    Work used;
    for (int pull = 0; pull < kPulls; ++pull) {
      for (uint64_t i = 0; i < keys_; ++i) keys[i] = KeyOf(row_of(i));
      const double bytes_before = DiskBytes("read_bytes");
      const Work before = Work::Of(RUSAGE_SELF);
      const auto start = Clock::now();
      pull_rows(keys, values);
      seconds += SecondsSince(start);
      used = used + (Work::Of(RUSAGE_SELF) - before);
      bytes += DiskBytes("read_bytes") - bytes_before;
    }
    const double n = static_cast<double>(kPulls * keys_);
    std::printf(
        " \"%s\": {\"rows_s\": %.0f, \"share_of_8k_reads\": %.2f, \"cpu_us_per_row\": %.2f, "
        "\"kernel_us_per_row\": %.2f, \"disk_bytes_per_row\": %.0f, \"disk_mb_s\": %.0f},\n",
        name, n / seconds, n / seconds / roof, used.cpu / n * 1e6, used.kernel / n * 1e6, bytes / n,
        bytes / seconds / 1e6);
  }

  const std::string folder_;
  const uint64_t rows_, keys_;
  const uint32_t dim_;
  std::vector<uint8_t> has_embedx_ = std::vector<uint8_t>(std::max(keys_, kCallKeys));
  std::mt19937_64 random_{11};
  v1::Schema schema_;
  std::unique_ptr<server::ServerNode> node_;
  std::unique_ptr<ParameterClient> client_;
};

}  // namespace
}  // namespace cistern

int main(int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') {
    std::fprintf(stderr, "usage: tier_benchmark FOLDER [ROWS] [KEYS] [DIM]\n");
    return 2;
  }
  std::filesystem::remove_all(argv[1]);
  std::filesystem::create_directories(argv[1]);
  const auto number = [&](int i, uint64_t otherwise) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  };
  cistern::TierBench(argv[1], number(2, 16000000), number(3, 20000),
                     static_cast<uint32_t>(number(4, 12)))
      .Run();
  return 0;
}
