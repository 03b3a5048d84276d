// The state on disk of a fleet that has committed a few passes.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/service/server_node.h"
#include "test/worker/client/embedded_fleet.h"
#include "test/worker/client/restartable_fleet.h"

namespace cistern::server {

// Values for `keys` of both sparse tables and for the dense table, which depend on `round`.
inline absl::Status CommitRound(ParameterClient& client, uint64_t round) {
  CISTERN_RETURN_IF_ERROR(client.BeginPass());
  for (const TableId table : {kCtr, kDeep}) {
    const uint32_t stride = client.layout(table).full_floats();
    std::vector<Key> keys;
    for (Key key = round; key < 300; key += 1 + round) keys.push_back(key * 977);
    std::vector<float> values(keys.size() * stride);
    std::vector<uint8_t> has_embedx(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      has_embedx[i] = table == kDeep || keys[i] % 2 == 0;
      for (uint32_t cell = 0; cell < client.layout(table).floats(has_embedx[i] != 0); ++cell) {
        values[i * stride + cell] = CellOf(keys[i] + round, cell);
      }
    }
    CISTERN_RETURN_IF_ERROR(client.Push(table, keys, values.data(), has_embedx.data()));
  }
  std::vector<float> dense(1000 * 3);
  for (size_t i = 0; i < dense.size(); ++i) dense[i] = static_cast<float>(i + round);
  CISTERN_RETURN_IF_ERROR(client.PushDense(kMlp, dense.data()));
  ParameterClient::CommitOptions commit;
  commit.worker_state = absl::StrCat("{\"round\": ", round, "}");
  return client.CommitPass(commit);
}

// Commits `rounds` passes below data_dir and stops. Returns the digests of all tables.
inline std::vector<uint64_t> MakeSmallState(FileSystem& files, const std::string& data_dir,
                                            uint32_t server_num, uint64_t rounds) {
  ServerOptions options;
  options.files = &files;
  options.data_dir = data_dir;
  options.shard_num = 8;
  RestartableFleet fleet(server_num, options);
  auto client = Writer(fleet.Links());
  for (uint64_t round = 1; round <= rounds; ++round) {
    EXPECT_EQ(CommitRound(*client, round), absl::OkStatus());
  }
  return DigestsOf(*client);
}

// Starts servers on a state and returns the digests of the recovered tables.
inline std::vector<uint64_t> RecoveredDigests(FileSystem& files, const std::string& data_dir,
                                              uint32_t server_num, uint32_t shard_num) {
  ServerOptions options;
  options.files = &files;
  options.data_dir = data_dir;
  options.shard_num = shard_num;
  RestartableFleet fleet(server_num, options);
  auto client = Connected(fleet.Links());
  EXPECT_EQ(client->ClaimTerm(), absl::OkStatus());
  return DigestsOf(*client);
}

}  // namespace cistern::server
