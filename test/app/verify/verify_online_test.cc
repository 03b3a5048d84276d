// Served predictions, computed again from the commits.
#include "app/verify/verify_online.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "app/model/export_source.h"
#include "serve/predictor/open_predictor.h"
#include "test/app/train/run_fixture.h"
#include "worker/export/serving/serving_model.h"

namespace cistern::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A run whose newest commit is served, and a log of two requests.
class VerifiedOnline : public RunFixture {
 protected:
  static constexpr size_t kSamples = 3;

  void SetUp() override {
    RunFixture::SetUp();
    const auto run = RunOf(RunOptions("run", {"solver.num_epochs=1"}));
    ASSERT_TRUE(run.ok()) << run.status();
    ExportOptions of_run;
    of_run.model.config = folder_ + "/run";
    of_run.state = folder_ + "/run";
    const absl::StatusOr<ExportSource> source = OpenExportSource(of_run);
    ASSERT_TRUE(source.ok()) << source.status();
    commit_ = source->model->version().commit;
    LocalFileSystem files;
    ASSERT_TRUE(WriteServingModel(files, source->config, {"model.json", ModelText(), {}},
                                  *source->model, {folder_ + "/serving"})
                    .ok());
    for (size_t slot = 0; slot < kSlots * kSamples; ++slot) {
      keys_.push_back(slot % kSlots * 300 + slot);
    }
    std::iota(offsets_.begin(), offsets_.end(), 0);
    const auto predictor = serve::OpenPredictor(folder_ + "/serving", {.threads = 1, .poll_ms = 0});
    ASSERT_TRUE(predictor.ok()) << predictor.status();
    serve::ServedVersion version;
    ASSERT_TRUE((*predictor)
                    ->Predict({kSamples, {}, {{keys_, offsets_}}}, absl::MakeSpan(predictions_),
                              &version, nullptr)
                    .ok());
    options_ = {folder_ + "/log.jsonl", folder_ + "/run", folder_ + "/serving"};
  }

  void WriteLog(uint64_t commit) const {
    std::ofstream log(options_.log);
    for (const char* id : {"a", "b"}) {
      log << nlohmann::ordered_json({{"commit", commit},
                                     {"id", id},
                                     {"samples", kSamples},
                                     {"dense", nlohmann::json::array()},
                                     {"probability", predictions_},
                                     {"inputs", {{{"keys", keys_}, {"offsets", offsets_}}}}})
          << "\n";
    }
  }

  uint64_t commit_ = 0;
  std::vector<Key> keys_;
  std::vector<uint32_t> offsets_ = std::vector<uint32_t>(kSlots * kSamples + 1);
  std::vector<float> predictions_ = std::vector<float>(kSamples);
  VerifyOnlineOptions options_;
};

TEST_F(VerifiedOnline, PredictionsAreThoseOfTheirCommit) {
  WriteLog(commit_);
  const auto result = VerifyOnline(options_, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outcome(), absl::OkStatus());
  EXPECT_EQ(result->requests, 2);
  EXPECT_EQ(result->samples, 2 * kSamples);
  EXPECT_THAT(result->commits, ElementsAre(commit_));
}

TEST_F(VerifiedOnline, ADifferenceIsNamed) {
  predictions_[1] += 1e-6f;
  WriteLog(commit_);
  const auto result = VerifyOnline(options_, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->differences, 2);
  EXPECT_EQ(result->outcome().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(result->first, HasSubstr("line 1 (request 'a', commit"));
  EXPECT_THAT(result->first, HasSubstr("sample 1"));
  EXPECT_EQ(JsonOf(*result)["first_difference"], result->first);
}

TEST_F(VerifiedOnline, CommitsThatAreGoneAreNotChecked) {
  WriteLog(commit_ + 7);
  const auto result = VerifyOnline(options_, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->missing, ElementsAre(commit_ + 7));
  EXPECT_EQ(result->outcome().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(VerifiedOnline, ALogThatNamesNoFolderNeedsOne) {
  WriteLog(commit_);
  options_.serving = "";
  EXPECT_EQ(OptionsOf(VerifyOnline(options_, {}).status()), std::vector<std::string>{"serving"});
}

}  // namespace
}  // namespace cistern::app
