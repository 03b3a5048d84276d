// Saved models on a disk that fails and on one that loses power: a model is complete or absent, and
// the next save succeeds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/saved_model/model_snapshot.h"
#include "test/server/table/table_specs.h"
#include "test/support/fault_file_system.h"
#include "test/support/memory_file_system.h"

namespace cistern::server {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Loss = MemoryFileSystem::Loss;

constexpr char kFolder[] = "models/m";

// One server with a few rows in each of two shards of a table, and in a dense one.
class ModelOnDisk : public testing::Test {
 protected:
  ModelOnDisk() : store_(Map(2, 1), 0) {
    v1::Schema schema;
    *schema.add_tables() = EmbeddingSpec(2);
    v1::DenseTableSpec* dense = schema.add_dense_tables();
    dense->set_name("dense");
    dense->set_rows(3);
    dense->add_columns(std::string("w"));
    EXPECT_TRUE(store_.Create(schema).ok());
    for (Key key = 0; key < 6; ++key) {
      const float value[] = {static_cast<float>(key), 0.5f};
      store_.sparse_tables()[0]->Insert(key % 2, key, value, true);
    }
    const float weights[] = {1, 2, 3};
    EXPECT_TRUE(store_.dense_tables()[0]->Write(0, 3, weights).ok());
  }

  absl::Status Save(FileSystem& disk) {
    return SaveStore(disk, store_, 9, kFolder, pool_).status();
  }

  // OK if the model exists with every row; kNotFound if there is none.
  absl::Status Load(FileSystem& disk) {
    TableStore loaded(Map(2, 1), 0);
    CISTERN_RETURN_IF_ERROR(LoadStore(disk, loaded, kFolder, pool_).status());
    EXPECT_EQ(*loaded.sparse_tables()[0]->Digest(), *store_.sparse_tables()[0]->Digest());
    EXPECT_EQ(loaded.dense_tables()[0]->Digest(), store_.dense_tables()[0]->Digest());
    return absl::OkStatus();
  }

  // Saves, cuts the power after every call in every way, and counts the disks on which the model is
  // broken, or lost after the last call.
  int BrokenAfterCrash(MemoryFileSystem& files) {
    EXPECT_TRUE(files.MakeFolders("models").ok());
    EXPECT_TRUE(Save(files).ok());
    int broken = 0;
    for (const Loss loss : {Loss::kKill, Loss::kOrdered, Loss::kWeak}) {
      for (size_t prefix = 0; prefix <= files.operation_num(); ++prefix) {
        for (uint64_t seed = 0; seed < (loss == Loss::kKill ? 1 : 12); ++seed) {
          const absl::Status loaded = Load(*files.Crash(prefix, loss, seed));
          const bool none = absl::IsNotFound(loaded) && prefix < files.operation_num();
          broken += !loaded.ok() && !none;
        }
      }
    }
    return broken;
  }

  TableStore store_;
  ThreadPool pool_{1};
};

TEST_F(ModelOnDisk, IsCompleteOrAbsentAfterAnyCrash) {
  MemoryFileSystem files;
  EXPECT_EQ(BrokenAfterCrash(files), 0);
}

TEST_F(ModelOnDisk, AMissingSyncIsDetected) {
  MemoryFileSystem no_file_syncs, no_folder_syncs;
  no_file_syncs.IgnoreFileSyncs();
  EXPECT_GT(BrokenAfterCrash(no_file_syncs), 0);
  no_folder_syncs.IgnoreFolderSyncs();
  EXPECT_GT(BrokenAfterCrash(no_folder_syncs), 0);
}

TEST_F(ModelOnDisk, AnyFailedCallLeavesNoModelAndTheNextSaveSucceeds) {
  for (const Fault fault :
       {Fault::kNoSpace, Fault::kInputOutput, Fault::kShortWrite, Fault::kLostReply}) {
    uint64_t n = 1;
    for (;; ++n) {
      MemoryFileSystem memory;
      ASSERT_TRUE(memory.MakeFolders("models").ok());
      FaultFileSystem files(&memory);
      files.FailCall(n, fault);
      const absl::Status saved = Save(files);
      if (files.hits().empty()) break;
      const std::string hit = files.hits()[0];
      if (saved.ok()) {  // the failed call only listed or removed what was absent
        EXPECT_THAT(hit, AnyOf(HasSubstr("remove"), HasSubstr("list")));
        EXPECT_TRUE(Load(files).ok()) << hit;
        continue;
      }
      EXPECT_THAT(std::string(saved.message()), HasSubstr(kFolder)) << hit;
      EXPECT_EQ(Load(files).code(), absl::StatusCode::kNotFound) << hit;
      if (fault != Fault::kLostReply) {
        EXPECT_THAT(memory.List("models").value(), IsEmpty()) << hit;
      }
      const absl::Status again = Save(files);
      EXPECT_TRUE(again.ok()) << hit << ": " << again;
      EXPECT_TRUE(Load(files).ok()) << hit;
    }
    EXPECT_GT(n, 25u);
  }
}

TEST_F(ModelOnDisk, AnyFailedCallOfALoadNamesTheFile) {
  MemoryFileSystem memory;
  ASSERT_TRUE(memory.MakeFolders("models").ok());
  ASSERT_TRUE(Save(memory).ok());
  FaultFileSystem files(&memory);
  uint64_t n = 1;
  for (;; ++n) {
    files.FailCall(n, Fault::kInputOutput);
    const absl::Status loaded = Load(files);
    if (files.hits().empty()) break;
    EXPECT_EQ(loaded.code(), absl::StatusCode::kInternal) << loaded;
    EXPECT_THAT(std::string(loaded.message()), HasSubstr(kFolder));
  }
  EXPECT_GT(n, 7u);
}

}  // namespace
}  // namespace cistern::server
