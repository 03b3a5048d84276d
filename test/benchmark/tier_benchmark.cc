// Rows beyond memory: the rate of cold pulls compared with the disk's rate of random reads.
//
//   tier_benchmark FOLDER [ROWS] [KEYS]   FOLDER: on the disk to measure, emptied; ROWS: 16000000
//   of
//                                         12 floats; KEYS of a pull: 20000
//
// Prints one JSON object. One server in this process with a memory limit of a byte: every row is in
// a file. `random_reads`: 4 and 8 KiB at random offsets of the base, as many in flight as a pull
// has. A row lies on one or two pages, so the rate of 8 KiB is the roof of sparse pulls. `sparse`:
// random keys, each in a block of its own; `dense`: neighbouring keys, as of a pass that has most
// rows; `absent`: keys that no file has. Reads are the kernel's count of this process.
#include <sys/resource.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "common/base/aligned_buffer.h"
#include "common/base/check.h"
#include "common/io/file_system.h"
#include "server/service/server_node.h"
#include "test/benchmark/bench_run.h"
#include "worker/client/parameter_client.h"

namespace cistern {
namespace {

constexpr uint64_t kPasses = 4;

double CpuSeconds() {
  rusage usage;
  CISTERN_CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Bytes that this process has read from disks.
double DiskBytes() {
  std::FILE* file = std::fopen("/proc/self/io", "r");
  CISTERN_CHECK(file != nullptr);
  char line[100];
  unsigned long long bytes = 0;
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    if (std::sscanf(line, "read_bytes: %llu", &bytes) == 1) break;
  }
  std::fclose(file);
  return static_cast<double>(bytes);
}

class TierBench {
 public:
  TierBench(std::string folder, uint64_t rows, uint64_t keys)
      : folder_(std::move(folder)), rows_(rows), keys_(keys) {
    v1::TableSpec* table = schema_.add_tables();
    table->set_name("deep");
    table->set_dim(12);
    table->mutable_rule()->set_kind(v1::UpdateRule::SGD);
  }

  void Run() {
    ServerOptions options;
    options.data_dir = folder_;
    options.durable = true;
    options.threads = 2;
    options.keep_commits = 1;
    options.memory_limit_bytes = 1;
    auto node = ServerNode::Create(options);
    Must(node.status());
    node_ = *std::move(node);
    auto client = ParameterClient::Connect({node_->link("embedded")}, {});
    Must(client.status());
    client_ = *std::move(client);
    Must(client_->CreateTables(schema_));
    Must(client_->ClaimTerm());
    for (uint64_t pass = 0; pass < kPasses; ++pass) Commit(pass);
    node_->AwaitCompaction();
    Commit(kPasses);  // adopts the merged base
    v1::StatsRequest request;
    *request.mutable_identity() = client_->identity();
    v1::StatsReply stats;
    Must(node_->control().Stats(request, &stats));
    std::printf("{\"rows\": %llu, \"keys_of_a_pull\": %llu, \"index_bytes_per_row\": %.2f,\n",
                static_cast<unsigned long long>(rows_), static_cast<unsigned long long>(keys_),
                static_cast<double>(stats.tables(0).cold_index_bytes()) /
                    static_cast<double>(stats.tables(0).rows()));
    DropCaches();
    const double four = RandomReads(4096), eight = RandomReads(8192);
    std::printf(" \"random_reads_s\": {\"4k\": %.0f, \"8k\": %.0f},\n", four, eight);
    Pull(
        "sparse", [&](uint64_t) { return random_() % rows_; }, eight);
    const uint64_t first = random_() % (rows_ - keys_);
    Pull(
        "dense", [&](uint64_t i) { return first + i; }, eight);
    Pull(
        "absent", [&](uint64_t i) { return rows_ * 2 + i; }, eight);
    std::printf(" \"done\": true}\n");
  }

 private:
  static Key KeyOf(uint64_t row) { return row * 7 + 1; }

  // Rows of each part of the table; the last pass has a few again.
  void Commit(uint64_t pass) {
    constexpr uint64_t kPush = 1 << 17;
    Must(client_->BeginPass());
    const uint64_t part = rows_ / kPasses;
    const uint64_t begin = pass < kPasses ? pass * part : 0;
    const uint64_t end = pass < kPasses ? begin + part : 1;
    std::vector<float> values(kPush * 12, 0.5f);
    const std::vector<uint8_t> has_embedx(kPush, 1);
    for (uint64_t row = begin; row < end; row += kPush) {
      std::vector<Key> keys;
      for (uint64_t i = row; i < std::min(end, row + kPush); ++i) keys.push_back(KeyOf(i));
      Must(client_->Push(0, keys, values.data(), has_embedx.data()));
    }
    Must(client_->CommitPass());
  }

  double RandomReads(size_t bytes) {
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
    const auto start = Clock::now();
    Must((*file)->ReadMany(requests));
    return kRequests / SecondsSince(start);
  }

  template <typename RowOf>
  void Pull(const char* name, RowOf row_of, double roof) {
    constexpr int kPulls = 20;
    std::vector<Key> keys(keys_);
    std::vector<float> values(keys_ * 12);
    std::vector<uint8_t> has_embedx(keys_);
    double seconds = 0, cpu = 0, bytes = 0;
    for (int pull = 0; pull < kPulls; ++pull) {
      for (uint64_t i = 0; i < keys_; ++i) keys[i] = KeyOf(row_of(i));
      const double cpu_before = CpuSeconds(), bytes_before = DiskBytes();
      const auto start = Clock::now();
      Must(client_->Pull(0, keys, /*absent_is_zero=*/true, values.data(), has_embedx.data()));
      seconds += SecondsSince(start);
      cpu += CpuSeconds() - cpu_before;
      bytes += DiskBytes() - bytes_before;
    }
    const double n = static_cast<double>(kPulls * keys_);
    std::printf(
        " \"%s\": {\"rows_s\": %.0f, \"share_of_8k_reads\": %.2f, \"cpu_us_per_row\": %.2f, "
        "\"disk_bytes_per_row\": %.0f, \"disk_mb_s\": %.0f},\n",
        name, n / seconds, n / seconds / roof, cpu / n * 1e6, bytes / n, bytes / seconds / 1e6);
  }

  const std::string folder_;
  const uint64_t rows_, keys_;
  std::mt19937_64 random_{11};
  v1::Schema schema_;
  std::unique_ptr<ServerNode> node_;
  std::unique_ptr<ParameterClient> client_;
};

}  // namespace
}  // namespace cistern

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: tier_benchmark FOLDER [ROWS] [KEYS]\n");
    return 2;
  }
  std::filesystem::remove_all(argv[1]);
  std::filesystem::create_directories(argv[1]);
  const auto number = [&](int i, uint64_t otherwise) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  };
  cistern::TierBench(argv[1], number(2, 16000000), number(3, 20000)).Run();
  return 0;
}
