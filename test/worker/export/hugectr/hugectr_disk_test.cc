// HugeCTR's files on a failing disk. Export: each file is complete or unchanged, and the next
// attempt succeeds. Import from a failing disk or into failing servers: nothing is committed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "test/support/fault_file_system.h"
#include "test/support/memory_file_system.h"
#include "test/worker/client/embedded_fleet.h"
#include "test/worker/model/config/config_parsing.h"
#include "worker/export/hugectr/hugectr_model.h"
#include "worker/model/graph/model.h"

namespace cistern {
namespace {

using ::testing::HasSubstr;

class HugectrDisk : public testing::Test {
 protected:
  HugectrDisk() : config_(model::ParseOrDie()) {}

  // Servers at pass `passes`; every cell of a row holds the number of the pass.
  std::unique_ptr<ParameterClient> Fleet(EmbeddedFleet& fleet, int passes) {
    auto client = ParameterClient::Connect(fleet.Links(), {}).value();
    DeviceContext device;
    const auto model = model::Model::Create(config_, device).value();
    EXPECT_TRUE(client->CreateTables(model->schema()).ok());
    EXPECT_TRUE(client->ClaimTerm().ok());
    const std::vector<Key> keys = {5, 6, 7, 100};
    const std::vector<uint8_t> has_embedx(keys.size(), 1);
    for (int pass = 1; pass <= passes; ++pass) {
      const auto cell = static_cast<float>(pass);
      const std::vector<float> values(keys.size() * client->layout(0).full_floats(), cell);
      const std::vector<float> dense(model->ReadDense(0).value().size(), cell);
      EXPECT_TRUE(client->BeginPass().ok());
      EXPECT_TRUE(client->Push(0, keys, values.data(), has_embedx.data()).ok());
      EXPECT_TRUE(client->PushDense(0, dense.data()).ok());
      EXPECT_TRUE(client->CommitPass().ok());
    }
    return client;
  }

