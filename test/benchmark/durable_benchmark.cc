// The cost of durable commits: the rates of commit, save and recovery compared with the rates of
// the disk, and the latency of pulls with and without a concurrent merge of files.
//
//   durable_benchmark FOLDER [ROWS]      FOLDER: on the disk to measure, emptied; ROWS: 4000000
//
// Prints one JSON object. The reference rates are those of one thread that writes and syncs, or
// reads, a file sequentially: through the page cache (plain) and past it (direct). One server in
// this process, 2 threads. As root, the page cache is dropped before each read that must come from
// the disk. Processor seconds cover all threads, user and system; on a shared machine they are more
// reliable than rates.
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
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
#include "worker/client/parameter_client.h"

namespace cistern {
namespace {

uint64_t BytesIn(const std::string& folder) {
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

struct Disk {
  double write = 0, read = 0;  // bytes per second
};

void* NewMemory(uint64_t bytes) {
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CISTERN_CHECK(memory != MAP_FAILED);
  madvise(memory, bytes, MADV_HUGEPAGE);
  return memory;
}

// Touches `bytes` of new memory, frees them, and returns the rate. The host of a virtual machine
// may reclaim free pages and return them slowly, which a server cannot influence. After this call
// the system has that much memory available for a second or two.
double MemoryRate(uint64_t bytes) {
  const auto start = Clock::now();
  void* const memory = NewMemory(bytes);
  for (uint64_t at = 0; at < bytes; at += 4096) static_cast<volatile char*>(memory)[at] = 1;
  munmap(memory, bytes);
  return static_cast<double>(bytes) / SecondsSince(start);
}

// The cost of a step.
struct Cost {
  double seconds = 0;
  double user = 0, system = 0;  // processor seconds of the process
};

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

template <typename Step>
Cost Measure(Step step) {
  rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  const auto start = Clock::now();
  step();
  Cost cost;
  cost.seconds = SecondsSince(start);
  getrusage(RUSAGE_SELF, &after);
  cost.user = Seconds(after.ru_utime) - Seconds(before.ru_utime);
  cost.system = Seconds(after.ru_stime) - Seconds(before.ru_stime);
  return cost;
}

// The rate of one thread that writes blocks and syncs them, through the page cache or past it.
double WriteRate(FileSystem& files, const std::string& path, uint64_t bytes, bool cached) {
  std::vector<char> block(size_t{1} << 20);
  std::mt19937_64 random(1);
  for (char& c : block) c = static_cast<char>(random());
  std::filesystem::remove(path);
  const auto start = Clock::now();
  auto file = files.Create(path);
  Must(file.status());
  if (cached) (*file)->WillBeRead();
  for (uint64_t done = 0; done < bytes; done += block.size()) {
    Must((*file)->Append({block.data(), block.size()}));
  }
  Must((*file)->Sync());
  Must((*file)->Close());
  return static_cast<double>(bytes) / SecondsSince(start);
}

// The rate of one thread that reads blocks of an uncached file, through the page cache or past it.
double ReadRate(FileSystem& files, const std::string& path, bool cached) {
  DropCaches();
  const AlignedBuffer block((size_t{1} << 20) + AlignedBuffer::kAlignment);
  const size_t size = size_t{1} << 20;
  const auto start = Clock::now();
  const auto file = files.Open(path);
  Must(file.status());
  for (uint64_t done = 0; done < (*file)->bytes(); done += size) {
    Must((*file)->Read(done, size, block.data() + (cached ? 8 : 0)));
  }
  return static_cast<double>((*file)->bytes()) / SecondsSince(start);
}

// The faster rate of each direction.
Disk FasterOf(const Disk& a, const Disk& b) {
  return {std::max(a.write, b.write), std::max(a.read, b.read)};
}

// Measures sequential, synced writes, and reads from the disk.
Disk MeasureDisk(const std::string& folder, uint64_t bytes, bool cached) {
  LocalFileSystem files;
  const std::string path = folder + "/roof";
  Disk disk;
  disk.write = WriteRate(files, path, bytes, cached);
  disk.read = ReadRate(files, path, cached);
  std::filesystem::remove(path);
  return disk;
}

class Bench {
 public:
  Bench(std::string folder, uint64_t rows) : folder_(std::move(folder)), rows_(rows) {
    schema_.add_tables()->set_name("deep");
    schema_.mutable_tables(0)->set_dim(16);
    schema_.mutable_tables(0)->mutable_rule()->set_kind(v1::UpdateRule::SGD);
  }

  void Run() {
    const uint64_t disk_bytes = std::min<uint64_t>(uint64_t{1} << 30, rows_ * 256);
    const Disk plain = MeasureDisk(folder_, disk_bytes, /*cached=*/true);
    const Disk direct = MeasureDisk(folder_, disk_bytes, /*cached=*/false);
    const Disk fastest = FasterOf(plain, direct);
    Start();
    Must(client_->CreateTables(schema_));
    Must(client_->ClaimTerm());
    const Cost commit = Commit(rows_, 1);
    const double commit_bytes = static_cast<double>(BytesIn(folder_ + "/data/state"));
    const double quiet = PullP99(3.0);
    // Enough further rows to make a merge due; it starts with the commit.
    Commit(rows_ * 6 / 10, 2);
    const double busy = PullP99(0);
    const Cost text = Save("text", false), binary = Save("binary", true);
    const double text_bytes = Bytes("text"), binary_bytes = Bytes("binary");
    const Cost load_text = Load("text"), load = Load("binary");
    client_.reset();
    node_.reset();
    DropCaches();
    const double state_bytes = static_cast<double>(BytesIn(folder_ + "/data/state"));
    GetMemory();
    const Cost recover = Measure([&] { Start(); });
    using Seconds = std::function<double(const Disk&)>;
    const auto print = [&](const char* name, double bytes, const Cost& cost, const Seconds& roof) {
      std::printf(
          " \"%s\": {\"mb_s\": %.1f, \"share_of_plain\": %.3f, \"share_of_fastest\": %.3f, "
          "\"user_s\": %.3f, \"system_s\": %.3f},\n",
          name, bytes / cost.seconds / 1e6, roof(plain) / cost.seconds,
          roof(fastest) / cost.seconds, cost.user, cost.system);
    };
    const auto write = [](double bytes) -> Seconds {
      return [bytes](const Disk& disk) { return bytes / disk.write; };
    };
    // A load reads the files and ends with a commit of all of their rows.
    const auto read_and_commit = [&](double bytes) -> Seconds {
      return [&, bytes](const Disk& disk) { return bytes / disk.read + commit_bytes / disk.write; };
    };
    std::printf(
        "{\"rows\": %llu,\n \"disk_mb_s\": {\"plain\": {\"write\": %.1f, \"read\": %.1f}, "
        "\"direct\": {\"write\": %.1f, \"read\": %.1f}}, \"new_memory_mb_s\": %.1f,\n",
        static_cast<unsigned long long>(rows_), plain.write / 1e6, plain.read / 1e6,
        direct.write / 1e6, direct.read / 1e6, memory_rate_ / 1e6);
    print("commit", commit_bytes, commit, write(commit_bytes));
    print("save_text", text_bytes, text, write(text_bytes));
    print("save_binary", binary_bytes, binary, write(binary_bytes));
    print("load_text", text_bytes, load_text, read_and_commit(text_bytes));
    print("load_binary", binary_bytes, load, read_and_commit(binary_bytes));
    print("recover", state_bytes, recover,
          [&](const Disk& disk) { return state_bytes / disk.read; });
    std::printf(" \"pull_p99_ms\": {\"quiet\": %.3f, \"while_merging\": %.3f, \"ratio\": %.2f}}\n",
                quiet, busy, busy / quiet);
  }

 private:
  void Start() {
    server::ServerOptions options;
    options.data_dir = folder_ + "/data";
    options.durable = true;
    options.threads = 2;
    options.keep_commits = 1;
    auto node = server::ServerNode::Create(options);
    Must(node.status());
    node_ = *std::move(node);
    auto client = ParameterClient::Connect({node_->link("embedded")}, {});
    Must(client.status());
    client_ = *std::move(client);
  }
  // Measures from the end of the pushes to the end of the commit.
  Cost Commit(uint64_t rows, unsigned seed) {
    Must(client_->BeginPass());
    const uint32_t stride = client_->layout(0).full_floats();
    constexpr uint64_t kPush = 1 << 18;
    std::vector<Key> keys;
    // Like trained weights: 11 characters per number in text.
    std::vector<float> values(kPush * stride);
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal(0.0f, 0.05f);
    for (float& x : values) x = normal(random);
    const std::vector<uint8_t> has_embedx(kPush, 1);
    for (uint64_t begin = 0; begin < rows; begin += kPush) {
      keys.clear();
      for (uint64_t i = begin; i < std::min(rows, begin + kPush); ++i) keys.push_back(i * 7 + 1);
      Must(client_->Push(0, keys, values.data(), has_embedx.data()));
    }
    GetMemory();
    return Measure([&] { Must(client_->CommitPass()); });
  }
  // The p99 latency of pulls of 4096 keys, measured for `seconds` or as long as a merge runs.
  double PullP99(double seconds) {
    std::vector<Key> keys(4096);
    std::vector<float> values(keys.size() * client_->layout(0).full_floats());
    std::vector<uint8_t> has_embedx(keys.size());
    std::mt19937_64 random(3);
    std::vector<double> times;
    std::atomic<bool> merging{seconds == 0};
    std::thread waiter([&] {
      if (merging) node_->AwaitCompaction();
      merging = false;
    });
    const auto start = Clock::now();
    while (merging || SecondsSince(start) < seconds) {
      for (Key& key : keys) key = random() % rows_ * 7 + 1;
      const auto begin = Clock::now();
      Must(client_->Pull(0, keys, false, values.data(), has_embedx.data()));
      times.push_back(SecondsSince(begin) * 1e3);
    }
    waiter.join();
    if (times.empty()) return 0;
    std::fprintf(stderr, "%zu pulls\n", times.size());
    std::sort(times.begin(), times.end());
    return times[times.size() * 99 / 100];
  }
  Cost Save(const std::string& name, bool binary) {
    v1::SaveRequest request;
    *request.mutable_identity() = client_->identity();
    request.set_name(name);
    if (binary) request.mutable_format()->set_kind(v1::SaveFormat::BINARY);
    v1::SaveReply reply;
    GetMemory();
    return Measure([&] { Must(node_->control().Save(request, &reply)); });
  }
  double Bytes(const std::string& name) const {
    return static_cast<double>(BytesIn(folder_ + "/data/" + name));
  }
  Cost Load(const std::string& name) {
    Must(client_->Clear(0));
    DropCaches();
    v1::LoadRequest request;
    request.set_name(name);
    v1::LoadReply reply;
    GetMemory();
    return Measure([&] { Must(client_->Load(request, &reply)); });
  }

  // Makes memory available for a step and records the lowest rate.
  void GetMemory() {
    const double rate = MemoryRate(rows_ * 256);
    memory_rate_ = memory_rate_ == 0 ? rate : std::min(memory_rate_, rate);
  }

  const std::string folder_;
  const uint64_t rows_;
  double memory_rate_ = 0;  // lowest rate of new memory, bytes per second
  v1::Schema schema_;
  std::unique_ptr<server::ServerNode> node_;
  std::unique_ptr<ParameterClient> client_;
};

}  // namespace
}  // namespace cistern

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: durable_benchmark FOLDER [ROWS]\n");
    return 2;
  }
  std::filesystem::remove_all(argv[1]);
  std::filesystem::create_directories(argv[1]);
  cistern::Bench(argv[1], argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 4000000).Run();
  return 0;
}
