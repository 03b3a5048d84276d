// Sparse pull and push over gRPC: one worker against running servers, compared with limits measured
// in the same run (random memory reads, a loopback stream). Prints one JSON object.
//
//   cistern-server --rank=0 --server_num=1 --port=7700 &
//   fleet_benchmark --servers 127.0.0.1:7700 --rows 20000000
//
// Rows are whole ctr values of 12 floats (48 bytes), as a pass pulls and pushes them. A request has
// 100,000 distinct keys drawn without replacement from all rows. Push figures include the commit.
#include <inttypes.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>
#include <vector>

#include "common/rpc/fleet.h"
#include "test/benchmark/bench_run.h"
#include "test/benchmark/options.h"
#include "test/benchmark/roofs.h"
#include "worker/client/parameter_client.h"

namespace cistern {
namespace {

constexpr size_t kRequestsPerPass = 20;  // of the largest passes

// CPU seconds that the whole machine has been busy, to show how undisturbed a measurement was.
double BusySeconds() {
  std::ifstream stat("/proc/stat");
  std::string cpu;
  double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft = 0;
  stat >> cpu >> user >> nice >> system >> idle >> wait >> irq >> soft;
  return (user + nice + system + irq + soft) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// One connected client and the rows that it has pushed.
class Bench {
 public:
  Bench(ParameterClient& client, uint64_t rows, size_t request)
      : client_(client), request_(request), order_(rows) {
    for (uint64_t i = 0; i < rows; ++i) order_[i] = static_cast<uint32_t>(i);
    std::shuffle(order_.begin(), order_.end(), std::mt19937_64(1));
    values_.resize(request * client.layout(0).full_floats(), 1.0f);
    has_embedx_.resize(request, 1);
    keys_.resize(request);
  }

  // Million keys per second of one pass with `requests` requests that start at position `first`.
  double PushPass(uint64_t first, size_t requests) {
    const Clock::time_point start = Clock::now();
    Must(client_.BeginPass());
    for (size_t r = 0; r < requests; ++r) {
      Draw(first + r * request_);
      Must(client_.Push(0, keys_, values_.data(), has_embedx_.data()));
    }
    Must(client_.CommitPass());
    return static_cast<double>(requests * request_) / SecondsSince(start) / 1e6;
  }

  // Million keys per second of `threads` threads that pull `requests` requests each.
  double Pull(uint64_t first, size_t requests, int threads) {
    const Clock::time_point start = Clock::now();
    std::vector<std::thread> pool;
    for (int t = 0; t < threads; ++t) {
      pool.emplace_back([this, first, requests, t] {
        std::vector<Key> keys(request_);
        std::vector<float> out(values_.size());
        std::vector<uint8_t> has_embedx(request_);
        for (size_t r = 0; r < requests; ++r) {
          const uint64_t at = first + (static_cast<size_t>(t) * requests + r) * request_;
          for (size_t i = 0; i < request_; ++i) keys[i] = KeyAt(order_[(at + i) % order_.size()]);
          Must(client_.Pull(0, keys, false, out.data(), has_embedx.data()));
        }
      });
    }
    for (std::thread& thread : pool) thread.join();
    return static_cast<double>(requests * request_) * threads / SecondsSince(start) / 1e6;
  }

 private:
  void Draw(uint64_t at) {
    for (size_t i = 0; i < request_; ++i) keys_[i] = KeyAt(order_[(at + i) % order_.size()]);
  }

  ParameterClient& client_;
  const size_t request_;
  std::vector<uint32_t> order_;
  std::vector<Key> keys_;
  std::vector<float> values_;
  std::vector<uint8_t> has_embedx_;
};

v1::Schema BenchSchema() {
  v1::Schema schema;
  v1::TableSpec* table = schema.add_tables();
  table->set_name("bench");
  table->set_accessor(v1::TableSpec::CTR);
  table->set_dim(0);  // 11 fields and the shared state of embedx: 12 floats
  table->mutable_rule()->set_kind(v1::UpdateRule::ADAGRAD_SHARED);
  table->mutable_rule()->set_initial_g2sum(3);
  table->mutable_ctr()->set_click_coeff(1);
  return schema;
}

uint64_t ServerMemory(ParameterClient& client, uint64_t* resident) {
  uint64_t memory = 0;
  *resident = 0;
  Must(client.ForEachServer([&](size_t, ControlPlane& control) -> absl::Status {
    v1::StatsRequest request;
    *request.mutable_identity() = client.identity();
    v1::StatsReply reply;
    CISTERN_RETURN_IF_ERROR(control.Stats(request, &reply));
    *resident += reply.resident_bytes();  // unsynchronized: there is only one server in this run
    for (const v1::TableStats& table : reply.tables()) memory += table.memory_bytes();
    return absl::OkStatus();
  }));
  return memory;
}

int Main(int argc, char** argv) {
  Options options("Sparse pull and push against running servers");
  std::string servers;
  uint64_t rows = 20'000'000;
  size_t request = 100'000;
  int threads = 2, rounds = 5;
  options.Require("--servers", &servers, "host:port,...");
  options.Add("--rows", &rows, "rows in the table");
  options.Add("--request", &request, "distinct keys per request");
  options.Add("--threads", &threads, "threads that pull");
  options.Add("--rounds", &rounds, "measurements per figure; the median is printed");
  if (const std::optional<int> code = options.Parse(argc, argv)) return *code;
  // A pass pushes each row once.
  if (request < 1 || threads < 1 || rounds < 1 || rows < kRequestsPerPass * request ||
      rows > UINT32_MAX) {
    std::fprintf(stderr,
                 "fleet_benchmark: --rows %" PRIu64
                 " --request %zu: a pass pushes %zu requests of "
                 "distinct rows: give %zu rows or more, or a smaller --request; one thread and one "
                 "round at least\n",
                 rows, request, kRequestsPerPass, kRequestsPerPass * request);
    return 2;
  }
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 64 << 20);

  const double random_1 = RandomReads(2ull << 30, 1), random_2 = RandomReads(2ull << 30, 2);
  const double stream = LoopbackStream();

  RemoteOptions remote;
  remote.tls = TlsFromEnvironment();  // servers behind TLS
  absl::StatusOr<std::unique_ptr<Fleet>> fleet = ConnectFleet(servers, remote);
  Must(fleet.status());
  absl::StatusOr<std::unique_ptr<ParameterClient>> connected =
      ParameterClient::Connect((*fleet)->links(), ClientOptions());
  Must(connected.status());
  ParameterClient& client = **connected;
  Must(client.CreateTables(BenchSchema()));
  Must(client.ClaimTerm());
  uint64_t resident_before = 0, resident_after = 0;
  ServerMemory(client, &resident_before);

  const double busy_start = BusySeconds();
  const Clock::time_point start = Clock::now();
  Bench bench(client, rows, request);
  std::vector<double> cold, warm_push, pull;
  const size_t per_pass = 10;
  for (uint64_t first = 0; first + per_pass * request <= rows; first += per_pass * request) {
    cold.push_back(bench.PushPass(first, per_pass));
  }
  const uint64_t memory = ServerMemory(client, &resident_after);
  for (int round = 0; round < rounds; ++round) {
    const uint64_t first = static_cast<uint64_t>(round) * 37 * request;
    pull.push_back(bench.Pull(first, kRequestsPerPass, threads));
    warm_push.push_back(bench.PushPass(first, kRequestsPerPass));
  }
  const double bytes_a_key = 8 + 48 + 1;
  nlohmann::ordered_json out;
  out["rows"] = rows;
  out["keys_per_request"] = request;
  out["floats_per_value"] = 12;
  out["pull_mkeys_per_s"] = Median(pull);
  out["push_cold_mkeys_per_s"] = Median(cold);
  out["push_warm_mkeys_per_s"] = Median(warm_push);
  out["table_bytes_per_row"] = static_cast<double>(memory) / static_cast<double>(rows);
  out["resident_bytes_per_row"] =
      static_cast<double>(resident_after - resident_before) / static_cast<double>(rows);
  out["resident_bound_per_row"] = (48 + 8) * 1.25;
  out["roof_random_64b_reads_m_per_s"] = {random_1, random_2};
  out["roof_loopback_gb_per_s"] = stream;
  out["pull_share_of_loopback"] = Median(pull) * bytes_a_key / 1e3 / stream;
  out["push_share_of_loopback"] = Median(warm_push) * bytes_a_key / 1e3 / stream;
  // A pull touches at least two random lines: the index slot and the record.
  out["pull_share_of_random_reads"] = 2 * Median(pull) / random_2;
  out["busy_cores"] = (BusySeconds() - busy_start) / SecondsSince(start);
  std::printf("%s\n", out.dump(2).c_str());
  return 0;
}

}  // namespace
}  // namespace cistern

int main(int argc, char** argv) {
  return cistern::Main(argc, argv);
}
