#include "app/data/table_model.h"

#include <filesystem>
#include <memory>

#include "app/data/convert_data.h"
#include "app/data/given_tables.h"
#include "app/data/missing_file.h"
#include "app/data/model_size.h"
#include "app/run/run_folder.h"
#include "common/io/new_file.h"
#include "worker/data/prepare/label_heads.h"
#include "worker/data/prepare/pair_gain.h"
#include "worker/data/prepare/row_overlap.h"
#include "worker/data/prepare/sample_weight.h"
#include "worker/data/prepare/unseen_values.h"
#include "worker/data/recipe/recipe_folder.h"
#include "worker/model/config/model_config.h"
#include "worker/model/layer/layer_list.h"

namespace cistern::app {
namespace {

constexpr uint64_t kMinRows = 100;

absl::StatusOr<data::ConvertSummary> ConvertPart(const std::string& out, const std::string& part,
                                                 data::ConvertOptions options,
                                                 const JobCalls& calls) {
  options.recipe = absl::StrCat(out, "/", data::kRecipeFile);
  options.out = absl::StrCat(out, "/data/", part);
  options.overwrite = true;
  std::error_code error;
  std::filesystem::create_directories(out + "/data", error);  // Convert reports what is wrong
  const absl::StatusOr<data::ConvertSummary> summary =
      Convert(options, ReportRows(calls, absl::StrCat("converting ", part)));
  if (!summary.ok()) return MissingIsWrong(summary.status());
  return summary;
}

// Removes what an earlier run in the folder counted in later data.
void RemoveRareCounts(const std::string& out) {
  std::error_code error;
  std::vector<std::filesystem::path> counts;
  for (std::filesystem::directory_iterator entry(out + "/more", error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".rare") counts.push_back(entry->path());
  }
  for (const std::filesystem::path& path : counts) std::filesystem::remove(path, error);
}

// paired: whether values mean more in pairs than alone.
void SaySizes(model::ModelKind kind, const model::TemplateSizes& sizes, uint64_t rarer, bool paired,
              const JobCalls& calls) {
  std::string text = absl::StrCat("note: model ", Word(kind), ", batches of ", sizes.batch,
                                  ", at most ", sizes.epochs, " epochs");
  if (rarer < model::kMinRarerForDeep) {
    absl::StrAppend(
        &text, "; only ", rarer, " rows have the rarer label, so the model is ",
        kind == model::ModelKind::kLr ? "linear" : "small (a linear one, lr, may be better)",
        ", and all epochs are trained");
  } else if (sizes.patience == 0) {
    absl::StrAppend(&text, "; only ", rarer, " rows have the rarer label, so ",
                    kind == model::ModelKind::kLr || kind == model::ModelKind::kFm
                        ? ""
                        : "the network is small, and ",
                    "all epochs are trained");
  } else if (!sizes.batch_norm && kind != model::ModelKind::kLr && kind != model::ModelKind::kFm) {
    absl::StrAppend(&text, "; no batch norm, because ",
                    rarer < model::kMinRarerForNorm
                        ? absl::StrCat("only ", rarer, " rows have the rarer label")
                        : "the rows for each value are few");
  }
  if (paired) {
    absl::StrAppend(&text, "; values mean more in pairs than alone, ",
                    kind == model::ModelKind::kLr ? "which a linear model cannot learn"
                                                  : "so their vectors are trained in full");
  }
  calls.Note(text);
}

// The label that has one class only; null: all have both.
const data::ConvertSummary::Label* LabelOfOneClass(const data::ConvertSummary& summary) {
  for (const data::ConvertSummary::Label& label : summary.labels) {
    if (label.positive == 0 || label.positive == label.known) return &label;
  }
  return nullptr;
}

absl::Status CheckWeights(const data::ConvertSummary& trained, const std::string& path) {
  const std::string fault = WeightFaultOf(trained);
  if (fault.empty()) return absl::OkStatus();
  return WithFix(WithOptions(absl::InvalidArgumentError(
                                 absl::StrCat(path, ": ", fault, ", which would ruin the model")),
                             {"weight"}),
                 "check the column of the weights, bound them, or leave it out");
}

}  // namespace

absl::Status WriteTableModel(const InspectedTable& table, const TableOptions& options,
                             const std::string& out, const JobCalls& calls) {
  CISTERN_RETURN_IF_ERROR(WithOptions(CheckNameForJson("the folder", out), {"out"}));
  model::TemplateData data;
  data.source = out + "/data/train/file_list.txt";
  data.eval_source = out + "/data/test/file_list.txt";
  data.dense_dim = static_cast<uint32_t>(table.plan.dense);
  data.slot_num = static_cast<uint32_t>(table.plan.slots);
  data.several_values = table.plan.several_values;
  data.positives = data::ShareOfPositives(table.profile, table.plan.label);
  for (const data::LabelChoice& head : table.plan.heads) {
    data.heads.push_back(
        {table.profile.columns[head.column].name, RowsOf(table.profile, head).share()});
  }
  data.exact_share = options.evaluation().empty() && !table.plan.held_out.time_column;
  data.negative_rate = options.kept_negatives();
  const auto [rows, rarer] = RowsToTrain(table, options);
  if (table.plan.weight) {
    data.weighted = true;
    data.positives =
        data::WeightedShareOfPositives(table.profile, table.plan.label, *table.plan.weight);
  }
  data.key_weights = !table.plan.options.key_weights.empty();
  // Values of libsvm lines are amounts of either sign, whose sum is what a linear model adds up.
  data.sums_values = table.profile.layout.values == data::FeatureValues::kWeights;
  const model::ModelKind kind = KindFor(table, options);
  const bool is_paired = table.plan.pair_gain >= data::kPairsFrom;
  model::TemplateSizes sizes =
      model::SizesFor(kind, rows, table.plan.values, rarer, is_paired ? data.slot_num : 0);
  const bool wide = model::SizeForWide(data.dense_dim, rarer, &sizes);
  CISTERN_RETURN_IF_ERROR(CheckModelSize(kind, sizes, data));
  const std::string model = absl::StrCat(out, "/", kRunModelFile);
  const std::string text = model::ModelTemplateText(kind, data, sizes);
  // Before the table is converted, which takes long.
  CISTERN_RETURN_IF_ERROR(WithOptions(
      model::ParseModelConfig(text, model, options.set, model::LayerGrammars()).status(), {"set"}));
  LocalFileSystem files;
  CISTERN_RETURN_IF_ERROR(files.MakeFolders(out));
  data::ConvertOptions fit = table.plan.options;
  fit.out = out;
  fit.rare_out = absl::StrCat(out, "/", kRareFile);
  fit.negative_rate = data.negative_rate;
  RemoveRareCounts(out);
  if (options.evaluation().empty()) {
    fit.select = [&table](uint64_t row, const std::vector<absl::string_view>& fields) {
      return !table.plan.held_out.Contains(row, fields);
    };
  }
  CISTERN_RETURN_IF_ERROR(
      MissingIsWrong(data::FitRecipe(fit, ReportRows(calls, "counting values")).status()));
  SaySizes(kind, sizes, rarer, is_paired, calls);
  if (wide) {
    calls.Note(absl::StrCat("note: ", data.dense_dim, " numbers a row are many for ", rarer,
                            " rows of the rarer label, so the learning rate is low; leave out "
                            "(ignore) columns that say nothing"));
  }
  return WriteWhole(files, model, text);
}

absl::StatusOr<InspectedTable> InitModel(const InitOptions& options, const JobCalls& calls) {
  CISTERN_RETURN_IF_ERROR(CheckOutFolder(options.out));
  CISTERN_RETURN_IF_ERROR(WithOptions(CheckNameForJson("the folder", options.out), {"out"}));
  if (IsRunFolder(options.out)) {
    return WithFix(WithOptions(absl::InvalidArgumentError(absl::StrCat(
                                   options.out, " holds a run, whose model would be replaced")),
                               {"out"}),
                   "name another folder");
  }
  LocalFileSystem files;
  for (const char* const name : {kRunModelFile, data::kRecipeFile}) {
    const std::string path = absl::StrCat(options.out, "/", name);
    CISTERN_ASSIGN_OR_RETURN(const bool exists, files.Exists(path));
    if (!exists || options.overwrite) continue;
    return WithFix(WithOptions(absl::InvalidArgumentError(absl::StrCat(path, " exists already")),
                               {"overwrite", "out"}),
                   "name another folder, or let this one be replaced");
  }
  CISTERN_ASSIGN_OR_RETURN(InspectedTable table, InspectTable(options.table, options.how, calls));
  CISTERN_RETURN_IF_ERROR(WriteTableModel(table, options.how, options.out, calls));
  return table;
}

absl::StatusOr<TableModel> MakeTableModel(const std::string& path, const TableOptions& options,
                                          const std::string& out, const TableCalls& calls) {
  CISTERN_RETURN_IF_ERROR(WithOptions(CheckNameForJson("the folder", out), {"out"}));
  CISTERN_ASSIGN_OR_RETURN(const InspectedTable table, InspectTable(path, options, calls));
  if (table.profile.rows < kMinRows) {
    return WithFix(absl::InvalidArgumentError(absl::StrCat(path, ": ", table.profile.rows,
                                                           " rows are too few to train a model")),
                   absl::StrCat("train on ", kMinRows, " rows or more"));
  }
  if (calls.inspected) calls.inspected(table);
  CISTERN_RETURN_IF_ERROR(WriteTableModel(table, options, out, calls));
  data::ConvertOptions training, test;
  training.input = {path};
  training.add_columns = test.add_columns = options.add_columns;
  training.negative_rate = options.kept_negatives();
  const std::string& named = options.evaluation();
  test.input = {named.empty() ? path : named};
  data::RowOverlap overlap;
  if (!named.empty()) {
    training.select = [&](uint64_t, const std::vector<absl::string_view>& fields) {
      overlap.AddTraining(fields);
      return true;
    };
    test.select = [&](uint64_t, const std::vector<absl::string_view>& fields) {
      overlap.AddEvaluation(fields);
      return true;
    };
  } else {
    const data::HeldOutRows& held_out = table.plan.held_out;
    training.select = [&](uint64_t row, const std::vector<absl::string_view>& fields) {
      return !held_out.Contains(row, fields);
    };
    test.select = [&](uint64_t row, const std::vector<absl::string_view>& fields) {
      return held_out.Contains(row, fields);
    };
  }
  CISTERN_ASSIGN_OR_RETURN(const data::ConvertSummary trained,
                           ConvertPart(out, "train", training, calls));
  CISTERN_ASSIGN_OR_RETURN(const data::ConvertSummary tested,
                           ConvertPart(out, "test", test, calls));
  CISTERN_RETURN_IF_ERROR(ListFirstTable(out, path, calls));
  CISTERN_RETURN_IF_ERROR(CheckWeights(trained, path));
  for (const data::ConvertSummary* part : {&trained, &tested}) {
    const data::ConvertSummary::Label* const label = LabelOfOneClass(*part);
    if (label == nullptr) continue;
    const std::string of =
        table.plan.heads.empty()
            ? ""
            : absl::StrCat(
                  " of label '",
                  table.profile.columns[table.plan.heads[label - part->labels.data()].column].name,
                  "'");
    const absl::Status one_class = absl::InvalidArgumentError(
        absl::StrCat(part == &trained ? path : test.input[0], ": the ",
                     part == &trained ? "training" : "evaluation", " part has ", label->positive,
                     " positive rows", of, " of ", label->known, ": both classes are needed"));
    return named.empty() ? WithFix(WithOptions(one_class, {"valid"}),
                                   "use more rows, or name the evaluation data")
                         : WithFix(one_class,
                                   "check the column of the label in this file, or name one with "
                                   "more rows");
  }
  TableModel made{absl::StrCat(out, "/", kRunModelFile), data::UnseenValues(tested, &trained)};
  const std::string both = overlap.Warning();
  if (!both.empty()) made.warnings.push_back(both);
  const std::string left_out =
      trained.left_out == 0 ? ""
                            : absl::StrCat(" (", trained.left_out, " negative ones are left out)");
  calls.Note(absl::StrCat(
      "note: ", trained.samples, " rows to train on", left_out, ", ", tested.samples, " ",
      !named.empty()                    ? absl::StrCat("of ", named)
      : table.plan.held_out.time_column ? "later ones held out"
      : table.plan.held_out.by_content  ? "held out, equal rows together (rows come several times)"
                                        : "held out",
      "; data and model are in ", out));
  if (!options.final_test().empty()) {
    data::ConvertOptions last;
    last.input = {options.final_test()};
    last.add_columns = options.add_columns;
    CISTERN_RETURN_IF_ERROR(ConvertPart(out, kFinalTest, last, calls).status());
  }
  return made;
}

}  // namespace cistern::app
