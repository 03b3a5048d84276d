// What python_bench.py compares the Python package with: the same calls of the same libraries in
// C++.
//
//   python_peer pull ROUNDS                               pulls from 2 embedded servers
//   python_peer read FILE_LIST DENSE SLOTS BATCH ROUNDS   reads Norm files in batches
//
// Prints one JSON object: medians over the rounds.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include "app/fleet/fleet_session.h"
#include "common/base/check.h"
#include "test/benchmark/bench_run.h"
#include "worker/data/format/data_set.h"

namespace cistern {
namespace {

constexpr size_t kKeys = 100'000, kDim = 12, kSmallCalls = 2000;

template <class F>
double MedianSeconds(int rounds, F&& call) {
  std::vector<double> seconds;
  for (int i = 0; i < rounds; ++i) {
    const auto start = Clock::now();
    call();
    seconds.push_back(SecondsSince(start));
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

// A table of kKeys rows, all of which are there.
void Fill(ParameterClient& client) {
  v1::Schema schema;
  v1::TableSpec& table = *schema.add_tables();
  table.set_name("t");
  table.set_dim(kDim);
  table.mutable_rule()->set_kind(v1::UpdateRule::SGD);
  CISTERN_CHECK(client.CreateTables(schema).ok());
  CISTERN_CHECK(client.ClaimTerm().ok());
  CISTERN_CHECK(client.BeginPass().ok());
  std::vector<Key> keys(kKeys);
  std::iota(keys.begin(), keys.end(), Key{0});
  const std::vector<float> values(kKeys * kDim, 1);
  const std::vector<uint8_t> has_embedx(kKeys, 1);
  CISTERN_CHECK(client.Push(0, keys, values.data(), has_embedx.data()).ok());
  CISTERN_CHECK(client.CommitPass({}).ok());
}

void MeasurePulls(int rounds) {
  app::FleetOptions flags;
  flags.embedded_servers = 2;
  auto session = app::FleetSession::Open(flags);
  CISTERN_CHECK(session.ok());
  ParameterClient& client = (*session)->client();
  Fill(client);
  std::vector<Key> keys(kKeys);
  std::iota(keys.begin(), keys.end(), Key{0});
  std::vector<float> out(kKeys * kDim);
  std::vector<uint8_t> has_embedx(kKeys);
  const auto pull = [&](size_t n) {
    CISTERN_CHECK(client
                      .Pull(0, absl::MakeConstSpan(keys).first(n), /*absent_is_zero=*/false,
                            out.data(), has_embedx.data())
                      .ok());
  };
  const double all = MedianSeconds(rounds * 4, [&] { pull(kKeys); });
  double one = 1;  // of short times the least is the truest
  for (int i = 0; i < 10 * rounds; ++i) {
    one = std::min(one, MedianSeconds(1, [&] {
                     for (size_t j = 0; j < kSmallCalls; ++j) pull(1);
                   }));
  }
  std::printf("{\"keys_per_s\": %.0f, \"one_key_us\": %.3f}\n", kKeys / all,
              1e6 * one / kSmallCalls);
}

void MeasureReads(const char* file_list, int dense, int slots, size_t batch, int rounds) {
  data::DataSetOptions options;
  options.source = file_list;
  options.check = data::NormCheck::kSum;
  options.shape.label_dim = 1;
  options.shape.dense_dim = static_cast<uint32_t>(dense);
  options.shape.slot_nums = {static_cast<uint32_t>(slots)};
  options.shape.max_keys = {0};
  size_t samples = 0;
  const double seconds = MedianSeconds(rounds, [&] {
    auto reader = data::OpenDataSet(options);
    CISTERN_CHECK(reader.ok());
    data::SampleBlock block;
    for (samples = 0;; samples += block.size) {
      block.Reset(1);
      while (block.size < batch) {
        const auto read = (*reader)->Read(batch - block.size, &block);
        CISTERN_CHECK(read.ok());
        if (*read == 0) break;
      }
      if (block.size == 0) break;
    }
  });
  std::printf("{\"samples_per_s\": %.0f}\n", static_cast<double>(samples) / seconds);
}

}  // namespace
}  // namespace cistern

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "pull") == 0) {
    cistern::MeasurePulls(std::atoi(argv[2]));
  } else if (argc == 7 && std::strcmp(argv[1], "read") == 0) {
    cistern::MeasureReads(argv[2], std::atoi(argv[3]), std::atoi(argv[4]),
                          static_cast<size_t>(std::atoi(argv[5])), std::atoi(argv[6]));
  } else {
    std::fprintf(stderr, "python_peer: see the head of python_peer.cc\n");
    return 2;
  }
}
