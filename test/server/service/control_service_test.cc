#include "server/service/control_service.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/saved_model/model_folder.h"
#include "common/value/accessor/ctr_accessor.h"
#include "test/support/temp_folder.h"
#include "test/worker/client/embedded_fleet.h"

namespace cistern::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

v1::StatsReply StatsOf(ParameterClient& client, bool digest) {
  v1::StatsRequest request;
  *request.mutable_identity() = client.identity();
  request.set_digest(digest);
  v1::StatsReply reply;
  EXPECT_EQ(client.servers()[0].control->Stats(request, &reply), absl::OkStatus());
  return reply;
}

TEST(Stats, CountsRowsAndCalls) {
  EmbeddedFleet fleet(1);
  auto client = Writer(fleet.Links());
  const std::vector<Key> keys = TestKeys(1000);
  ASSERT_EQ(CommitKeys(*client, keys), absl::OkStatus());
  ASSERT_TRUE(PullKeys(*client, kDeep, keys).status.ok());
  ASSERT_EQ(client->BeginPass(), absl::OkStatus());
  const v1::StatsReply stats = StatsOf(*client, false);
  EXPECT_EQ(stats.committed_pass(), 1u);
  EXPECT_EQ(stats.open_pass(), 2u);
  EXPECT_EQ(stats.pushed_keys(), 1000u);
  EXPECT_EQ(stats.pulled_keys(), 1000u);
  EXPECT_GT(stats.resident_bytes(), 1u << 20);
  ASSERT_EQ(stats.tables_size(), 2);
  EXPECT_EQ(stats.tables(kDeep).name(), "deep");
  EXPECT_EQ(stats.tables(kDeep).rows(), 1000u);
  EXPECT_EQ(stats.tables(kDeep).value_bytes(), 1000u * 18 * 4);
  EXPECT_EQ(stats.dense_tables(kMlp).rows(), 0u);  // never written
}

TEST(Stats, DigestsAddUpToTheSameOverAnyNumberOfServers) {
  uint64_t first = 0;
  for (uint32_t server_num : {1u, 2u, 3u}) {
    EmbeddedFleet fleet(server_num);
    auto client = Writer(fleet.Links());
    ASSERT_EQ(CommitKeys(*client, TestKeys(1000)), absl::OkStatus());
    uint64_t digest = 0;
    for (const ServerLink& server : client->servers()) {
      v1::StatsRequest request;
      *request.mutable_identity() = client->identity();
      request.set_digest(true);
      v1::StatsReply reply;
      ASSERT_EQ(server.control->Stats(request, &reply), absl::OkStatus());
      digest += reply.tables(kDeep).digest();
    }
    if (server_num == 1) first = digest;
    EXPECT_EQ(digest, first);
  }
  EXPECT_NE(first, 0u);
}

TEST(GetRow, ShowsFieldsAndText) {
  EmbeddedFleet fleet(1);
  auto client = Writer(fleet.Links());
  std::vector<float> value(client->layout(kCtr).full_floats(), 0.0f);
  StoreDouble(&value[CtrCells::kShow], 3);
  const Key key = 130;
  const uint8_t has_embedx = 0;
  ASSERT_EQ(client->BeginPass(), absl::OkStatus());
  ASSERT_EQ(client->Push(kCtr, {key}, value.data(), &has_embedx), absl::OkStatus());
  ASSERT_EQ(client->CommitPass(), absl::OkStatus());
  v1::GetRowRequest request;
  *request.mutable_identity() = client->identity();
  request.set_key(key);
  v1::GetRowReply row;
  ASSERT_EQ(client->servers()[0].control->GetRow(request, &row), absl::OkStatus());
  EXPECT_TRUE(row.found());
  EXPECT_EQ(row.shard(), 2u);
  EXPECT_THAT(row.field_names(), ElementsAre("unseen_days", "delta_score", "show", "click",
                                             "embed_w", "embed_state", "slot", "uid"));
  EXPECT_EQ(row.fields(2), 3);
  EXPECT_EQ(row.text(), "130 0 0 0 3 0 0 0 0\n");

  request.set_key(131);
  row.Clear();
  ASSERT_EQ(client->servers()[0].control->GetRow(request, &row), absl::OkStatus());
  EXPECT_FALSE(row.found());
}

