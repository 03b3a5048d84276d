#include "cli/command/predict_text.h"

#include <numeric>

#include "absl/time/clock.h"
#include "app/run/run_recipe.h"
#include "cli/command/predict_serving.h"
#include "cli/command/prediction_table.h"
#include "cli/command/shared_flags.h"
#include "cli/terminal/exit_code.h"
#include "serve/predictor/open_predictor.h"
#include "serve/predictor/predict_data.h"
#include "worker/data/format/label_check.h"
#include "worker/data/prepare/unseen_values.h"
#include "worker/data/recipe/text_samples.h"

namespace cistern {
namespace {

// Where the recipe is: --recipe, else in the run folder of the model.
absl::StatusOr<FoundRecipe> RecipeOf(const EvaluateFlags& flags) {
  LocalFileSystem files;
  if (!flags.recipe.empty()) return ReadRecipe(files, flags.recipe);
  std::optional<FoundRecipe> found;
  if (!flags.model_dir.empty()) {
    CISTERN_ASSIGN_OR_RETURN(found, app::RecipeOfModel(flags.model_dir));
  }
  if (found) return *std::move(found);
  return WithFix(
      absl::InvalidArgumentError(absl::StrCat(
          "--input: ", flags.model_dir.empty() ? "no run folder was named" : flags.model_dir,
          flags.model_dir.empty() ? "" : " holds no recipe", ", which says how text is encoded")),
      "add --recipe DIR (the data set of the training), or convert the text and use --data");
}

// The rows as the job reads them, with the columns to keep.
struct TextRows {
  std::shared_ptr<const OwnedEncoder> encoder;
  TextInput input;
  KeptColumns kept;
  TextFindings findings;
  DataSetOptions data;  // for the check of labels

  bool is_empty() const { return findings.complete && findings.rows == 0; }

  absl::StatusOr<std::unique_ptr<SampleReader>> Open() {
    absl::StatusOr<std::unique_ptr<SampleReader>> reader =
        OpenTextSamples(encoder, input, data.shape.slot_nums, &kept, &findings);
    if (absl::IsNotFound(reader.status())) {  // a wrong argument, not bad data
      return AddContext(MissingIsUsage(reader.status()), "--input");
    }
    CISTERN_RETURN_IF_ERROR(reader.status());
    findings = {};
    return OpenWithLabels(*std::move(reader), data);
  }
};

absl::StatusOr<std::unique_ptr<TextRows>> RowsOf(const EvaluateFlags& flags,
                                                 std::shared_ptr<const OwnedEncoder> encoder,
                                                 const ModelConfig& config) {
  auto rows = std::make_unique<TextRows>();
  rows->encoder = std::move(encoder);
  rows->input = flags.text;
  rows->data.shape = ShapeOf(config.data);
  rows->data.labels = LabelRule::kProbabilityOrNone;
  const absl::Status fits =
      CheckRecipeShape(rows->encoder->recipe(), rows->data.shape, config.solver.wide_keys);
  if (!fits.ok()) return AddContext(fits, config.path);
  return rows;
}

// Writes the table, row by row, as predictions come.
class TableWriter {
 public:
  TableWriter(const EvaluateFlags& flags, const ModelConfig& config, KeptColumns& kept)
      : flags_(flags), label_dim_(config.data.label_dim), kept_(kept) {}

  absl::Status Add(absl::Span<const float> labels, absl::Span<const float> predictions) {
    if (table_ == nullptr) CISTERN_RETURN_IF_ERROR(Create());
    for (const float label : labels) labeled_ |= label > kNoLabelBelow;
    for (size_t i = 0; i < predictions.size(); i += label_dim_) {
      CISTERN_RETURN_IF_ERROR(table_->Append(kept_.Take(), predictions.subspan(i, label_dim_)));
    }
    return absl::OkStatus();
  }
  absl::Status Close() {
    if (table_ == nullptr) CISTERN_RETURN_IF_ERROR(Create());
    return table_->Close();
  }
  // Whether any sample has a label.
  bool labeled() const { return labeled_; }

 private:
  absl::Status Create() {
    CISTERN_ASSIGN_OR_RETURN(
        table_, PredictionTable::Create(files_, flags_.output, flags_.text.keep, label_dim_));
    return absl::OkStatus();
  }