  const model::ModelConfig config_;
};

// All bytes of a model if it is complete, else ""; checks that each file belongs to one pass.
std::string Whole(FileSystem& files, const HugectrPlace& place) {
  std::string bytes;
  std::vector<std::string> paths = {place.dense(), place.sparse(0)};
  if (place.form == HugectrForm::kV3) {
    paths = {place.dense(), place.opt_dense()};
    for (const char* name : {"key", "emb_vector", "Adam.m", "Adam.v"}) {
      paths.push_back(absl::StrCat(place.sparse(0), "/", name));
    }
  }
  for (const std::string& path : paths) {
    const auto one = ReadWhole(files, path, 1 << 20);
    if (!one.ok()) return "";
    absl::StrAppend(&bytes, path, ":", *one);
  }
  return bytes;
}

TEST_F(HugectrDisk, AnyFailedCallLeavesWholeFilesAndTheNextAttemptSucceeds) {
  EmbeddedFleet one(1), two(2);
  const auto old_client = Fleet(one, 1), new_client = Fleet(two, 2);
  for (const HugectrForm form : {HugectrForm::kV2, HugectrForm::kV3}) {
    const HugectrPlace place = {"out/a", 7, form, /*manifest=*/true};
    MemoryFileSystem old_disk, new_disk;
    ASSERT_TRUE(
        WriteHugectrModel(old_disk, config_, *CommittedModelOf(*old_client, "servers"), place)
            .ok());
    ASSERT_TRUE(
        WriteHugectrModel(new_disk, config_, *CommittedModelOf(*new_client, "servers"), place)
            .ok());
    const std::string fresh = Whole(new_disk, place);
    ASSERT_NE(fresh, "");
    uint64_t n = 1;
    for (;; ++n) {
      const auto memory =
          old_disk.Crash(old_disk.operation_num(), MemoryFileSystem::Loss::kKill, 0);
      FaultFileSystem files(memory.get());
      files.FailCall(n, Fault::kNoSpace);
      const absl::Status written =
          WriteHugectrModel(files, config_, *CommittedModelOf(*new_client, "servers"), place)
              .status();
      if (files.hits().empty()) break;
      const std::string hit = files.hits()[0];
      if (!written.ok()) {
        EXPECT_THAT(std::string(written.message()), HasSubstr("out")) << hit;
      }
      EXPECT_NE(Whole(*memory, place), "") << hit;
      EXPECT_TRUE(
          WriteHugectrModel(files, config_, *CommittedModelOf(*new_client, "servers"), place).ok())
          << hit;
      EXPECT_EQ(Whole(*memory, place), fresh) << hit;
      const std::vector<std::string> names = memory->List("out").value();
      for (const std::string& name : names) {
        EXPECT_THAT(name, testing::AnyOf(testing::EndsWith(".model"), "a_export_7.json")) << hit;
      }
    }
    EXPECT_GT(n, 12u);
  }
}

// A reader that sees the dense weights sees all files of the same export, the older or the newer.
TEST_F(HugectrDisk, AKilledExportLeavesAWholeModelOrNone) {
  EmbeddedFleet one(1), two(2);
  const auto old_client = Fleet(one, 1), new_client = Fleet(two, 2);
  for (const HugectrForm form : {HugectrForm::kV2, HugectrForm::kV3}) {
    const HugectrPlace place = {"out/a", 7, form, /*manifest=*/true};
    MemoryFileSystem disk;
    ASSERT_TRUE(
        WriteHugectrModel(disk, config_, *CommittedModelOf(*old_client, "servers"), place).ok());
    const std::string old = Whole(disk, place);
    const size_t before = disk.operation_num();
    ASSERT_TRUE(
        WriteHugectrModel(disk, config_, *CommittedModelOf(*new_client, "servers"), place).ok());
    const std::string fresh = Whole(disk, place);
    ASSERT_NE(old, fresh);
    std::set<std::string> seen;
    for (size_t n = before; n <= disk.operation_num(); ++n) {
      for (const auto loss : {MemoryFileSystem::Loss::kKill, MemoryFileSystem::Loss::kOrdered,
                              MemoryFileSystem::Loss::kWeak}) {
        for (uint64_t seed = 0; seed < 4; ++seed) {
          const auto left = disk.Crash(n, loss, seed);
          const bool there = left->Exists(place.dense()).value();
          const std::string whole = there ? Whole(*left, place) : "none";
          EXPECT_THAT(whole, testing::AnyOf(old, fresh, "none")) << n << " " << seed;
          seen.insert(whole);
        }
      }
    }
    EXPECT_EQ(seen, (std::set<std::string>{old, fresh, "none"}));
  }
}

TEST_F(HugectrDisk, AFileThatCannotBeReadCommitsNothing) {
  EmbeddedFleet source(2);
  const auto trained = Fleet(source, 1);
  model::ModelConfig config = config_;
  config.solver.dense_model_file = "out/a_dense_7.model";
  config.solver.sparse_model_files = {"out/a0_sparse_7.model"};
  MemoryFileSystem memory;
  ASSERT_TRUE(WriteHugectrModel(memory, config_, *CommittedModelOf(*trained, "servers"),
                                {"out/a", 7, HugectrForm::kV3})
                  .ok());
  uint64_t n = 1;
  for (;; ++n) {
    EmbeddedFleet fleet(1);
    const auto client = Fleet(fleet, 0);
    FaultFileSystem files(&memory);
    files.FailCall(n, Fault::kInputOutput);
    const absl::Status read = ReadHugectrModel(files, config, *client, "");
    if (files.hits().empty()) {
      EXPECT_TRUE(read.ok()) << read;
      EXPECT_EQ(client->committed_pass(), 1u);
      break;
    }
    // (The failure to open a folder as a file is not an error.)
    EXPECT_EQ(read.ok(), files.hits()[0] == "open out/a0_sparse_7.model") << files.hits()[0];
    EXPECT_EQ(client->committed_pass(), read.ok() ? 1u : 0u);
    if (read.ok()) continue;
    files.FailNothing();
    EXPECT_TRUE(ReadHugectrModel(files, config, *client, "").ok()) << files.hits()[0];
  }
  EXPECT_GT(n, 10u);
}

TEST_F(HugectrDisk, ServersWithACommittedPassAreRefused) {
  EmbeddedFleet fleet(1);
  const auto client = Fleet(fleet, 1);
  MemoryFileSystem files;
  const absl::Status refused = ReadHugectrModel(files, config_, *client, "");
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("hold pass 1"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("resume"));
}

}  // namespace
}  // namespace cistern