TEST(SaveAndLoad, GoThroughAFolderOfTheDataDir) {
  const TempFolder data_dir;
  ServerOptions options;
  options.data_dir = data_dir.path();
  EmbeddedFleet saver(2, options), loader(1, options);
  auto client = Writer(saver.Links());
  const std::vector<Key> keys = TestKeys(1000);
  ASSERT_EQ(CommitKeys(*client, keys), absl::OkStatus());
  v1::SaveRequest save;
  save.set_name("m1");
  *save.mutable_identity() = client->identity();
  const auto save_all = [&] {
    return client->ForEachServer([&](size_t, ControlPlane& server) {
      v1::SaveReply reply;
      return server.Save(save, &reply);
    });
  };
  ASSERT_EQ(save_all(), absl::OkStatus());
  EXPECT_EQ(save_all().code(), absl::StatusCode::kAlreadyExists);

  auto other = Connected(loader.Links());
  v1::LoadRequest load;
  load.set_name("m1");
  *load.mutable_identity() = other->identity();
  v1::LoadReply loaded;
  ASSERT_EQ(other->servers()[0].control->Load(load, &loaded), absl::OkStatus());
  EXPECT_EQ(loaded.committed_pass(), 1u);
  other = Connected(loader.Links());
  EXPECT_EQ(PullKeys(*other, kDeep, keys).values, PullKeys(*client, kDeep, keys).values);

  load.set_name("m2");
  *load.mutable_identity() = other->identity();
  ASSERT_EQ(other->Clear(0), absl::OkStatus());
  EXPECT_EQ(other->servers()[0].control->Load(load, &loaded).code(), absl::StatusCode::kNotFound);
  // A failed load leaves a server that works.
  EXPECT_TRUE(PullKeys(*other, kDeep, keys).status.ok());
}

TEST(SaveAndLoad, DoNotFollowALinkOutOfTheDataDir) {
  namespace fs = std::filesystem;
  const TempFolder data_dir, other;
  ServerOptions options;
  options.data_dir = data_dir.path();
  const fs::path root = options.data_dir, outside = other.path();
  EmbeddedFleet fleet(1, options);
  auto client = Writer(fleet.Links());
  ASSERT_EQ(CommitKeys(*client, TestKeys(100)), absl::OkStatus());
  const auto save = [&](const std::string& name) {
    v1::SaveRequest request;
    request.set_name(name);
    *request.mutable_identity() = client->identity();
    v1::SaveReply reply;
    return client->servers()[0].control->Save(request, &reply);
  };
  const auto load = [&](const std::string& name) {
    v1::LoadRequest request;
    request.set_name(name);
    *request.mutable_identity() = client->identity();
    v1::LoadReply reply;
    return client->servers()[0].control->Load(request, &reply);
  };
  fs::create_directory_symlink(outside, root / "link");
  EXPECT_EQ(save("link").code(), absl::StatusCode::kInvalidArgument);
  fs::create_directory(root / "table");
  fs::create_directory_symlink(outside, root / "table" / "deep");
  EXPECT_EQ(save("table").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(fs::is_empty(outside));

  ASSERT_EQ(save("m1"), absl::OkStatus());
  fs::rename(root / "m1", outside / "m1");
  fs::create_directory_symlink(outside / "m1", root / "m1");
  ASSERT_EQ(client->Clear(0), absl::OkStatus());
  const absl::Status loaded = load("m1");
  EXPECT_EQ(loaded.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(loaded.message()), HasSubstr("link"));
}

// A disk on which somebody puts a link in the place of a folder once the first file of a save
// exists.
class SwappedFolder : public LocalFileSystem {
 public:
  SwappedFolder(std::string folder, std::string outside)
      : folder_(std::move(folder)), outside_(std::move(outside)) {}

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const FilePath& path) override {
    auto file = LocalFileSystem::Create(path);
    if (absl::StartsWith(path.text(), folder_) && !swapped_.exchange(true)) {
      // In one step, so that no other thread of the save finds neither folder nor link.
      const std::string link = absl::StrCat(folder_, "-link");
      std::filesystem::create_directory_symlink(outside_, link);
      EXPECT_EQ(renameat2(AT_FDCWD, link.c_str(), AT_FDCWD, folder_.c_str(), RENAME_EXCHANGE), 0)
          << "errno " << errno;
    }
    return file;
  }

 private:
  const std::string folder_, outside_;
  std::atomic<bool> swapped_ = false;
};

TEST(SaveAndLoad, DoNotFollowALinkThatAppearsDuringASave) {
  const TempFolder data_dir, outside;
  SwappedFolder disk(data_dir / "m1", outside.path());
  ServerOptions options;
  options.data_dir = data_dir.path();
  options.files = &disk;
  EmbeddedFleet fleet(1, options);
  auto client = Writer(fleet.Links());
  ASSERT_EQ(CommitKeys(*client, TestKeys(100)), absl::OkStatus());
  v1::SaveRequest request;
  request.set_name("m1");
  *request.mutable_identity() = client->identity();
  v1::SaveReply reply;
  const absl::Status saved = client->servers()[0].control->Save(request, &reply);
  EXPECT_EQ(saved.code(), absl::StatusCode::kInvalidArgument) << saved;
  EXPECT_TRUE(std::filesystem::is_empty(outside.path()));
}

TEST(Shrink, ADryRunCountsDuringAnOpenPass) {
  EmbeddedFleet fleet(1);
  auto client = Writer(fleet.Links());
  ASSERT_EQ(CommitKeys(*client, TestKeys(100)), absl::OkStatus());
  ASSERT_EQ(client->BeginPass(), absl::OkStatus());
  v1::ShrinkRequest shrink;
  *shrink.mutable_identity() = client->identity();
  v1::ShrinkReply reply;
  EXPECT_EQ(client->servers()[0].control->Shrink(shrink, &reply).code(),
            absl::StatusCode::kFailedPrecondition);
  shrink.set_dry_run(true);
  ASSERT_EQ(client->servers()[0].control->Shrink(shrink, &reply), absl::OkStatus());
  EXPECT_EQ(reply.rows(), 100u);
}

