// Model folders on a failing disk and on a disk that loses power: while one model replaces another,
// a complete model exists at all times.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/saved_model/model_folder.h"
#include "test/support/fault_file_system.h"
#include "test/support/memory_file_system.h"
#include "test/worker/client/embedded_fleet.h"
#include "worker/train/jobs.h"

namespace cistern {
namespace {

using ::testing::HasSubstr;
using DiskLoss = MemoryFileSystem::Loss;

constexpr char kModel[] = "out/model";

// The pass of the model in `folder`, after reading every byte of it; 0 if it is incomplete.
PassId WholePass(FileSystem& files, const std::string& folder) {
  const auto parts = ReadParts(files, folder);
  if (!parts.ok()) return 0;
  for (const ModelPart& part : *parts) {
    for (const ModelFile& file : part.files) {
      const absl::Status read =
          ReadModelFile(files, folder, file, [](absl::string_view) { return absl::OkStatus(); });
      if (!read.ok()) return 0;
    }
  }
  return (*parts)[0].pass;
}

server::ServerOptions TwoShards() {
  server::ServerOptions options;
  options.shard_num = 2;
  return options;
}

// A disk with the model of pass 1, and servers at pass 2.
class ReplacedModel : public testing::Test {
 protected:
  ReplacedModel() : fleet_(1, TwoShards()), client_(Writer(fleet_.Links())) {
    MemoryFileSystem files;
    EXPECT_TRUE(files.MakeFolders("out").ok());
    Commit();
    EXPECT_TRUE(SaveModel(files, *client_, kModel).ok());
    old_disk_ = files.Crash(files.operation_num(), DiskLoss::kWeak, 0);
    EXPECT_EQ(WholePass(*old_disk_, kModel), 1u);
    Commit();
  }

  void Commit() {
    const std::vector<Key> keys = {1, 2, 3};
    const std::vector<float> values = ValuesOf(keys, client_->layout(kDeep).full_floats());
    const std::vector<uint8_t> has_embedx(keys.size(), 1);
    ASSERT_TRUE(client_->BeginPass().ok());
    ASSERT_TRUE(client_->Push(kDeep, keys, values.data(), has_embedx.data()).ok());
    ASSERT_TRUE(client_->PushDense(kMlp, std::vector<float>(3000, 0.5f).data()).ok());
    ASSERT_TRUE(client_->CommitPass().ok());
  }

  std::unique_ptr<MemoryFileSystem> OldDisk() const {
    return old_disk_->Crash(0, DiskLoss::kKill, 0);
  }

  EmbeddedFleet fleet_;
  std::unique_ptr<ParameterClient> client_;
  std::unique_ptr<MemoryFileSystem> old_disk_;
};

TEST_F(ReplacedModel, IsCompleteAfterAnyCrash) {
  const auto files = OldDisk();
  ASSERT_TRUE(SaveModel(*files, *client_, kModel).ok());
  for (const DiskLoss loss : {DiskLoss::kKill, DiskLoss::kOrdered, DiskLoss::kWeak}) {
    for (size_t prefix = 0; prefix <= files->operation_num(); ++prefix) {
      for (uint64_t seed = 0; seed < (loss == DiskLoss::kKill ? 1 : 8); ++seed) {
        const auto disk = files->Crash(prefix, loss, seed);
        ASSERT_GE(WholePass(*disk, kModel), 1u) << "after " << prefix << " calls, seed " << seed;
        EXPECT_TRUE(prefix < files->operation_num() || WholePass(*disk, kModel) == 2);
      }
    }
  }
}

TEST_F(ReplacedModel, AnyFailedCallLeavesACompleteModelAndTheNextSaveSucceeds) {
  for (const Fault fault : {Fault::kNoSpace, Fault::kInputOutput, Fault::kShortWrite}) {
    uint64_t n = 1;
    for (;; ++n) {
      const auto memory = OldDisk();
      FaultFileSystem files(memory.get());
      files.FailCall(n, fault);
      const absl::Status saved = SaveModel(files, *client_, kModel);
      if (files.hits().empty()) break;
      const std::string hit = files.hits()[0];
      EXPECT_GE(WholePass(files, kModel), saved.ok() ? 2u : 1u) << hit;
      const absl::Status again = SaveModel(files, *client_, kModel);
      EXPECT_TRUE(again.ok()) << hit << ": " << again;
      EXPECT_EQ(WholePass(files, kModel), 2u) << hit;
      EXPECT_EQ(memory->List("out").value(), std::vector<std::string>{"model"}) << hit;
    }
    EXPECT_GT(n, 30u);
  }
}

}  // namespace
}  // namespace cistern
