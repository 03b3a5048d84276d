// Durable servers in their own folder, and passes with a known outcome.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "test/support/temp_folder.h"
#include "test/worker/client/embedded_fleet.h"
#include "test/worker/client/restartable_fleet.h"

namespace cistern::server {

// Added to a parameter: each server has a state folder of its own.
inline constexpr uint64_t kLocalState = uint64_t{1} << 63;

// The parameter is the memory limit of the servers: 0: none; 1: every row is in files; else some.
class DurableCommit : public testing::TestWithParam<uint64_t> {
 protected:
  ServerOptions Base() const {
    ServerOptions options;
    options.data_dir = folder_.path();
    options.shard_num = 8;
    options.memory_limit_bytes = GetParam() & ~kLocalState;
    options.local_state = local_state();
    return options;
  }
  static bool local_state() { return (GetParam() & kLocalState) != 0; }
  static ClientOptions Impatient() {
    ClientOptions options;
    options.retry_limit = absl::Milliseconds(1);
    return options;
  }
  // Commits a pass that writes values dependent on (key, round) to both sparse tables and the dense
  // one.
  static absl::Status Round(ParameterClient& client, uint64_t round, bool durable = true) {
    CISTERN_RETURN_IF_ERROR(client.BeginPass());
    CISTERN_RETURN_IF_ERROR(PushRound(client, round));
    ParameterClient::CommitOptions commit;
    commit.durable = durable;
    commit.worker_state = absl::StrCat("{\"round\": ", round, "}");
    return client.CommitPass(commit);
  }
  static absl::Status PushRound(ParameterClient& client, uint64_t round) {
    std::mt19937_64 random(round);
    for (const TableId table : {kCtr, kDeep}) {
      const uint32_t stride = client.layout(table).full_floats();
      std::vector<Key> keys;
      for (Key key = 1 + round % 3; key < 400; key += 1 + random() % 9) keys.push_back(key * 977);
      std::vector<float> values(keys.size() * stride);
      std::vector<uint8_t> has_embedx(keys.size());
      for (size_t i = 0; i < keys.size(); ++i) {
        has_embedx[i] = table == kDeep || (keys[i] + round) % 2 == 0;
        const uint32_t cells = client.layout(table).floats(has_embedx[i] != 0);
        for (uint32_t c = 0; c < cells; ++c) {
          values[i * stride + c] = static_cast<float>(random() % 100000) / 7.0f;
        }
      }
      CISTERN_RETURN_IF_ERROR(client.Push(table, keys, values.data(), has_embedx.data()));
    }
    std::vector<float> dense(1000 * 3);
    for (float& cell : dense) cell = static_cast<float>(random() % 1000) / 3.0f;
    return client.PushDense(kMlp, dense.data());
  }
  // The digests after rounds 1 .. n on one server without files.
  static std::vector<uint64_t> Expected(uint64_t rounds) {
    EmbeddedFleet fleet(1, [] {
      ServerOptions options;
      options.shard_num = 8;
      return options;
    }());
    auto client = Writer(fleet.Links());
    for (uint64_t round = 1; round <= rounds; ++round) {
      EXPECT_EQ(Round(*client, round), absl::OkStatus());
    }
    return DigestsOf(*client);
  }

  TempFolder folder_;
};

inline std::string MemoryLimitName(const testing::TestParamInfo<uint64_t>& info) {
  const uint64_t limit = info.param & ~kLocalState;
  return absl::StrCat(limit == 0   ? "InMemory"
                      : limit == 1 ? "InFiles"
                                   : "Tiered",
                      limit == info.param ? "" : "LocalState");
}

#define CISTERN_WITH_AND_WITHOUT_MEMORY(fixture) \
  INSTANTIATE_TEST_SUITE_P(                      \
      , fixture, testing::Values(uint64_t{0}, uint64_t{1}, uint64_t{40} << 10), MemoryLimitName)
#define CISTERN_WITH_EVERY_STATE(fixture)                                                          \
  INSTANTIATE_TEST_SUITE_P(                                                                        \
      , fixture,                                                                                   \
      testing::Values(uint64_t{0}, uint64_t{1}, uint64_t{40} << 10, kLocalState, kLocalState | 1), \
      MemoryLimitName)

}  // namespace cistern::server
