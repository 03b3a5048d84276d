// Formatting and parsing of positions, and the settings that a resumed run may change.
#include "worker/train/position.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "absl/strings/match.h"
#include "test/worker/model/config/config_parsing.h"

namespace cistern {
namespace {

using testing::HasSubstr;
using Json = nlohmann::ordered_json;

// A position whose fields all have distinct values.
Position FullPosition() {
  Position p;
  p.steps_before = 1;
  p.iterations = 2;
  p.samples = std::numeric_limits<uint64_t>::max();
  p.epochs = 4;
  p.passes = 5;
  p.cursor = {{6, 7, {28, 29}, "{\"source\":\"a\"}"}, 8, 9, 10, 12, 11};
  p.data_samples = 30;
  p.left_streams = {{"\"clicks\"", "{}"}};
  p.product_kernels = {{"2 x 3 by 3 x 4", "1f 2"}};
  p.epoch_ended = true;
  p.pass_rows = 13;
  p.plateau = {true, 0.1, 0.2, 14};
  p.loss = 0.3;
  p.since_train_line = {0.4, 15};
  p.since_pass_line = {0.5, 16};
  p.pass_score = PassScore{{0.71, 0.81, {{"ne", 0.51, "", false}}}, 31, 0.02, 1.1};
  p.stream_share = StreamShare{0.04, 32.5, 3.25, true};
  p.epoch_samples = 0.6;
  p.score = {0.7, 0.8, {}};
  p.score.metrics = {
      {"ne", 0.5, "", false}, {"copc", std::nullopt, "", false}, {"gauc_groups", 12, "", true}};
  p.scored_iteration = 17;
  p.best = BestEpoch{18, {0.9, 0.65, {}}};
  p.skipped_steps = 26;
  p.loss_scale = {32768, 27};
  p.stopped_by = report::StopReason::kAuc;
  p.finished = RunEnd{{22, 23, 24, 25, 0.35, {0.85, 0.95, {}}, report::StopReason::kPatience},
                      {19, 20, 21, 0.75}};
  p.config = {{"solver.batchsize", "4096"}, {"layers[1].name", "\"deep\""}};
  return p;
}

TEST(Position, SurvivesARoundTrip) {
  for (const Position& position : {Position(), FullPosition()}) {
    const auto parsed = ParsePosition(FormatPosition(position));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, position);
  }
}

TEST(Position, RefusesStepsAndBatchesThatNoRunReaches) {
  Position position = FullPosition();
  position.iterations = uint64_t{1} << 60;
  EXPECT_TRUE(absl::IsDataLoss(ParsePosition(FormatPosition(position)).status()));
  position = FullPosition();
  position.steps_before = uint64_t{1} << 60;
  EXPECT_TRUE(absl::IsDataLoss(ParsePosition(FormatPosition(position)).status()));
  position = FullPosition();
  position.cursor.batches_done = position.cursor.pass_batches;
  EXPECT_TRUE(absl::IsDataLoss(ParsePosition(FormatPosition(position)).status()));
}

TEST(Position, FloatsKeepTheirBits) {
  std::vector<double> values = {
      0.1, -0.0, 1e308, 5e-324, 1.0 / 3, 123456789.123456789, std::numeric_limits<double>::max()};
  std::mt19937_64 random(1);
  while (values.size() < 2000) {
    const double x = std::bit_cast<double>(random());
    if (std::isfinite(x)) values.push_back(x);
  }
  for (const double x : values) {
    Position position;
    position.since_train_line.sum = x;
    position.score.auc = x;
    const auto parsed = ParsePosition(FormatPosition(position));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(std::bit_cast<uint64_t>(parsed->since_train_line.sum), std::bit_cast<uint64_t>(x));
    EXPECT_EQ(std::bit_cast<uint64_t>(*parsed->score.auc), std::bit_cast<uint64_t>(x));
  }
}

std::string ErrorOfText(const std::string& text) {
  const auto parsed = ParsePosition(text);
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kDataLoss) << text;
  return std::string(parsed.status().message());
}

