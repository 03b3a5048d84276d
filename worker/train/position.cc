#include "worker/train/position.h"

#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "common/value/step_clock.h"
#include "worker/model/config/grammar.h"
#include "worker/model/layer/layer_list.h"
#include "worker/train/json_fields.h"

namespace cistern {
namespace {

constexpr uint64_t kPositionFormat = 1;

// The keys that name the data of a run.
constexpr std::array kDataKeys = {"layers[0].source", "layers[0].num_samples", kStreamValue};

// Field lists, for formatting and parsing.
constexpr auto kCursorFields = [](auto& fields, auto& cursor) {
  fields.Value("epoch", cursor.next.epoch);
  fields.Value("sample", cursor.next.sample);
  fields.Value("batches", cursor.batches);
  fields.Value("shuffle_epoch", cursor.shuffle_epoch);
  fields.Value("shuffle_place", cursor.shuffle_place);
  fields.Value("pass_batches", cursor.pass_batches);
  fields.Value("batches_done", cursor.batches_done);
  fields.Later("stream_samples", cursor.next.streams);
  fields.Later("slice", cursor.next.slice);
};

constexpr auto kPlateauFields = [](auto& fields, auto& plateau) {
  fields.Value("seen", plateau.seen);
  fields.Value("best", plateau.best);
  fields.Value("scale", plateau.scale);
  fields.Value("epochs_without_gain", plateau.epochs_without_gain);
};

constexpr auto kLossFields = [](auto& fields, auto& loss) {
  fields.Value("sum", loss.sum);
  fields.Value("count", loss.count);
};

constexpr auto kScoreFields = [](auto& fields, auto& score) {
  fields.Value("auc", score.auc);
  fields.Value("logloss", score.logloss);
  fields.Later("metrics", score.metrics);
};

constexpr auto kPassScoreFields = [](auto& fields, auto& pass) {
  kScoreFields(fields, pass.score);
  fields.Value("samples", pass.samples);
  fields.Value("auc_standard_error", pass.auc_error);
  fields.Value("calibration_ratio", pass.calibration_ratio);
};

constexpr auto kStreamShareFields = [](auto& fields, auto& share) {
  fields.Value("share", share.share);
  fields.Value("samples", share.samples);
  fields.Value("positives", share.positives);
  fields.Value("lacks_label", share.lacks_label);
};

constexpr auto kBestFields = [](auto& fields, auto& best) {
  fields.Value("pass", best.pass);
  kScoreFields(fields, best.score);
};

constexpr auto kLimitFields = [](auto& fields, auto& limits) {
  fields.Value("max_iter", limits.max_iter);
  fields.Value("num_epochs", limits.num_epochs);
  fields.Value("patience", limits.patience);
  fields.Value("auc_threshold", limits.auc_threshold);
};

constexpr auto kEndFields = [](auto& fields, auto& end) {
  fields.Object("limits", end.limits, kLimitFields);
  fields.Value("stopped_by", end.stopped_by);
  fields.Value("iterations", end.iterations);
  fields.Value("samples", end.samples);
  fields.Value("epochs", end.epochs);
  fields.Value("passes", end.passes);
  fields.Value("loss", end.loss);
  kScoreFields(fields, end.score);
};

constexpr auto kPositionFields = [](auto& fields, auto& position) {
  fields.Value("steps_before", position.steps_before);
  fields.Value("iterations", position.iterations);
  fields.Value("samples", position.samples);
  fields.Value("epochs", position.epochs);
  fields.Value("passes", position.passes);
  fields.Object("cursor", position.cursor, kCursorFields);
  fields.Value("epoch_ended", position.epoch_ended);
  fields.Value("pass_rows", position.pass_rows);
  fields.Object("plateau", position.plateau, kPlateauFields);
  fields.Value("loss", position.loss);
  fields.Object("since_train_line", position.since_train_line, kLossFields);
  fields.Object("since_pass_line", position.since_pass_line, kLossFields);
  fields.Value("epoch_samples", position.epoch_samples);
  fields.Object("score", position.score, kScoreFields);
  fields.Value("scored_iteration", position.scored_iteration);
  fields.Object("best", position.best, kBestFields);
  fields.Value("stopped_by", position.stopped_by);
  fields.Object("finished", position.finished, kEndFields);
  fields.Value("config", position.config);
  fields.Later("skipped_steps", position.skipped_steps);
  fields.Later("loss_scale", position.loss_scale.scale);
  fields.Later("good_steps", position.loss_scale.good_steps);
  fields.Later("data_samples", position.data_samples);
  fields.Later("left_streams", position.left_streams);
  fields.Later("product_kernels", position.product_kernels);
  fields.Later("pass_score", position.pass_score, kPassScoreFields);
  fields.Later("stream_share", position.stream_share, kStreamShareFields);
};

// An AUC never exceeds 1, so all thresholds of 1 or more mean no threshold.
double Threshold(const RunLimits& limits) {
  return std::min(limits.auc_threshold, 1.0);
}

// Whether a value is a part of a learning rate, which new data may be trained with.
bool IsRate(const std::string& key) {
  constexpr std::array kRates = {"learning_rate", "warmup_steps", "decay_start",
                                 "decay_steps",   "decay_power",  "end_lr"};
  return std::any_of(kRates.begin(), kRates.end(), [&key](const char* name) {
    return absl::EndsWith(key, absl::StrCat("_hparam.", name));
  });
}

// Keys that later versions added, and what runs of earlier ones did, whose positions do not name
// them. A new key with a Default needs a line here; one with an Otherwise is in no position unless
// the model file has it. scripts/rolling_upgrade.sh finds a key without a line.
struct LaterKey {
  const char* ending;
  const char* before;
};
constexpr LaterKey kLaterKeys[] = {
    {".gradient", "\"mean\""},   // of ctr tables
    {"cistern.calibrate", "0"},  // never
    {"cistern.calibrate_exact", "false"},
    {"].axis", "1"},            // of Concat and Slice
    {".use_bias", "true"},      // of InnerProduct
    {"].factor", "1"},          // of Softmax
    {".projection_dim", "0"},   // of MultiCross
    {".weight_decay", "0.01"},  // of AdamW
};

// The value that a run had whose position does not name `key`.
std::string ValueBefore(const Position& position, const std::string& key) {
  const auto it = position.config.find(key);
  if (it != position.config.end()) return it->second;
  for (const LaterKey& later : kLaterKeys) {
    if (absl::EndsWith(key, later.ending)) return later.before;
  }
  return "no such value";
}

}  // namespace

bool RunLimits::AllowsMoreThan(const RunLimits& others) const {
  const bool other_measure = (max_iter > 0) != (others.max_iter > 0);
  const bool more_patience = others.patience > 0 && (patience == 0 || patience > others.patience);
  return other_measure || max_iter > others.max_iter || num_epochs > others.num_epochs ||
         more_patience || Threshold(*this) > Threshold(others);
}

RunLimits LimitsOf(const model::ModelConfig& config) {
  RunLimits limits;
  limits.max_iter = config.solver.max_iter;
  limits.num_epochs = config.solver.num_epochs;
  limits.patience = config.cistern.patience;
  limits.auc_threshold = config.solver.auc_threshold;
  return limits;
}

namespace {

absl::Status CheckRanges(const Position& position) {
  if (position.steps_before > kMaxSteps || position.iterations > kMaxSteps) {
    return absl::DataLossError(absl::StrCat("it is at step ", position.iterations, " after ",
                                            position.steps_before, "; the limit is ", kMaxSteps));
  }
  const data::PassCursor& cursor = position.cursor;
  if (cursor.pass_batches > 0 && cursor.batches_done >= cursor.pass_batches) {
    return absl::DataLossError(absl::StrCat("it is at batch ", cursor.batches_done,
                                            " of a pass of ", cursor.pass_batches, " batches"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string FormatPosition(const Position& position) {
  FieldWriter fields;
  fields.Value("format", kPositionFormat);
  kPositionFields(fields, position);
  return fields.json().dump();
}

namespace {

// Versions that took samples from streams in proportion to their lengths called the numbers of
// samples "streams". They mean other samples now.
bool HasOlderStreams(const nlohmann::ordered_json& position) {
  const auto cursor = position.find("cursor");
  return cursor != position.end() && cursor->is_object() && cursor->contains("streams");
}

}  // namespace

absl::StatusOr<Position> ParsePosition(const std::string& text) {
  const std::string context = "the worker's position in the manifest";
  const auto json = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::DataLossError(context + " is not a JSON object");
  const auto found = json.find("format");
  if (found != json.end() && found->is_number_unsigned() && *found != kPositionFormat) {
    return absl::DataLossError(absl::StrCat(context, " has format ", found->dump(),
                                            "; this version reads format ", kPositionFormat,
                                            ": resume with the version that wrote it"));
  }
  if (HasOlderStreams(json)) {
    return absl::DataLossError(
        context +
        " is inside an epoch of data in streams, of which an earlier version took other samples "
        "for a batch: finish the epoch with the version that wrote it, or train from the start");
  }
  Position position;
  uint64_t format = 0;
  FieldReader fields(json, "");
  fields.Value("format", format);
  kPositionFields(fields, position);
  CISTERN_RETURN_IF_ERROR(AddContext(fields.Finish(), context));
  CISTERN_RETURN_IF_ERROR(AddContext(CheckRanges(position), context));
  return position;
}

std::map<std::string, std::string> TrainingValues(const model::ModelConfig& config) {
  std::map<std::string, std::string> values(config.values.begin(), config.values.end());
  std::erase_if(values, [](const auto& value) {
    return model::MayChangeOnResume(value.first, model::LayerGrammars());
  });
  return values;
}

absl::Status CheckEpochs(const Position& position, const model::ModelConfig& config) {
  const uint32_t allowed = config.solver.num_epochs;
  if (config.cistern.stream) return absl::OkStatus();  // its slices are no epochs
  if (position.finished || config.solver.max_iter > 0 || allowed == 0) return absl::OkStatus();
  if (position.epoch_ended) return absl::OkStatus();  // nothing is left to train
  const uint64_t begun = uint64_t{position.cursor.next.epoch} + 1;
  if (begun <= allowed) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(config.path, ": the run is already in epoch ",
                                                 begun, "; solver.num_epochs=", allowed,
                                                 " is lower: use ", begun, " or more"));
}

namespace {

bool HasSameSize(const Position& position, uint64_t data_samples) {
  return position.data_samples == 0 || data_samples == 0 || position.data_samples == data_samples;
}

}  // namespace

absl::Status CheckSameSize(const Position& position, const model::ModelConfig& config,
                           uint64_t data_samples) {
  if (HasSameSize(position, data_samples)) return absl::OkStatus();
  return WithOptions(
      absl::InvalidArgumentError(absl::StrCat(
          config.path, ": the training data holds ", data_samples,
          " samples now, but the run to resume was on ", position.data_samples,
          ": restore the data; to train on other data when the run is over, name it as new data")),
      {"more"});
}

bool ReadsSameData(const Position& position, const model::ModelConfig& config,
                   uint64_t data_samples) {
  const std::map<std::string, std::string> values = TrainingValues(config);
  return HasSameSize(position, data_samples) &&
         std::all_of(std::begin(kDataKeys), std::end(kDataKeys), [&](const char* key) {
           const auto before = position.config.find(key), now = values.find(key);
           const bool was = before != position.config.end(), is = now != values.end();
           return was == is && (!was || before->second == now->second);
         });
}

absl::Status CheckSameTraining(const Position& position, const model::ModelConfig& config,
                               bool more) {
  const auto differs = [&](const std::string& key, const std::string& now,
                           const std::string& before) {
    return absl::InvalidArgumentError(
        absl::StrCat(config.path, ": ", key, " is ", now, ", but the run to resume has ", before,
                     ": resume a run with the values that it started with"));
  };
  const std::map<std::string, std::string> values = TrainingValues(config);
  const auto is_data = [](const std::string& key) {
    return std::find(std::begin(kDataKeys), std::end(kDataKeys), key) != std::end(kDataKeys);
  };
  // Data without a recipe says nothing about how it was made. More data can have a recipe that
  // knows more values.
  const auto is_known = [&](const std::string& key) {
    const bool is_share =  // of positives in the data, or of its negatives
        absl::StartsWith(key, "cistern.calibrate") || key == "cistern.eval_negative_rate";
    if (more && (is_data(key) || is_share || IsRate(key) || key == kRecipeValue)) return false;
    return key != kRecipeValue || (values.count(key) > 0 && position.config.count(key) > 0);
  };
  for (const auto& [key, value] : values) {
    if (!is_known(key)) continue;
    const std::string before = ValueBefore(position, key);
    if (before != value) return differs(key, value, before);
  }
  for (const auto& [key, value] : position.config) {
    if (values.count(key) > 0 || !is_known(key) ||
        model::MayChangeOnResume(key, model::LayerGrammars()))
      continue;
    return differs(key, "absent", value);
  }
  return absl::OkStatus();
}

}  // namespace cistern
