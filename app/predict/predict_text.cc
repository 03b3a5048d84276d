#include "app/predict/predict_text.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "app/data/table_file.h"
#include "app/predict/predict_serving.h"
#include "app/predict/prediction_table.h"
#include "app/run/run_recipe.h"
#include "serve/predictor/open_predictor.h"
#include "serve/predictor/predict_data.h"
#include "worker/data/format/label_check.h"
#include "worker/data/prepare/unseen_values.h"
#include "worker/data/recipe/part_columns.h"
#include "worker/data/recipe/table_files.h"
#include "worker/data/recipe/text_samples.h"

namespace cistern::app {
namespace {

// Where the recipe is: options.recipe, else in the run folder of the model.
absl::StatusOr<data::FoundRecipe> RecipeOf(const PredictOptions& options) {
  LocalFileSystem files;
  if (!options.recipe.empty()) return data::ReadRecipe(files, options.recipe);
  std::optional<data::FoundRecipe> found;
  if (!options.model_dir.empty()) {
    CISTERN_ASSIGN_OR_RETURN(found, RecipeOfModel(options.model_dir));
  }
  if (found) return *std::move(found);
  if (options.model_dir.empty() && options.model.fleet.servers.empty()) {
    return WithFix(WithOptions(absl::InvalidArgumentError(absl::StrCat(
                                   "no trained model was named: ", options.model.config,
                                   " describes only its shape")),
                               {"model", "servers"}),
                   "name the folder of a run in place of the model file");
  }
  return WithFix(
      WithOptions(absl::InvalidArgumentError(absl::StrCat(
                      options.model_dir.empty() ? "no run folder was named" : options.model_dir,
                      options.model_dir.empty() ? "" : " holds no recipe",
                      ", which says how text is encoded")),
                  {"input", "recipe"}),
      "name the recipe (the data set of the training), or convert the text and predict that");
}

// The rows as the job reads them, with the columns to keep.
struct TextRows {
  std::shared_ptr<const data::OwnedEncoder> encoder;
  data::TextInput input;
  data::KeptColumns kept;
  data::TextFindings findings;
  data::DataSetOptions data;  // for the check of labels

  bool is_empty() const { return findings.complete && findings.rows == 0; }

