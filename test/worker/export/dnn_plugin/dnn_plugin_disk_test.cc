// The export of dense parameters on a failing disk: the folder is the old one or the new one, and
// the next export succeeds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/fault_file_system.h"
#include "test/support/memory_file_system.h"
#include "test/worker/client/embedded_fleet.h"
#include "test/worker/model/config/config_parsing.h"
#include "worker/export/dnn_plugin/dnn_plugin.h"
#include "worker/export/dnn_plugin/paddle_parameters.h"
#include "worker/model/graph/model.h"
#include "worker/model/graph/model_summary.h"

namespace cistern {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Servers with the small model at pass `passes`; every dense number is the number of the pass.
std::unique_ptr<ParameterClient> Trained(EmbeddedFleet& fleet, const model::ModelConfig& config,
                                         int passes) {
  auto client = Connected(fleet.Links());
  DeviceContext device;
  const auto model = model::Model::Create(config, device).value();
  EXPECT_TRUE(client->CreateTables(model->schema()).ok());
  EXPECT_TRUE(client->ClaimTerm().ok());
  for (int pass = 1; pass <= passes; ++pass) {
    const std::vector<float> dense(model->ReadDense(0).value().size(), static_cast<float>(pass));
    EXPECT_TRUE(client->BeginPass().ok());
    EXPECT_TRUE(client->PushDense(0, dense.data()).ok());
    EXPECT_TRUE(client->CommitPass().ok());
  }
  return client;
}

// The bytes of all files of a folder; "" if there is none.
std::string Whole(FileSystem& files, const std::string& folder) {
  std::string bytes;
  const auto names = files.List(folder);
  if (!names.ok()) return bytes;
  for (const std::string& name : *names) {
    absl::StrAppend(&bytes, name, ":", ReadWhole(files, folder + "/" + name, 1 << 20).value());
  }
  return bytes;
}

TEST(DnnPlugin, AnyFailedCallLeavesAWholeFolderAndTheNextExportSucceeds) {
  const model::ModelConfig config = model::ParseOrDie();
  EmbeddedFleet one(1), two(1);
  const auto old_client = Trained(one, config, 1), new_client = Trained(two, config, 2);
  const auto write = [&](FileSystem& files, ParameterClient& client) {
    return WriteDnnPlugin(files, config, *CommittedModelOf(client, "servers"), "/out/p").status();
  };
  MemoryFileSystem old_disk, new_disk;
  ASSERT_TRUE(write(old_disk, *old_client).ok());
  ASSERT_TRUE(write(new_disk, *new_client).ok());
  const std::string before = Whole(old_disk, "/out/p"), after = Whole(new_disk, "/out/p");
  uint64_t n = 1;
  for (;; ++n) {
    const auto memory = old_disk.Crash(old_disk.operation_num(), MemoryFileSystem::Loss::kKill, 0);
    FaultFileSystem files(memory.get());
    files.FailCall(n, Fault::kNoSpace);
    const absl::Status written = write(files, *new_client);
    if (files.hits().empty()) break;
    const std::string found = Whole(*memory, "/out/p");
    EXPECT_TRUE(found == before || found == after) << files.hits()[0];
    EXPECT_TRUE(write(*memory, *new_client).ok()) << files.hits()[0];
    EXPECT_TRUE(Whole(*memory, "/out/p") == after) << files.hits()[0];
    EXPECT_THAT(memory->List("/out").value(), ElementsAre("p")) << files.hits()[0];
  }
  EXPECT_GT(n, 30u);
}

TEST(DnnPlugin, AForeignFolderIsNotReplaced) {
  const model::ModelConfig config = model::ParseOrDie();
  EmbeddedFleet fleet(1);
  const auto client = Trained(fleet, config, 1);
  MemoryFileSystem files;
  files.Put("/out/p/diary.txt", "x");
  const auto model = CommittedModelOf(*client, "servers");
  EXPECT_EQ(WriteDnnPlugin(files, config, *model, "/out/p").status().code(),
            absl::StatusCode::kAlreadyExists);
  files.Put("/out/p/dnn_plugin.json", "{\"form\":\"cache\"}");
  EXPECT_EQ(WriteDnnPlugin(files, config, *model, "/out/p").status().code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReadWhole(files, "/out/p/diary.txt", 10).value(), "x");
}

TEST(PaddleParameters, TheSmallModelHasTwoLayers) {
  const model::ModelConfig config = model::ParseOrDie();
  const auto parameters = PaddleParametersOf(config, model::Summarize(config).value()).value();
  ASSERT_EQ(parameters.size(), 4u);
  EXPECT_EQ(parameters[0].name, "fc1.w_0");
  EXPECT_THAT(parameters[0].dims, ElementsAre(11, 5));
  EXPECT_EQ(parameters[3].name, "fc2.b_0");
  EXPECT_EQ(parameters[3].offset, 11u * 5 + 5 + 5);
}

TEST(PaddleParameters, StatisticsWithoutAPaddleFormAreRefused) {
  const model::ModelConfig config = model::ParseOrDie(
      {R"(layers.relu1={"name":"d","type":"PReLU_Dice","bottom":"fc1","top":"relu1",
                     "prelu_dice_param":{"alpha":0.2}})"});
  const absl::Status status = PaddleParametersOf(config, model::Summarize(config).value()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("the type PReLU_Dice has parameters for which Paddle's form is not known"));
}

TEST(PaddleParameters, TwoLayersOfOneNameAreRefused) {
  const model::ModelConfig config =
      model::ParseOrDie({}, model::Replaced("\"name\": \"fc2\"", "\"name\": \"fc1\""));
  const absl::Status status = PaddleParametersOf(config, model::Summarize(config).value()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("another layer has this name"));
}

}  // namespace
}  // namespace cistern