TEST(Position, RefusesTextThatIsNotAPosition) {
  EXPECT_THAT(ErrorOfText(""), HasSubstr("not a JSON object"));
  EXPECT_THAT(ErrorOfText("[1]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(ErrorOfText("{}"), HasSubstr("'format' is not present"));
  EXPECT_THAT(ErrorOfText("{\"format\": 2}"),
              HasSubstr("has format 2; this version reads format 1"));
}

TEST(Position, RefusesStreamsOfVersionsThatTookOtherSamples) {
  Json older = Json::parse(FormatPosition(FullPosition()));
  ASSERT_TRUE(older["cursor"].contains("stream_samples"));
  older["cursor"]["streams"] = older["cursor"]["stream_samples"];
  older["cursor"].erase("stream_samples");
  EXPECT_THAT(ErrorOfText(older.dump()), HasSubstr("finish the epoch with the version"));
}

// Removes, replaces and adds fields, in the object and in its nested objects.
TEST(Position, RefusesEveryFieldThatIsMissingUnknownOrOfAnotherType) {
  const Json whole = Json::parse(FormatPosition(FullPosition()));
  const auto is_metrics = [](const Json::json_pointer& at) {
    return !at.empty() && at.back() == "metrics";
  };
  // Fields added after the format: omitted when empty.
  const std::set<std::string> kYounger = {
      "metrics", "skipped_steps", "loss_scale", "good_steps",      "stream_samples", "data_samples",
      "slice",   "left_streams",  "pass_score", "product_kernels", "stream_share"};
  // Objects whose members are not fields: any name is one.
  const std::set<Json::json_pointer> kMaps = {Json::json_pointer("/config"),
                                              Json::json_pointer("/left_streams"),
                                              Json::json_pointer("/product_kernels")};
  int fields = 0;
  const std::function<void(const Json::json_pointer&)> spoil = [&](const Json::json_pointer& at) {
    for (const auto& item : whole[at].items()) {
      const Json::json_pointer field = at / item.key();
      if (field == Json::json_pointer("/format")) continue;
      const bool may_be_absent = kYounger.count(item.key()) > 0 || is_metrics(at);
      if (kMaps.count(at) == 0 && !may_be_absent) {
        Json cut = whole;
        cut[at].erase(item.key());
        EXPECT_THAT(ErrorOfText(cut.dump()), HasSubstr(item.key() + "' is not present"));
      }
      for (const Json& other : {Json(-1), Json("x"), Json::array(), Json(true)}) {
        Json changed = whole;
        changed[field] = other;
        if (other.type() == whole[field].type() ||
            (other.is_number() && (whole[field].is_number_float() || is_metrics(at)))) {
          continue;
        }
        EXPECT_THAT(ErrorOfText(changed.dump()), HasSubstr(item.key())) << changed;
      }
      ++fields;
      if (item.value().is_object()) spoil(field);
    }
    if (kMaps.count(at) > 0 || is_metrics(at)) return;
    Json grown = whole;
    grown[at]["surprise"] = 1;
    EXPECT_THAT(ErrorOfText(grown.dump()), HasSubstr("surprise' is not known to this version"));
  };
  spoil(Json::json_pointer());
  EXPECT_GT(fields, 40);
}

TEST(Position, NamesWhatEndedTheRun) {
  Json json = Json::parse(FormatPosition(FullPosition()));
  EXPECT_EQ(json["stopped_by"], "auc");
  EXPECT_EQ(json["finished"]["stopped_by"], "patience");
  EXPECT_EQ(Json::parse(FormatPosition(Position()))["stopped_by"], "");
  json["stopped_by"] = "boredom";
  EXPECT_THAT(ErrorOfText(json.dump()), HasSubstr("'stopped_by' is not known to this version"));
}

// Older versions know no other metrics; their positions can be read, and they can read this one.
TEST(Position, HoldsOtherMetricsOnlyIfAnyExist) {
  Position position = FullPosition();
  position.pass_score->score.metrics.clear();
  EXPECT_NE(FormatPosition(position).find("\"metrics\":{\"ne\":0.5,\"copc\":null,"),
            std::string::npos);
  position.score.metrics.clear();
  EXPECT_EQ(FormatPosition(position).find("metrics"), std::string::npos);
  EXPECT_EQ(ParsePosition(FormatPosition(position)).value(), position);
}

std::string Difference(const std::vector<std::string>& overrides) {
  Position position;
  position.config = TrainingValues(model::ParseOrDie());
  const absl::Status status = CheckSameTraining(position, model::ParseOrDie(overrides));
  EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(Position, AllowsAResumeWithOtherLimitsAndReports) {
  EXPECT_EQ(Difference({}), "");
  EXPECT_EQ(Difference({"solver.max_iter=12345", "solver.display=3", "solver.eval_interval=77",
                        "solver.snapshot=5", "layers.0.eval_source=elsewhere",
                        "solver.eval_metrics=[\"AUC:0.9\",\"GAUC\"]",
                        "cistern.gauc_slot={\"input\":\"data1\",\"slot\":0}",
                        "cistern.commit_every=4", "cistern.patience=9"}),
            "");
}

TEST(Position, NamesTheFirstDifferenceInTraining) {
  EXPECT_THAT(Difference({"solver.batchsize=99"}),
              HasSubstr("model.json: solver.batchsize is 99, but the run to resume has 8"));
  EXPECT_THAT(Difference({"solver.seed=8"}), HasSubstr("solver.seed is 8"));
  EXPECT_THAT(Difference({"layers.0.source=other.txt"}), HasSubstr("\"other.txt\""));
  EXPECT_THAT(Difference({"layers.fc1.fc_param.num_output=3"}),
              HasSubstr(".fc_param.num_output is 3"));
  EXPECT_THAT(Difference({"cistern.shuffle=true"}), HasSubstr("cistern.shuffle is true"));
  EXPECT_THAT(Difference({"optimizer.adam_hparam.learning_rate=0.5"}),
              HasSubstr("learning_rate is 0.5"));
}

// A run of a version without cistern.embeddings.NAME.gradient moved rows by that of the mean.
TEST(Position, ContinuesOlderCtrRunsWithTheirGradient) {
  Position position;
  position.config = TrainingValues(model::ParseOrDie({"cistern.embeddings.deep.accessor=ctr"}));
  ASSERT_EQ(position.config.erase("cistern.embeddings.deep.gradient"), 1u);
  EXPECT_THAT(
      std::string(
          CheckSameTraining(position, model::ParseOrDie({"cistern.embeddings.deep.accessor=ctr"}))
              .message()),
      HasSubstr("cistern.embeddings.deep.gradient is \"sum\", but the run to resume has \"mean\""));
  EXPECT_TRUE(
      CheckSameTraining(position, model::ParseOrDie({"cistern.embeddings.deep.accessor=ctr",
                                                     "cistern.embeddings.deep.gradient=mean"}))
          .ok());
}

TEST(Position, ContinuesRunsThatAreOlderThanAKey) {
  Position position;
  position.config = TrainingValues(model::ParseOrDie({}));
  ASSERT_EQ(position.config.erase("cistern.calibrate"), 1u);
  size_t biases = 0;
  for (auto it = position.config.begin(); it != position.config.end();) {
    const bool is_bias = absl::EndsWith(it->first, ".use_bias");
    biases += is_bias ? 1 : 0;
    it = is_bias ? position.config.erase(it) : std::next(it);
  }
  EXPECT_GT(biases, 0u);
  EXPECT_EQ(CheckSameTraining(position, model::ParseOrDie({})), absl::OkStatus());
  EXPECT_THAT(
      std::string(
          CheckSameTraining(position, model::ParseOrDie({"cistern.calibrate=0.5"})).message()),
      HasSubstr("cistern.calibrate is 0.5, but the run to resume has 0"));
}

// Data of a new day has a share of positives of its own.
TEST(Position, MoreDataMayHaveAnotherShareOfPositives) {
  Position position;
  position.config = TrainingValues(model::ParseOrDie({"cistern.calibrate=0.5"}));
  const model::ModelConfig next =
      model::ParseOrDie({"cistern.calibrate=0.25", "cistern.calibrate_exact=true"});
  EXPECT_FALSE(CheckSameTraining(position, next).ok());
  EXPECT_EQ(CheckSameTraining(position, next, /*more=*/true), absl::OkStatus());
}

TEST(RunLimits, DecideWhetherAFinishedRunContinues) {
  const RunLimits epochs{0, 5, 2, 1.0};
  EXPECT_FALSE(epochs.AllowsMoreThan(epochs));
  EXPECT_FALSE((RunLimits{0, 4, 2, 1.0}).AllowsMoreThan(epochs));
  EXPECT_FALSE((RunLimits{0, 5, 1, 2.0}).AllowsMoreThan(epochs));
  EXPECT_TRUE((RunLimits{0, 6, 2, 1.0}).AllowsMoreThan(epochs));
  EXPECT_TRUE((RunLimits{0, 5, 3, 1.0}).AllowsMoreThan(epochs));
  EXPECT_TRUE((RunLimits{0, 5, 0, 1.0}).AllowsMoreThan(epochs));
  EXPECT_TRUE((RunLimits{100, 0, 2, 1.0}).AllowsMoreThan(epochs));
  EXPECT_TRUE((RunLimits{0, 5, 2, 0.9}).AllowsMoreThan({0, 5, 2, 0.8}));
  EXPECT_FALSE((RunLimits{0, 5, 2, 0.7}).AllowsMoreThan({0, 5, 2, 0.8}));
}

}  // namespace
}  // namespace cistern