  absl::StatusOr<std::unique_ptr<data::SampleReader>> Open() {
    absl::StatusOr<std::unique_ptr<data::SampleReader>> reader =
        data::OpenTextSamples(encoder, input, data.shape.slot_nums, &kept, &findings);
    if (absl::IsNotFound(reader.status())) {  // a wrong argument, not bad data
      return WithOptions(WithCode(reader.status(), absl::StatusCode::kInvalidArgument), {"input"});
    }
    CISTERN_RETURN_IF_ERROR(reader.status());
    findings = {};
    return data::OpenWithLabels(*std::move(reader), data);
  }
};

// Refuses a column that is no feature of the model, so that a misspelled name is not overlooked.
absl::Status CheckAdded(const data::Recipe& recipe, const std::vector<std::string>& added) {
  const std::vector<std::string> features = data::FeatureColumns(recipe);
  const std::vector<std::string> wholes = data::WholesOf(features, recipe.layout.columns);
  for (const std::string& name : added) {
    if (std::count(features.begin(), features.end(), name) > 0) continue;
    if (std::count(wholes.begin(), wholes.end(), name) > 0) continue;
    return WithOptions(
        absl::InvalidArgumentError(absl::StrCat("the model reads no column '", name, "'; it reads ",
                                                absl::StrJoin(wholes, ", "))),
        {"add_column"});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<TextRows>> RowsOf(const PredictOptions& options,
                                                 std::shared_ptr<const data::OwnedEncoder> encoder,
                                                 const model::ModelConfig& config) {
  auto rows = std::make_unique<TextRows>();
  rows->encoder = std::move(encoder);
  rows->input = options.text;
  CISTERN_RETURN_IF_ERROR(CheckAdded(rows->encoder->recipe(), options.text.add_columns));
  rows->data.shape = ShapeOf(config.data);
  rows->data.labels = data::LabelRule::kProbabilityOrNone;
  const absl::Status fits =
      data::CheckRecipeShape(rows->encoder->recipe(), rows->data.shape, config.solver.wide_keys);
  if (!fits.ok()) return AddContext(fits, config.path);
  return rows;
}

// Where predictions go, in the order of the rows: to a caller, and to the table if it has a name.
class Predictions {
 public:
  // options, visit: outlive this. visit may be null.
  Predictions(const PredictOptions& options, const OnPredictions& visit)
      : options_(options), visit_(visit) {}

  // Called once, before the first batch. kept: has the kept columns of each row that is added.
  void Begin(const model::ModelConfig& config, data::KeptColumns& kept) {
    label_dim_ = config.data.label_dim;
    label_names_ = config.data.label_names;
    kept_ = &kept;
  }
  absl::Status Add(absl::Span<const float> labels, absl::Span<const float> predictions) {
    CISTERN_RETURN_IF_ERROR(Create());
    labeled_ = labeled_ || std::any_of(labels.begin(), labels.end(),
                                       [](float label) { return label > data::kNoLabelBelow; });
    for (size_t i = 0; i < predictions.size(); i += label_dim_) {
      const std::vector<std::string> kept = kept_->Take();
      if (table_ == nullptr) continue;
      CISTERN_RETURN_IF_ERROR(table_->Append(kept, predictions.subspan(i, label_dim_)));
    }
    return visit_ ? visit_(labels, predictions) : absl::OkStatus();
  }
  absl::Status Close() {
    CISTERN_RETURN_IF_ERROR(Create());
    return table_ == nullptr ? absl::OkStatus() : table_->Close();
  }
  // Whether any sample has a label.
  bool labeled() const { return labeled_; }

 private:
  absl::Status Create() {
    if (table_ != nullptr || options_.output.empty()) return absl::OkStatus();
    CISTERN_ASSIGN_OR_RETURN(
        table_, PredictionTable::Create(files_, options_.output, options_.text.keep, label_dim_,
                                        label_names_));
    return absl::OkStatus();
  }

  const PredictOptions& options_;
  const OnPredictions& visit_;
  size_t label_dim_ = 1;
  std::vector<std::string> label_names_;
  data::KeptColumns* kept_ = nullptr;
  LocalFileSystem files_;
  std::unique_ptr<PredictionTable> table_;
  bool labeled_ = false;
};

// A header line without rows is an empty result, not an error: a nightly job may have nothing to
// do.
absl::StatusOr<PredictResult> NoRows(Predictions& to, const OnNote& note) {
  CISTERN_RETURN_IF_ERROR(to.Close());
  note("note: the input holds no row, so there is no prediction");
  PredictResult result;
  result.has_rows = false;
  return result;
}

// Says what predictions do not show: text that the model has never seen.
void NoteFindings(const TextRows& rows, const OnNote& note) {
  const data::TextFindings& findings = rows.findings;
  if (!findings.not_utf8.empty()) {
    note(absl::StrCat("note: ", findings.not_utf8,
                      " holds text that is not UTF-8 (Latin-1?). If the training data was "
                      "UTF-8, its words have other keys: iconv -f latin1 -t utf8"));
  }
  data::ConvertSummary summary;
  summary.odd_fields = findings.odd_fields;
  const std::vector<data::Recipe::Slot>& slots = rows.encoder->recipe().slots;
  for (size_t i = 0; i < slots.size() && i < findings.rare.size(); ++i) {
    if (!findings.spellings[i].empty()) {
      note("note: " + findings.spellings[i]);
      continue;
    }
    if (slots[i].separator || !slots[i].cross.empty()) continue;  // several values a row
    data::ConvertSummary::Slot& slot = summary.slots.emplace_back();
    slot.column = slots[i].column;
    slot.values = findings.rows - findings.missing[i];
    slot.rare = findings.rare[i];
  }
  summary.samples = findings.rows;
  const std::vector<data::Recipe::Dense>& dense = rows.encoder->recipe().dense;
  for (size_t i = 0; i < dense.size() && i < findings.beyond.size(); ++i) {
    summary.dense.push_back({.column = dense[i].column, .beyond = findings.beyond[i]});
  }
  for (const std::string& sentence : data::UnseenValues(summary, nullptr)) {
    note("note: " + sentence);
  }
}

bool IsParquet(const std::string& path) {
  return absl::EndsWithIgnoreCase(path, ".parquet");
}

// The format of the data sets that the model reads.
absl::StatusOr<data::DataFormat> FormatOf(const EvaluateOptions& options) {
  if (IsServingFolder(options.model.config)) {
    CISTERN_ASSIGN_OR_RETURN(const model::ModelConfig config,
                             serve::ReadServedConfig(options.model.config));
    return config.data.format;
  }
  EvaluateOptions of_run = options;
  CISTERN_RETURN_IF_ERROR(TakeRun(&of_run));
  CISTERN_ASSIGN_OR_RETURN(const model::ModelConfig config, ReadModelConfig(of_run.model));
  return config.data.format;
}

absl::Status CheckNoTextTable(const std::vector<std::string>& data) {
  for (const std::string& path : data) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error) || IsParquet(path) || !IsTable(path)) {
      continue;
    }
    return WithFix(WithOptions(absl::InvalidArgumentError(
                                   absl::StrCat(path, ": is a table, not converted data")),
                               {"data"}),
                   "name tables or converted data sets, not both");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status TakeTables(PredictOptions* options) {
  const std::vector<std::string>& data = options->data;
  if (data.empty() || !options->text.files.empty()) return absl::OkStatus();
  if (!std::all_of(data.begin(), data.end(), IsTable)) return CheckNoTextTable(data);
  CISTERN_ASSIGN_OR_RETURN(std::vector<std::string> files, data::TableFiles(data));
  if (std::any_of(files.begin(), files.end(), IsParquet)) {
    CISTERN_ASSIGN_OR_RETURN(const data::DataFormat format, FormatOf(*options));
    if (format == data::DataFormat::kParquet) return absl::OkStatus();
  }
  options->text.files = std::move(files);
  options->data.clear();
  return absl::OkStatus();
}

absl::StatusOr<PredictResult> PredictRows(const PredictOptions& given, const OnPredictions& visit,
                                          const OnNote& note) {
  Predictions to(given, visit);
  PredictOptions options = given;
  CISTERN_RETURN_IF_ERROR(TakeRun(&options));
  CISTERN_ASSIGN_OR_RETURN(model::ModelConfig config, ReadModelConfig(options.model));
  CISTERN_ASSIGN_OR_RETURN(const JobOptions job, JobOptionsOf(options.model));
  CISTERN_ASSIGN_OR_RETURN(const data::FoundRecipe recipe, RecipeOf(options));
  absl::StatusOr<std::shared_ptr<const data::OwnedEncoder>> encoder =
      data::OwnedEncoder::Open(recipe.recipe, recipe.vocabulary_path());
  if (!encoder.ok()) return WithKind(encoder.status(), ErrorKind::kBadCheckpoint);
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<TextRows> rows,
                           RowsOf(options, *std::move(encoder), config));
  CISTERN_RETURN_IF_ERROR(CheckGraph(options, config));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<FleetSession> fleet,
                           OpenTrainedFleet(options.model, &config, options.model_dir, note));
  to.Begin(config, rows->kept);
  const absl::StatusOr<EvalSummary> summary = PredictSamples(
      config, fleet->client(), [&] { return rows->Open(); },
      [&](absl::Span<const float> labels, absl::Span<const float> predictions) {
        return to.Add(labels, predictions);
      },
      job);
  if (!summary.ok()) {
    if (rows->is_empty()) return NoRows(to, note);
    return WithFleetFix(summary.status(), options.model.fleet);
  }
  CISTERN_RETURN_IF_ERROR(to.Close());
  NoteFindings(*rows, note);
  return PredictResult{*summary, true, to.labeled(), "", 0};
}

absl::StatusOr<PredictResult> PredictServedRows(serve::Predictor& predictor,
                                                const PredictOptions& options,
                                                const OnPredictions& visit, const OnNote& note) {
  Predictions to(options, visit);
  const absl::Time start = absl::Now();
  std::shared_ptr<const data::OwnedEncoder> encoder = predictor.encoder();
  if (encoder == nullptr) {
    return WithFix(
        WithOptions(absl::InvalidArgumentError(absl::StrCat(
                        options.model.config,
                        " was exported without a recipe, which says how text is encoded")),
                    {"input", "export.serving.recipe"}),
        "export it again, with the recipe");
  }
  CISTERN_ASSIGN_OR_RETURN(const model::ModelConfig config,
                           serve::ReadServedConfig(options.model.config));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<TextRows> rows,
                           RowsOf(options, std::move(encoder), config));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<data::SampleReader> reader, rows->Open());
  to.Begin(config, rows->kept);
  const absl::StatusOr<serve::PredictedData> done = serve::PredictReader(
      predictor, config, *reader, predictor.max_samples(),
      [&](absl::Span<const float> labels, absl::Span<const float> predictions) {
        return to.Add(labels, predictions);
      });
  if (rows->is_empty()) return NoRows(to, note);
  CISTERN_RETURN_IF_ERROR(done.status());
  CISTERN_RETURN_IF_ERROR(to.Close());
  NoteFindings(*rows, note);
  PredictResult result{SummaryOf(*done), true, to.labeled(), done->version.folder,
                       done->version.commit};
  result.summary.seconds = absl::ToDoubleSeconds(absl::Now() - start);
  return result;
}

}  // namespace cistern::app
