// Trained models in every form that app exports. What the files hold is tested beside the writers
// (test/worker/export); here: options, results, refusals, and that a job ends when it is asked.
#include <gmock/gmock.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "app/export/export_cache.h"
#include "app/export/export_dnn_plugin.h"
#include "app/export/export_hugectr.h"
#include "app/export/export_onnx.h"
#include "app/export/export_serving.h"
#include "app/export/export_tables.h"
#include "app/export/export_xbox.h"
#include "test/app/train/run_fixture.h"

namespace cistern::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A run whose rows have statistics, which all forms but HugeCTR's can hold.
class Exports : public RunFixture {
 protected:
  void SetUp() override {
    RunFixture::SetUp();
    const auto run = RunOf(RunOptions("ctr", {"solver.num_epochs=1", kStatistics}));
    ASSERT_TRUE(run.ok()) << run.status();
    rows_ = run->summary.rows;
  }

  static constexpr char kStatistics[] = "cistern.embeddings.deep.accessor=ctr";

  template <class Options>
  Options Of(const std::string& run, const std::string& out) const {
    Options options;
    options.source.model.config = folder_ + "/" + run;
    if constexpr (std::is_same_v<Options, ServingExport>) {
      options.version.out = folder_ + "/" + out;
    } else if constexpr (std::is_same_v<Options, OnnxExport>) {
      options.place.path = folder_ + "/" + out;
    } else {
      options.out = folder_ + "/" + out;
    }
    return options;
  }
  bool Exists(const std::string& name) const {
    return std::filesystem::exists(folder_ + "/" + name);
  }

  uint64_t rows_ = 0;
};

