// Exchanges between two workers on this machine, in plain text and under TLS, compared with one
// stream over loopback that the same run measured. Prints one JSON object.
//
//   group_benchmark --rounds 5
//
// Both ranks send and receive `bytes` at the same time, as in a step of training. Plain and TLS
// alternate, so that a change in the machine's speed affects both.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "common/tls/authority.h"
#include "test/benchmark/bench_run.h"
#include "test/benchmark/options.h"
#include "test/benchmark/roofs.h"
#include "worker/group/tcp_communicator.h"

namespace cistern {
namespace {

using Context = std::shared_ptr<const group::SecureContext>;

void Write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// Certificates of a worker, made for this run.
Context MakeContext() {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("group-benchmark-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const absl::StatusOr<KeyedCertificate> authority = MakeAuthority("benchmark", absl::Hours(1));
  Must(authority.status());
  CertificateRequest request;
  request.name = "worker";
  request.roles = {{"cistern", Role::kWorker}};
  const absl::StatusOr<KeyedCertificate> worker = Issue(*authority, request);
  Must(worker.status());
  Write(folder / "ca", authority->cert);
  Write(folder / "cert", worker->cert);
  Write(folder / "key", worker->key);
  absl::StatusOr<Context> context =
      group::SecureContext::Create({folder / "cert", folder / "key", folder / "ca"}, "cistern");
  Must(context.status());
  std::filesystem::remove_all(folder);
  return *context;
}

// Two ranks, each of which makes its calls on a thread of its own.
class Pair {
 public:
  explicit Pair(const Context& tls) {
    absl::StatusOr<group::Listener> listener = group::Listener::Open(0, "127.0.0.1");
    Must(listener.status());
    const uint16_t port = listener->port();
    std::vector<std::thread> joining;
    for (int rank = 0; rank < 2; ++rank) {
      group::GroupOptions group;
      group.rank = rank;
      group.size = 2;
      group.address = absl::StrCat("127.0.0.1:", port);
      group.secret.value = 1;
      group.tls = tls;
      if (rank == 0) group.listener = *std::move(listener);
      joining.emplace_back([this, rank, group = std::move(group)]() mutable {
        absl::StatusOr<std::unique_ptr<Communicator>> made =
            group::ConnectOverTcp(std::move(group));
        Must(made.status());
        ranks_[rank] = *std::move(made);
      });
    }
    for (std::thread& thread : joining) thread.join();
  }

  // Seconds of one exchange of `bytes` each way, as the mean of `times`.
  double Exchange(size_t bytes, int times) {
    const Clock::time_point start = Clock::now();
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([this, rank, bytes, times] {
        Stream stream;
        std::vector<size_t> sizes(2);
        sizes[1 - rank] = bytes;
        std::vector<char> out(bytes, 1), in(bytes);
        for (int i = 0; i < times; ++i) {
          Must(ranks_[rank]->AllToAll(out.data(), sizes, in.data(), sizes, stream));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return SecondsSince(start) / times;
  }

 private:
  std::unique_ptr<Communicator> ranks_[2];
};

int Main(int argc, char** argv) {
  Options options("Exchanges between two workers, in plain text and under TLS");
  int rounds = 5;
  options.Add("--rounds", &rounds, "measurements per figure; the median is printed");
  if (const std::optional<int> code = options.Parse(argc, argv)) return *code;
  Pair plain(nullptr), secure(MakeContext());
  nlohmann::ordered_json json;
  json["loopback_gb_per_s"] = LoopbackStream();
  for (const size_t bytes : {size_t{256}, size_t{64} << 10, size_t{1} << 20, size_t{16} << 20}) {
    const int times = static_cast<int>(std::clamp<size_t>((size_t{256} << 20) / bytes, 8, 4000));
    std::vector<double> of_plain, of_secure;
    for (int round = 0; round < rounds; ++round) {
      of_plain.push_back(plain.Exchange(bytes, times));
      of_secure.push_back(secure.Exchange(bytes, times));
    }
    const double a = Median(of_plain), b = Median(of_secure);
    json["exchanges"].push_back({{"bytes", bytes},
                                 {"plain_us", a * 1e6},
                                 {"tls_us", b * 1e6},
                                 {"plain_gb_per_s", static_cast<double>(bytes) / a / 1e9},
                                 {"tls_gb_per_s", static_cast<double>(bytes) / b / 1e9},
                                 {"tls_to_plain", a / b}});
  }
  std::printf("%s\n", json.dump(2).c_str());
  return 0;
}

}  // namespace
}  // namespace cistern

int main(int argc, char** argv) {
  return cistern::Main(argc, argv);
}
