// Measures how fast a server's table reads and writes rows, compared with the memory of the
// machine.
//
//   sparse_table_benchmark --rows=20000000 [--benchmark_filter=...]
//
// The roof is the rate of random 64-byte reads from a buffer on huge pages, as large as the table's
// records: a pull needs at least one such read for the index slot and one for the record. `keys/s`
// sums all threads; `roof` is the share of half the roof with as many threads, measured first.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <random>

#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/base/pages.h"
#include "test/server/table/table_specs.h"

namespace cistern::server {
namespace {

constexpr size_t kKeysPerRequest = 100000;
constexpr uint32_t kShardNum = 64;

double ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  double pages = 0;
  statm >> pages >> pages;
  return pages * kSmallPageBytes;
}

// Keys are hashes of 0 .. rows-1: spread over 64 bits, as feature signs are.
Key KeyOf(uint64_t i) {
  return MixKey(i);
}

// `n` keys of [begin, begin + range), ordered by shard as clients send them.
std::vector<Key> Request(size_t n, uint64_t begin, uint64_t range, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Key> keys(n);
  for (Key& key : keys) key = KeyOf(begin + random() % range);
  std::sort(keys.begin(), keys.end(), [](Key a, Key b) { return a % kShardNum < b % kShardNum; });
  return keys;
}

struct Fixture {
  explicit Fixture(uint64_t row_num)
      : rows(row_num), table(Table(EmbeddingSpec(12), Map(kShardNum, 1))), pool(2) {
    buffer_lines = rows * 56 / 64;
    const size_t bytes = (buffer_lines * 64 + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
    buffer = MapPages(bytes);
    AdviseHuge(buffer, bytes);
    std::memset(buffer, 1, bytes);
    Fill();
  }

  // Writes all rows, a million per commit, and prints rate and memory.
  void Fill() {
    const double before = ResidentBytes();
    double seconds = 0;
    for (uint64_t begin = 0; begin < rows; begin += 1000000) {
      std::vector<Key> keys;
      for (uint64_t i = begin; i < std::min(rows, begin + 1000000); ++i) keys.push_back(KeyOf(i));
      std::sort(keys.begin(), keys.end(),
                [](Key a, Key b) { return a % kShardNum < b % kShardNum; });
      const std::vector<float> values(keys.size() * 12, 0.5f);
      const std::vector<uint8_t> has_embedx(keys.size(), 1);
      const auto start = std::chrono::steady_clock::now();
      table->Write({ValueBlock{keys, values.data(), has_embedx.data()}}, pool);
      seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    ReturnFreedMemory();
    const double per_row = (ResidentBytes() - before) / static_cast<double>(rows);
    std::printf(
        "%llu new rows of 48 bytes: %.2f M rows/s on 2 threads; resident bytes a row: %.1f, "
        "by count %.1f, limit %.1f\n",
        static_cast<unsigned long long>(rows), static_cast<double>(rows) / seconds / 1e6, per_row,
        static_cast<double>(table->counts().memory_bytes) / static_cast<double>(rows),
        (48 + 8) * 1.25);
  }

  const uint64_t rows;
  std::unique_ptr<SparseTable> table;
  ThreadPool pool;
  char* buffer = nullptr;
  size_t buffer_lines = 0;
  std::map<int, double> roof;  // lines/s, by number of threads
};

void RandomRead(benchmark::State& state, Fixture& fixture) {
  constexpr size_t kAhead = 24;
  std::mt19937_64 random(static_cast<uint64_t>(state.thread_index()));
  std::vector<uint32_t> lines(kKeysPerRequest * 10 + kAhead);
  for (uint32_t& line : lines) line = static_cast<uint32_t>(random() % fixture.buffer_lines);
  uint64_t sum = 0;
  double seconds = 0;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    for (size_t i = 0; i + kAhead < lines.size(); ++i) {
      __builtin_prefetch(fixture.buffer + lines[i + kAhead] * size_t{64});
      sum += static_cast<uint64_t>(fixture.buffer[lines[i] * size_t{64}]);
    }
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  benchmark::DoNotOptimize(sum);
  const double n = static_cast<double>(state.iterations() * (lines.size() - kAhead));
  state.counters["reads/s"] = benchmark::Counter(n, benchmark::Counter::kIsRate);
  if (state.thread_index() == 0) fixture.roof[state.threads()] = n / seconds * state.threads();
}

void Pull(benchmark::State& state, Fixture& fixture, bool absent) {
  std::vector<std::vector<Key>> requests;
  for (uint64_t i = 0; i < 10; ++i) {
    requests.push_back(Request(kKeysPerRequest, absent ? fixture.rows : 0, fixture.rows,
                               i + 100 * static_cast<uint64_t>(state.thread_index())));
  }
  std::vector<float> out(kKeysPerRequest * 12);
  std::vector<uint8_t> has_embedx(kKeysPerRequest);
  double seconds = 0;
  size_t i = 0;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    CISTERN_CHECK(
        fixture.table->Pull(requests[i++ % requests.size()], absent, out.data(), has_embedx.data())
            .ok());
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  const double n = static_cast<double>(state.iterations() * kKeysPerRequest);
  state.counters["keys/s"] = benchmark::Counter(n, benchmark::Counter::kIsRate);
  if (state.thread_index() == 0 && fixture.roof.count(state.threads()) != 0) {
    state.counters["roof"] = n / seconds * state.threads() / (fixture.roof[state.threads()] / 2);
  }
}

void Overwrite(benchmark::State& state, Fixture& fixture) {
  const std::vector<Key> keys = Request(10 * kKeysPerRequest, 0, fixture.rows, 1);
  const std::vector<float> values(keys.size() * 12, 0.25f);
  const std::vector<uint8_t> has_embedx(keys.size(), 1);
  for (auto _ : state) {
    fixture.table->Write({ValueBlock{keys, values.data(), has_embedx.data()}}, fixture.pool);
  }
  state.counters["keys/s"] = benchmark::Counter(
      static_cast<double>(state.iterations() * keys.size()), benchmark::Counter::kIsRate);
}

}  // namespace
}  // namespace cistern::server

int main(int argc, char** argv) {
  using namespace cistern::server;
  benchmark::Initialize(&argc, argv);
  uint64_t rows = 5000000;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--rows=", 7) == 0) {
      rows = std::strtoull(argv[i] + 7, nullptr, 10);
    } else {
      std::fprintf(stderr, "unknown flag %s; there are --rows=N and --benchmark_*\n", argv[i]);
      return 2;
    }
  }
  if (rows < 1000 || rows > 1000000000) {
    std::fprintf(stderr, "--rows must be 1000 to 1000000000\n");
    return 2;
  }
  Fixture fixture(rows);
  for (int threads : {1, 2}) {
    benchmark::RegisterBenchmark("RandomRead", [&](benchmark::State& s) { RandomRead(s, fixture); })
        ->Threads(threads)
        ->UseRealTime();
    benchmark::RegisterBenchmark("Pull", [&](benchmark::State& s) { Pull(s, fixture, false); })
        ->Threads(threads)
        ->UseRealTime();
    benchmark::RegisterBenchmark("PullAbsent", [&](benchmark::State& s) { Pull(s, fixture, true); })
        ->Threads(threads)
        ->UseRealTime();
  }
  benchmark::RegisterBenchmark("Overwrite", [&](benchmark::State& s) {
    Overwrite(s, fixture);
  })->UseRealTime();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
