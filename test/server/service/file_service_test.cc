#include "server/service/file_service.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/saved_model/model_folder.h"
#include "test/support/temp_folder.h"
#include "test/worker/client/embedded_fleet.h"

namespace cistern::server {
namespace {

using testing::HasSubstr;

TEST(FileService, SavesAndLoadsInAFolderOfTheDataDir) {
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

TEST(FileService, DoesNotFollowALinkOutOfTheDataDir) {
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

TEST(FileService, DoesNotFollowALinkThatAppearsDuringASave) {
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

TEST(FileService, PassesOnModesFormatsAndOptions) {
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

}  // namespace
}  // namespace cistern::server
