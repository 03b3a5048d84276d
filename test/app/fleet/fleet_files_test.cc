// The commits of servers that share no folder, read through them. What must come out is what a
// folder with the files of all servers gives.
#include "app/fleet/fleet_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "app/state/apply_changes.h"
#include "app/state/save_changes.h"
#include "app/state/saved_rows.h"
#include "app/state/state_diff.h"
#include "test/app/state/saved_states.h"

namespace cistern::app {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class FleetFilesTest : public SavedStates {
 protected:
  RestartableFleet LocalFleet(uint32_t server_num) const {
    server::ServerOptions options;
    options.data_dir = folder_.path();
    options.shard_num = 8;
    options.local_state = true;
    return RestartableFleet(server_num, options);
  }
  // Commits a pass that writes `count` keys from `first` on, whose values depend on `pass`.
  static void Commit(ParameterClient& client, Key first, size_t count, float pass) {
    std::vector<Key> keys(count);
    for (size_t i = 0; i < count; ++i) keys[i] = first + i;
    std::vector<float> values = ValuesOf(keys, client.layout(kDeep).full_floats());
    for (float& value : values) value += pass;
    const std::vector<uint8_t> has_embedx(count, 1);
    ASSERT_EQ(client.BeginPass(), absl::OkStatus());
    ASSERT_EQ(client.Push(kDeep, keys, values.data(), has_embedx.data()), absl::OkStatus());
    ASSERT_EQ(client.CommitPass(), absl::OkStatus());
  }
  // A data_dir with the files of all servers.
  std::string Whole(const RestartableFleet& fleet, uint32_t server_num) const {
    const std::string whole = folder_ / "whole";
    fs::create_directories(whole);
    for (uint32_t rank = 0; rank < server_num; ++rank) {
      fs::copy(server::StateFolderOf(fleet.data_dir(rank)), server::StateFolderOf(whole),
               fs::copy_options::recursive | fs::copy_options::skip_existing);
    }
    fs::remove(server::StateFolderOf(whole) + "/local-server");
    return whole;
  }
};

TEST_F(FleetFilesTest, GiveTheChangesOfLocalStates) {
  for (const uint32_t server_num : {2u, 3u}) {
    fs::remove_all(folder_.path());
    fs::create_directories(folder_.path());
    RestartableFleet fleet = LocalFleet(server_num);
    auto client = Writer(fleet.Links());
    Commit(*client, 1, 60000, 1);  // files of more than a reply holds
    Commit(*client, 50000, 20000, 2);
    Commit(*client, 7, 3, 3);
    FleetFiles files(*client);
    SaveChangesOptions options;
    options.state = files.root();
    options.since = {"1"};
    options.out = folder_ / "changes";
    options.files = &files;
    const auto saved = SaveChanges(options, {});
    ASSERT_TRUE(saved.ok()) << saved.status();
    EXPECT_EQ(saved->rows, 20003u);
    EXPECT_FALSE(saved->compared);

    const std::string whole = Whole(fleet, server_num), applied = folder_ / "applied";
    ASSERT_TRUE(ApplyChanges({whole + "@1", {options.out}, applied}, {}).ok());
    const auto diff = Diff({applied, whole + "@3"}, {});
    ASSERT_TRUE(diff.ok()) << diff.status();
    EXPECT_TRUE(diff->same());
    // As publish reads them.
    const auto rows = SavedRows::Open(files, {server::StateFolderOf(files.root()), 3});
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_EQ((*rows)->state()->SerializeAsString(),
              SavedRows::Open(files, {whole, 3}).value()->state()->SerializeAsString());
  }
}

TEST_F(FleetFilesTest, AreThoseOfTheServers) {
  RestartableFleet fleet = LocalFleet(2);
  auto client = Writer(fleet.Links());
  Commit(*client, 1, 100, 1);
  FleetFiles files(*client);
  const std::string state = server::StateFolderOf(files.root()),
                    whole = server::StateFolderOf(Whole(fleet, 2));
  for (const std::string folder : {"manifest", "data"}) {
    const auto names = files.List(absl::StrCat(state, "/", folder));
    ASSERT_EQ(names.value(), LocalFileSystem().List(absl::StrCat(whole, "/", folder)).value());
    for (const std::string& name : *names) {
      const std::string path = absl::StrCat("/", folder, "/", name);
      EXPECT_EQ(ReadWhole(files, state + path, 1 << 30).value(), ReadBytes(whole + path)) << path;
      EXPECT_TRUE(*files.Exists(state + path));
    }
  }
  EXPECT_FALSE(*files.Exists(state + "/data/delta-9-9-0"));
  EXPECT_EQ(files.Open(state + "/local-server").status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(*files.Exists(whole + "/manifest"));  // this machine's

  fleet.Kill(1);
  const absl::Status away = files.List(state + "/data").status();
  EXPECT_EQ(away.code(), absl::StatusCode::kUnavailable) << away;
  EXPECT_THAT(away.message(), HasSubstr(fleet.Links()[1].name));
}

// A caller with a certificate of a reader gets rows, and nothing else of the disk.
TEST_F(FleetFilesTest, ServersSendFilesOfCommitsAlone) {
  RestartableFleet fleet = LocalFleet(1);
  auto client = Writer(fleet.Links());
  Commit(*client, 1, 10, 1);
  const auto ask = [&](const std::string& name) {
    v1::ReadStateRequest request;
    *request.mutable_identity() = client->identity();
    request.set_name(name);
    request.set_size(100);
    v1::ReadStateReply reply;
    return client->servers()[0].control->ReadState(request, &reply);
  };
  EXPECT_EQ(ask("manifest/00000000000000000001"), absl::OkStatus());
  for (const std::string name :
       {"", ".", "..", "epoch", "epoch/00000000000000000001", "local-server", "data/", "data/..",
        "data/../local-server", "manifest/../epoch/00000000000000000001", "manifest/1",
        "/etc/passwd", "data/base-1-1-0/../../local-server"}) {
    EXPECT_EQ(ask(name).code(), absl::StatusCode::kInvalidArgument) << name;
  }
  EXPECT_EQ(ask("data/base-9-9-0").code(), absl::StatusCode::kNotFound);
}

TEST_F(FleetFilesTest, NeedDurableCommits) {
  EmbeddedFleet fleet(1);
  auto client = Writer(fleet.Links());
  FleetFiles files(*client);
  EXPECT_EQ(files.List(server::StateFolderOf(files.root()) + "/manifest").status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace cistern::app
