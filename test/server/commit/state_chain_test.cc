#include "server/commit/state_chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/memory_file_system.h"

namespace cistern::server {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

// Server 0 of two, in a folder of all servers, which keeps two manifests.
class StateChainTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = StateFolder::Open(disk_, "/state", 0).value();
    StateChain::Options options;
    options.keep_commits = 2;
    options.compact_min_bytes = uint64_t{1} << 40;
    options.compact_max_files = 1000;
    chain_ = StateChain::Open(folder_.get(), options, ShardMap::Create(4, 2).value(), 0).value();
  }

  // A row file of `server` of two at `commit`, empty on the disk.
  v1::RowFile File(uint64_t commit, uint32_t server, bool base = false) {
    RowFileName name;
    name.base = base;
    name.commit = commit;
    name.term = 1;
    name.server = server;
    v1::RowFile file;
    file.set_name(FormatRowFileName(name));
    file.set_commit(commit);
    file.set_base(base);
    file.set_server(server);
    file.set_server_num(2);
    file.set_bytes(10);
    EXPECT_TRUE(disk_.Create(folder_->data_path() + "/" + file.name()).ok());
    return file;
  }

  void Take(uint64_t commit, const std::vector<v1::RowFile>& files) {
    ParsedManifest manifest;
    manifest.manifest.set_commit(commit);
    for (const v1::RowFile& file : files) *manifest.manifest.add_files() = file;
    chain_->Take(std::move(manifest), {});
  }

  std::vector<std::string> Names(const std::vector<v1::RowFile>& files) const {
    std::vector<std::string> names;
    for (const v1::RowFile& file : files) names.push_back(file.name());
    return names;
  }

  MemoryFileSystem disk_;
  std::unique_ptr<StateFolder> folder_;
  std::unique_ptr<StateChain> chain_;
};

TEST_F(StateChainTest, ItsFilesAreThoseOfTheServerByCommit) {
  const v1::RowFile newer = File(2, 0), older = File(1, 0, /*base=*/true), other = File(1, 1);
  EXPECT_EQ(chain_->commit(), 0u);
  Take(2, {newer, other, older});
  EXPECT_EQ(chain_->commit(), 2u);
  EXPECT_THAT(Names(chain_->files()), ElementsAre(older.name(), newer.name()));
  EXPECT_THAT(Names(chain_->Merged()), ElementsAre(older.name(), newer.name()));
  EXPECT_EQ(chain_->bytes(), 20u);
}

TEST_F(StateChainTest, GarbageIsWhatNoKeptManifestNames) {
  const v1::RowFile first = File(1, 0, /*base=*/true), second = File(2, 0, /*base=*/true),
                    third = File(3, 0, /*base=*/true), other = File(1, 1, /*base=*/true),
                    prepared = File(3, 0);
  Take(1, {first, other});
  Take(2, {second, other});
  chain_->CollectGarbage(prepared.name());
  EXPECT_EQ(disk_.List(folder_->data_path()).value().size(), 5u);  // both manifests are kept
  Take(3, {third});
  chain_->CollectGarbage(prepared.name());
  // Another server removes its own files.
  EXPECT_THAT(disk_.List(folder_->data_path()).value(),
              UnorderedElementsAre(second.name(), third.name(), other.name(), prepared.name()));
  chain_->CollectGarbage("");
  EXPECT_THAT(disk_.List(folder_->data_path()).value(),
              UnorderedElementsAre(second.name(), third.name(), other.name()));
}

TEST_F(StateChainTest, AFileThatCannotBeReadIsDataLoss) {
  EXPECT_EQ(chain_->OpenFile(File(1, 0), 0).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace cistern::server
