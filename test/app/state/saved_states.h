// The fixture of tests of commits and saved models on disk.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "test/server/checkpoint/small_state.h"
#include "test/support/temp_folder.h"

namespace cistern::app {

class SavedStates : public testing::Test {
 protected:
  // The path of the newest row file of a server on disk.
  std::string AFile() const {
    std::string found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "state/data")) {
      found = std::max(found, entry.path().string());
    }
    return found;
  }
  static void FlipAByte(const std::string& path) {
    std::string bytes = ReadBytes(path);
    bytes[bytes.size() / 2] ^= 0x10;
    WriteBytes(path, bytes);
  }
  // Saves the rows of all servers.
  static void Save(ParameterClient& client, const std::string& name) {
    ASSERT_EQ(client.ForEachServer([&](size_t, ControlPlane& server) {
      v1::SaveRequest request;
      *request.mutable_identity() = client.identity();
      request.set_name(name);
      v1::SaveReply reply;
      return server.Save(request, &reply);
    }),
              absl::OkStatus());
  }
  RestartableFleet Fleet(uint32_t server_num) const {
    server::ServerOptions options;
    options.data_dir = folder_.path();
    options.shard_num = 8;
    return RestartableFleet(server_num, options);
  }

  TempFolder folder_;
};

}  // namespace cistern::app