  const EvaluateFlags& flags_;
  const size_t label_dim_;
  KeptColumns& kept_;
  LocalFileSystem files_;
  std::unique_ptr<PredictionTable> table_;
  bool labeled_ = false;
};

// A header line without rows is an empty result, not an error: a nightly job may have nothing to
// do.
absl::StatusOr<Report> ReportNoRows(TableWriter& writer, const std::string& output,
                                    Console& console) {
  CISTERN_RETURN_IF_ERROR(writer.Close());
  console.Say("note: the input holds no row, so the output has a header line only");
  Report report;
  report.json["samples"] = 0;
  report.json["output"] = output;
  report.text = absl::StrCat("samples      0\noutput       ", output, "\n");
  return report;
}

Report ReportOf(const EvalSummary& summary, bool labeled, const std::string& output) {
  Report report = labeled ? cistern::ReportOf(summary) : Report();
  if (!labeled) {
    report.json["samples"] = summary.samples;
    report.json["unseen_keys"] = summary.unseen_keys;
    report.json["seconds"] = summary.seconds;
    report.text = absl::StrCat("samples      ", summary.samples, " (without labels)\nunseen keys  ",
                               summary.unseen_keys, "\n");
  }
  report.json["output"] = output;
  absl::StrAppend(&report.text, "output       ", output, "\n");
  return report;
}

// Says what predictions do not show: text that the model has never seen.
void SayFindings(const TextRows& rows, Console& console) {
  const TextFindings& findings = rows.findings;
  if (!findings.not_utf8.empty()) {
    console.Say(absl::StrCat("note: ", findings.not_utf8,
                             " holds text that is not UTF-8 (Latin-1?). If the training data was "
                             "UTF-8, its words have other keys: iconv -f latin1 -t utf8"));
  }
  ConvertSummary summary;
  const std::vector<Recipe::Slot>& slots = rows.encoder->recipe().slots;
  for (size_t i = 0; i < slots.size() && i < findings.rare.size(); ++i) {
    if (slots[i].separator || !slots[i].cross.empty()) continue;  // several values a row
    ConvertSummary::Slot& slot = summary.slots.emplace_back();
    slot.column = slots[i].column;
    slot.values = findings.rows - findings.missing[i];
    slot.rare = findings.rare[i];
  }
  for (const std::string& sentence : UnseenValues(summary, nullptr)) {
    console.Say("note: " + sentence);
  }
}

absl::StatusOr<Report> PredictWithFolder(const EvaluateFlags& flags, Console& console) {
  CISTERN_RETURN_IF_ERROR(CheckServingFlags(flags));
  const absl::Time start = absl::Now();
  PredictorOptions options;
  options.threads = 1;
  options.poll_ms = 0;
  options.max_samples = std::max<uint64_t>(1, flags.batch);
  options.max_keys = SIZE_MAX;
  const auto opened = OpenPredictor(flags.model.config, options);
  if (!opened.ok()) return WithKind(opened.status(), ErrorKind::kBadCheckpoint);
  Predictor& predictor = **opened;
  std::shared_ptr<const OwnedEncoder> encoder = predictor.encoder();
  if (encoder == nullptr) {
    return WithFix(absl::InvalidArgumentError(absl::StrCat(
                       "--input: ", flags.model.config,
                       " was exported without a recipe, which says how text is encoded")),
                   "export it again with cistern export serving ... --recipe DIR");
  }
  CISTERN_ASSIGN_OR_RETURN(const ModelConfig config, ReadServedConfig(flags.model.config));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<TextRows> rows,
                           RowsOf(flags, std::move(encoder), config));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<SampleReader> reader, rows->Open());
  TableWriter writer(flags, config, rows->kept);
  const absl::StatusOr<PredictedData> done =
      PredictReader(predictor, config, *reader, options.max_samples,
                    [&](absl::Span<const float> labels, absl::Span<const float> predictions) {
                      return writer.Add(labels, predictions);
                    });
  if (rows->is_empty()) return ReportNoRows(writer, flags.output, console);
  CISTERN_RETURN_IF_ERROR(done.status());
  CISTERN_RETURN_IF_ERROR(writer.Close());
  SayFindings(*rows, console);
  EvalSummary summary = SummaryOf(*done);
  summary.seconds = absl::ToDoubleSeconds(absl::Now() - start);
  Report report = ReportOf(summary, writer.labeled(), flags.output);
  report.json["version"] = predictor.version().folder;
  return report;
}

}  // namespace

absl::StatusOr<Report> RunPredictText(const EvaluateFlags& flags, Console& console) {
  if (IsServingFolder(flags.model.config)) return PredictWithFolder(flags, console);
  CISTERN_ASSIGN_OR_RETURN(ModelConfig config, ReadModelArgument(flags.model));
  CISTERN_ASSIGN_OR_RETURN(const JobOptions options, app::JobOptionsOf(flags.model));
  CISTERN_ASSIGN_OR_RETURN(const FoundRecipe recipe, RecipeOf(flags));
  absl::StatusOr<std::shared_ptr<const OwnedEncoder>> encoder =
      OwnedEncoder::Open(recipe.recipe, recipe.vocabulary_path());
  if (!encoder.ok()) return WithKind(encoder.status(), ErrorKind::kBadCheckpoint);
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<TextRows> rows,
                           RowsOf(flags, *std::move(encoder), config));
  CISTERN_RETURN_IF_ERROR(app::CheckGraph(flags, config));
  CISTERN_ASSIGN_OR_RETURN(
      const std::unique_ptr<app::FleetSession> fleet,
      app::OpenTrainedFleet(flags.model, &config, flags.model_dir, NotesOn(console)));
  TableWriter writer(flags, config, rows->kept);
  const absl::StatusOr<EvalSummary> summary = PredictSamples(
      config, fleet->client(), [&] { return rows->Open(); },
      [&](absl::Span<const float> labels, absl::Span<const float> predictions) {
        return writer.Add(labels, predictions);
      },
      options);
  if (!summary.ok()) {
    if (rows->is_empty()) return ReportNoRows(writer, flags.output, console);
    return app::WithFleetFix(summary.status(), flags.model.fleet);
  }
  CISTERN_RETURN_IF_ERROR(writer.Close());
  SayFindings(*rows, console);
  return ReportOf(*summary, writer.labeled(), flags.output);
}

}  // namespace cistern