TEST_F(Exports, ServingIsCheckedOnDataBeforeItIsServed) {
  auto options = Of<ServingExport>("ctr", "serving");
  options.version.precision = RowPrecision::kInt8;
  options.check_data = {folder_ + "/test.norm"};
  options.max_auc_loss = -1;
  const absl::Status refused = ExportServing(options, {}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(OptionsOf(refused), ElementsAre("precision", "max_auc_loss"));
  EXPECT_FALSE(Exists("serving/HEAD"));
  options.max_auc_loss = std::nullopt;
  const auto exported = ExportServing(options, {});
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_EQ(exported->cost->exact.predictions.size(), 1000u);
  EXPECT_GT(exported->cost->largest_difference, 0);
  EXPECT_EQ(exported->written.rows, rows_);
  const nlohmann::ordered_json json = JsonOf(*exported);
  EXPECT_EQ(json["precision"], "int8");
  EXPECT_EQ(json["check"]["samples"], 1000);
}

TEST_F(Exports, ServingNeedsAPlaceOfItsOwnAndDataForALimit) {
  const auto in_run = Of<ServingExport>("ctr", "ctr");
  EXPECT_THAT(OptionsOf(ExportServing(in_run, {}).status()), ElementsAre("out"));
  auto without_data = Of<ServingExport>("ctr", "serving");
  without_data.max_auc_loss = 0.1;
  EXPECT_THAT(OptionsOf(ExportServing(without_data, {}).status()),
              ElementsAre("max_auc_loss", "check_data"));
}

TEST_F(Exports, RowsWithStatisticsAreWrittenForCubesAndCaches) {
  auto xbox = Of<XboxExport>("ctr", "xbox");
  xbox.tables = {"deap"};
  const absl::Status unknown = ExportXbox(xbox, {}).status();
  EXPECT_EQ(unknown.message(), "the model has no embedding 'deap'; did you mean 'deep'?");
  EXPECT_THAT(OptionsOf(unknown), ElementsAre("tables"));
  xbox.tables = {"deep"};
  xbox.update = true;
  EXPECT_THAT(OptionsOf(ExportXbox(xbox, {}).status()), ElementsAre("servers"));
  xbox.update = false;
  xbox.format.compression = SequenceCompression::kBlock;
  EXPECT_THAT(OptionsOf(ExportXbox(xbox, {}).status()), ElementsAre("compress", "seqfile=hadoop"));
  xbox.format = {};
  const auto base = ExportXbox(xbox, {});
  ASSERT_TRUE(base.ok()) << base.status();
  EXPECT_EQ(JsonOf(*base)["kind"], "base");
  EXPECT_LE(base->written.tables[0].rows, rows_);

  auto cache = Of<CacheExport>("ctr", "cache");
  cache.rate = 0.5;
  const auto cached = ExportCache(cache, {});
  ASSERT_TRUE(cached.ok()) << cached.status();
  EXPECT_EQ(cached->written.tables[0].of_rows, rows_);
  cache.files = uint64_t{1} << 32;
  EXPECT_THAT(OptionsOf(ExportCache(cache, {}).status()), ElementsAre("files"));
}

TEST_F(Exports, DenseParametersAreWrittenForOtherPrograms) {
  const auto paddle = ExportDnnPlugin(Of<DnnPluginExport>("ctr", "paddle"), {});
  ASSERT_TRUE(paddle.ok()) << paddle.status();
  // Two layers, and scale, bias, mean and variance of 16 columns.
  EXPECT_EQ(paddle->written.numbers, (32 * 16 + 16) + (16 + 1) + 4 * 16);
  auto onnx = Of<OnnxExport>("ctr", "net.onnx");
  const auto network = ExportOnnx(onnx, {});
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_THAT(network->written.paths,
              ElementsAre(folder_ + "/net.onnx", folder_ + "/net.onnx.json"));
  EXPECT_EQ(JsonOf(*network)["trained_in"], "float32");
  onnx.source.model.config = folder_ + "/model.json";
  onnx.source.model_dir = folder_ + "/ctr";
  onnx.place.path = folder_ + "/model.json";
  EXPECT_THAT(OptionsOf(ExportOnnx(onnx, {}).status()), ElementsAre("out"));
}

TEST_F(Exports, HugectrFilesHoldEveryRow) {
  const auto run = RunOf(RunOptions("plain", {"solver.num_epochs=1"}));
  ASSERT_TRUE(run.ok()) << run.status();
  auto options = Of<HugectrExport>("plain", "deepfm");
  options.iteration = 7;
  const auto exported = ExportHugectr(options, {});
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_EQ(exported->written.rows, run->summary.rows);
  EXPECT_TRUE(Exists("deepfm_dense_7.model"));
  options.out = folder_ + "/caf\xe9";
  EXPECT_THAT(OptionsOf(ExportHugectr(options, {}).status()), ElementsAre("out"));
}

TEST_F(Exports, EndWhenTheyAreAskedAndLeaveNothing) {
  const std::atomic<bool> stop{true};
  JobCalls calls;
  calls.stop = &stop;
  const auto cancelled = absl::StatusCode::kCancelled;
  EXPECT_EQ(ExportServing(Of<ServingExport>("ctr", "serving"), calls).status().code(), cancelled);
  EXPECT_FALSE(Exists("serving/HEAD"));
  EXPECT_EQ(ExportXbox(Of<XboxExport>("ctr", "xbox"), calls).status().code(), cancelled);
  EXPECT_FALSE(Exists("xbox/donefile.txt"));
  EXPECT_EQ(ExportCache(Of<CacheExport>("ctr", "cache"), calls).status().code(), cancelled);
  EXPECT_EQ(ExportDnnPlugin(Of<DnnPluginExport>("ctr", "paddle"), calls).status().code(),
            cancelled);
  EXPECT_FALSE(Exists("paddle"));
  EXPECT_EQ(ExportOnnx(Of<OnnxExport>("ctr", "net.onnx"), calls).status().code(), cancelled);
  EXPECT_FALSE(Exists("net.onnx"));
}

}  // namespace
}  // namespace cistern::app