TEST(SaveAndLoad, PassOnModesFormatsAndOptions) {
  const TempFolder data_dir;
  ServerOptions options;
  options.data_dir = data_dir.path();
  EmbeddedFleet fleet(1, options), empty(1, options);
  auto client = Writer(fleet.Links());
  ASSERT_EQ(CommitKeys(*client, TestKeys(100)), absl::OkStatus());
  v1::SaveRequest save;
  save.set_name("zipped");
  save.set_mode(v1::DELTA);
  save.mutable_format()->set_kind(v1::SaveFormat::BINARY);
  save.mutable_format()->set_gzip(true);
  *save.mutable_identity() = client->identity();
  v1::SaveReply saved;
  ASSERT_EQ(client->servers()[0].control->Save(save, &saved), absl::OkStatus());
  EXPECT_EQ(saved.files_size(), 2 * 64);  // the dense table was never written
  EXPECT_THAT(saved.files(), testing::Each(testing::EndsWith(".bin.gz")));
  const auto parts = ReadParts(Disk(), saved.path());
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_EQ((*parts)[0].mode, v1::DELTA);

  auto other = Connected(empty.Links());
  v1::LoadRequest load;
  load.set_name("zipped");
  load.set_foreign(true);
  *load.mutable_identity() = other->identity();
  v1::LoadReply loaded;
  const absl::Status foreign = other->servers()[0].control->Load(load, &loaded);
  EXPECT_EQ(foreign.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(foreign.message()), HasSubstr("foreign"));

  v1::Schema schema = TestSchema();
  schema.mutable_tables(kDeep)->set_dim(7);
  ASSERT_EQ(other->CreateTables(schema), absl::OkStatus());
  load.set_foreign(false);
  *load.mutable_identity() = other->identity();
  EXPECT_EQ(other->servers()[0].control->Load(load, &loaded).code(),
            absl::StatusCode::kFailedPrecondition);
  load.set_upgrade(true);
  ASSERT_EQ(other->servers()[0].control->Load(load, &loaded), absl::OkStatus());
  EXPECT_EQ(loaded.rows(), 100u);
}

TEST(Hello, IsToldToRetryWhileTablesAreReplaced) {
  LocalFileSystem files;
  NodeState state(ShardMap::Create(8, 1).value(), 0, "cistern", 1, 1 << 20);
  ControlService control(&state, &files, "");
  v1::HelloReply reply;
  EXPECT_EQ(control.Hello({}, &reply), absl::OkStatus());
  {
    absl::MutexLock lock(&state.tables_mutex);
    state.replacing = true;
  }
  EXPECT_EQ(control.Hello({}, &reply).code(), absl::StatusCode::kUnavailable);
}

// An older writer keeps pushing as fast as it can while a newer one claims and commits. All its
// calls after the claim are refused, and none of its values is in the newer writer's pass.
TEST(ClaimEpoch, LeavesNothingOfAnOlderWriterBehind) {
  const std::vector<Key> zombie_keys = TestKeys(50, 2'000'000'000), keys = TestKeys(50);
  for (int round = 0; round < 20; ++round) {
    EmbeddedFleet fleet(1);
    auto zombie = Writer(fleet.Links());
    ASSERT_EQ(zombie->BeginPass(), absl::OkStatus());
    std::thread old([&] {
      const std::vector<float> values = ValuesOf(zombie_keys, 18);
      const std::vector<uint8_t> has_embedx(zombie_keys.size(), 1);
      absl::Status status;
      while (status.ok()) {
        status = zombie->Push(kDeep, zombie_keys, values.data(), has_embedx.data());
      }
      EXPECT_THAT(std::string(status.message()), HasSubstr("fenced"));
      EXPECT_THAT(std::string(zombie->CommitPass().message()), HasSubstr("fenced"));
    });
    auto writer = Writer(fleet.Links());
    EXPECT_EQ(CommitKeys(*writer, keys), absl::OkStatus());
    old.join();
    EXPECT_EQ(StatsOf(*writer, false).tables(kDeep).rows(), keys.size());
  }
}

// Readers read while passes commit: every read returns whole rows, and none fails.
TEST(Pull, RunsDuringCommits) {
  EmbeddedFleet fleet(2);
  auto client = Writer(fleet.Links());
  const std::vector<Key> keys = TestKeys(500);
  ASSERT_EQ(CommitKeys(*client, keys), absl::OkStatus());
  const std::vector<float> expected = ValuesOf(keys, 18);
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done) {
      const Pulled pulled = PullKeys(*client, kDeep, keys);
      EXPECT_TRUE(pulled.status.ok()) << pulled.status;
      EXPECT_EQ(pulled.values, expected);
    }
  });
  for (int pass = 0; pass < 20; ++pass) EXPECT_EQ(CommitKeys(*client, keys), absl::OkStatus());
  done = true;
  reader.join();
}

}  // namespace
}  // namespace cistern::server
