#include "app/data/more_data.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "app/data/convert_data.h"
#include "app/data/given_tables.h"
#include "app/data/missing_file.h"
#include "app/data/table_file.h"
#include "worker/data/format/data_set.h"
#include "worker/data/prepare/column_list.h"
#include "worker/data/prepare/convert.h"
#include "worker/data/prepare/number_shift.h"
#include "worker/data/prepare/unseen_values.h"
#include "worker/data/recipe/recipe_folder.h"
#include "worker/data/recipe/row_encoder.h"
#include "worker/data/recipe/table_files.h"
#include "worker/data/recipe/text_samples.h"
#include "worker/report/score_detail.h"

namespace cistern::app {
namespace {

constexpr uint64_t kMaxRowsOfOneClass = 100;  // fewer can be of one class by chance
// Fewer rows of a class are nearly none, where this many times as many were expected.
constexpr uint64_t kMinRowsOfClass = 20;
constexpr double kTimesFewer = 10;
constexpr uint64_t kMaxDetailBytes = uint64_t{1} << 24;
constexpr double kOddsChange = 3;          // between days; more is worth a note
constexpr double kDeviationsOfShare = 2;   // of its log-odds; less is chance
constexpr size_t kSamplesBefore = 20000;   // to compare the numbers of new data with
constexpr uint64_t kRarerToEvaluate = 20;  // with fewer, an evaluation is mostly chance

// A name below OUT/more that no earlier file of the command has: files of several folders can have
// the same name. It holds no dot, so names with an ending are free.
std::string PlaceFor(const std::string& out, const std::string& file,
                     std::set<std::string>* taken) {
  std::filesystem::path path(file);
  if (path.filename().empty()) path = path.parent_path();  // a folder, after a slash
  std::string name = path.filename().string();
  name = absl::StrCat(out, "/more/", name.substr(0, name.find('.')));
  std::string place = name;
  for (int i = 2; !taken->insert(place).second; ++i) place = absl::StrCat(name, "-", i);
  return place;
}

// Converts the tables of one command.
class MoreTables {
 public:
  MoreTables(const MoreOptions& options, const data::FoundRecipe& recipe, const TableCalls& calls)
      : options_(options), run_(recipe), calls_(calls) {}

  void Add(const std::string& file) {
    tables_.push_back({file, PlaceFor(options_.out, file, &taken_)});
  }
  bool empty() const { return tables_.empty(); }
  // Extends the recipe of the run by all tables.
  absl::Status Extend();
  // Converts all of them. sources: gets their data sets, in order.
  absl::Status Convert(std::vector<std::string>* sources, MoreData* more);
  // Call it after a failure: the counts of rare values include data that was not trained.
  void ForgetRare() const {
    std::error_code error;
    std::filesystem::remove(tables_.front().place + ".rare", error);
  }

 private:
  struct Table {
    std::string file, place;
  };

  double kept_negatives() const {
    return options_.table_negatives == 0 ? 1 : options_.table_negatives;
  }
  // Whether the tables hold a part of the negative rows only, as much as the model knows.
  bool are_sampled() const { return options_.model_negatives < 1 && options_.table_negatives == 1; }
  bool holds_out() const { return !options_.eval_source.empty() && options_.valid.empty(); }
  data::ConvertOptions Base(const std::string& file) const;
  absl::Status ReportOtherColumns(const std::string& file) const;
  absl::StatusOr<data::ConvertSummary> ConvertPart(const std::string& file, const std::string& out,
                                                   bool of_held_out);
  absl::Status CheckClasses() const;
  absl::Status CheckLabels() const;
  absl::Status CheckShare() const;
  absl::Status RuinError(const std::string& what) const;
  double ShareOfPositives() const;
  absl::Status ChooseEvaluation(const std::vector<std::string>& tests, MoreData* more);
  // The first rows that the run evaluated on so far; without any if they cannot be read.
  data::DenseSums SumsBefore() const;
  // What of the new data is unlike that of before.
  std::vector<std::string> Warnings(const data::DenseSums& before);

  const MoreOptions& options_;
  const data::FoundRecipe& run_;
  const TableCalls& calls_;
  std::set<std::string> taken_;
  std::vector<Table> tables_;
  std::string recipe_;                     // the folder of the extended one
  std::vector<data::GrownColumn> grown_;   // its vocabulary
  data::ConvertSummary trained_, tested_;  // sums over the tables
};

// Adds the counts of one part to those of others.
void AddTo(const data::ConvertSummary& part, data::ConvertSummary* sum) {
  sum->samples += part.samples;
  sum->positives += part.positives;
  sum->weight += part.weight;
  sum->positive_weight += part.positive_weight;
  sum->weight_squares += part.weight_squares;
  sum->labels.resize(part.labels.size());
  for (size_t i = 0; i < part.labels.size(); ++i) {
    sum->labels[i].positive += part.labels[i].positive;
    sum->labels[i].known += part.labels[i].known;
  }
  sum->max_keys = std::max(sum->max_keys, part.max_keys);
  sum->shape = part.shape;
  sum->left_out += part.left_out;
  sum->dense.resize(part.dense.size());
  sum->dense_sums.Add(part.dense_sums);
  for (size_t i = 0; i < part.dense.size(); ++i) {
    sum->dense[i].column = part.dense[i].column;
    sum->dense[i].beyond += part.dense[i].beyond;
  }
  for (const std::string& sentence : part.odd_fields) {
    if (std::count(sum->odd_fields.begin(), sum->odd_fields.end(), sentence) > 0) continue;
    sum->odd_fields.push_back(sentence);
  }
  sum->slots.resize(part.slots.size());
  for (size_t i = 0; i < part.slots.size(); ++i) {
    sum->slots[i].column = part.slots[i].column;
    sum->slots[i].rare += part.slots[i].rare;
    sum->slots[i].values += part.slots[i].values;
    if (sum->slots[i].spelling.empty()) sum->slots[i].spelling = part.slots[i].spelling;
  }
}

data::ConvertOptions MoreTables::Base(const std::string& file) const {
  data::ConvertOptions options;
  options.input = {file};
  options.recipe = run_.path;
  options.overwrite = true;
  options.columns = options_.columns;
  options.delimiter = options_.delimiter;
  options.add_columns = options_.add_columns;
  return options;
}

absl::Status MoreTables::Extend() {
  const std::string more = options_.out + "/more";
  recipe_ = run_.path;
  if (!run_.recipe.vocabulary_xxh3) return absl::OkStatus();  // every value has a key
  recipe_ = more + "/extended.recipe";
  std::error_code error;
  std::filesystem::create_directories(recipe_, error);  // ExtendRecipe reports what is wrong
  data::ConvertOptions options = Base("");
  options.input.clear();
  options.out = recipe_;
  for (const Table& table : tables_) options.input.push_back(table.file);
  options.negative_rate = kept_negatives();
  options.rare_out = tables_.front().place + ".rare";
  std::vector<std::string> rare = {options_.out + "/" + kRareFile};
  for (std::filesystem::directory_iterator entry(more, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".rare") rare.push_back(entry->path());
  }
  std::sort(rare.begin(), rare.end());
  for (const std::string& path : rare) {
    if (path != options.rare_out && std::filesystem::exists(path, error)) {
      options.rare_in.push_back(path);
    }
  }
  // Rows that are held out teach no values.
  if (holds_out()) {
    options.select = [](uint64_t row, const std::vector<absl::string_view>& fields) {
      return !data::HeldOutRows().Contains(row, fields);
    };
  }
  CISTERN_RETURN_IF_ERROR(
      data::ExtendRecipe(options, &grown_, ReportRows(calls_, "counting values")).status());
  std::vector<std::string> parts;
  for (const data::GrownColumn& grown : grown_) {
    if (grown.keys > 0) parts.push_back(absl::StrCat(grown.column, " ", grown.keys));
  }
  if (parts.empty()) return absl::OkStatus();
  calls_.Note(
      absl::StrCat("note: new values that get keys of their own: ", absl::StrJoin(parts, ", ")));
  return absl::OkStatus();
}

absl::StatusOr<data::ConvertSummary> MoreTables::ConvertPart(const std::string& file,
                                                             const std::string& out,
                                                             bool of_held_out) {
  data::ConvertOptions options = Base(file);
  options.recipe = recipe_;
  options.out = out;
  if (!of_held_out) options.negative_rate = kept_negatives();
  if (holds_out() && file != options_.test) {
    options.select = [of_held_out](uint64_t row, const std::vector<absl::string_view>& fields) {
      return data::HeldOutRows().Contains(row, fields) == of_held_out;
    };
  }
  return data::Convert(options, ReportRows(calls_, "converting"));
}

absl::Status MoreTables::CheckClasses() const {
  if (trained_.labels.size() != 1) return CheckLabels();
  if (trained_.samples < kMaxRowsOfOneClass) return absl::OkStatus();
  if (const std::string fault = WeightFaultOf(trained_); !fault.empty()) return RuinError(fault);
  if (trained_.positives > 0 && trained_.positives < trained_.samples) return CheckShare();
  return RuinError(absl::StrCat("all ", trained_.samples, " labels are ",
                                trained_.positives == 0 ? "negative" : "positive"));
}

absl::Status MoreTables::RuinError(const std::string& what) const {
  std::vector<std::string> files;
  for (const Table& table : tables_) files.push_back(table.file);
  return WithFix(
      WithOptions(absl::InvalidArgumentError(absl::StrCat(absl::StrJoin(files, ","), ": ", what,
                                                          ", which would ruin the model")),
                  {"more", "label"}),
      "check the column of the label; if the data is right, give it together with that of other "
      "days");
}

// Of several labels.
absl::Status MoreTables::CheckLabels() const {
  for (size_t i = 0; i < trained_.labels.size(); ++i) {
    const auto& [positive, known] = trained_.labels[i];
    if (known < kMaxRowsOfOneClass || (positive > 0 && positive < known)) continue;
    return RuinError(absl::StrCat("all ", known, " values of label '", run_.recipe.labels[i].column,
                                  "' are ", positive == 0 ? "negative" : "positive",
                                  " (where it is not known yet, write -1)"));
  }
  return absl::OkStatus();
}

// Compares the share of positive labels with that of the rows that the run evaluated on.
absl::Status MoreTables::CheckShare() const {
  LocalFileSystem files;
  const absl::StatusOr<std::string> text =
      ReadWhole(files, absl::StrCat(options_.out, "/", report::kScoreDetailFile), kMaxDetailBytes);
  if (!text.ok()) return absl::OkStatus();
  const absl::StatusOr<report::ScoreDetail> before = report::ParseScoreDetail(*text);
  if (!before.ok() || before->samples < kMaxRowsOfOneClass) return absl::OkStatus();
  const double rows = are_sampled()
                          ? static_cast<double>(trained_.positives) +
                                static_cast<double>(trained_.samples - trained_.positives) /
                                    options_.model_negatives
                          : static_cast<double>(trained_.samples + trained_.left_out);
  const double share = static_cast<double>(trained_.positives) / rows;
  const double was = before->share_of_positives();
  if (was <= 0 || was >= 1 || share >= 1) return absl::OkStatus();
  const std::string shares = absl::StrFormat("%.3g %% of the labels are positive, and %.3g %% were",
                                             100 * share, 100 * was);
  const uint64_t rarer = std::min(trained_.positives, trained_.samples - trained_.positives);
  const double expected = rows * (trained_.positives == rarer ? was : 1 - was);
  if (rarer < kMinRowsOfClass && expected >= kTimesFewer * kMinRowsOfClass) {
    return RuinError(shares);
  }
  const double change = share * (1 - was) / (was * (1 - share));
  if (rarer >= kMinRowsOfClass && (change > kOddsChange || change < 1 / kOddsChange)) {
    calls_.Note(absl::StrCat("note: ", shares,
                             " so far: the mean prediction will move to the new share; check the "
                             "column of the label, and that no rows were left out"));
  }
  return absl::OkStatus();
}

// Reports what the model cannot use.
absl::Status MoreTables::ReportOtherColumns(const std::string& file) const {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> files, data::TableFiles(file));
  CISTERN_ASSIGN_OR_RETURN(
      const std::unique_ptr<data::TextTable> table,
      data::OpenRecipeTable(run_.recipe, files.front(), options_.delimiter, options_.columns));
  const std::vector<std::string>& known = run_.recipe.layout.columns;
  std::vector<std::string> others;
  for (const std::string& name : table->columns()) {
    const std::string trimmed(absl::StripAsciiWhitespace(name));
    if (std::find(known.begin(), known.end(), trimmed) == known.end()) others.push_back(name);
  }
  if (others.empty() || !calls_.other_columns) return absl::OkStatus();
  calls_.other_columns({file, others, GivenTables(options_.out)});
  return absl::OkStatus();
}

// Weighted; rows that were left out, here or before, count as the other negative ones.
double MoreTables::ShareOfPositives() const {
  data::ConvertSummary all = trained_;
  if (options_.valid.empty()) AddTo(tested_, &all);
  const auto negatives = static_cast<double>(all.samples - all.positives);
  const double kept = are_sampled()       ? options_.model_negatives
                      : all.left_out == 0 ? 1
                                          : negatives / (negatives + all.left_out);
  const double rest = all.weight - all.positive_weight;
  if (rest <= 0 || all.positive_weight <= 0) return options_.share;
  const double rarer = std::min<double>(all.positives, negatives / kept);
  const double share = all.positive_weight / (all.positive_weight + rest / kept);
  const double so_far = options_.share;
  const double difference = std::log(share * (1 - so_far) / ((1 - share) * so_far));
  return std::abs(difference) < kDeviationsOfShare / std::sqrt(rarer) ? so_far : share;
}

absl::Status MoreTables::ChooseEvaluation(const std::vector<std::string>& tests, MoreData* more) {
  if (tests.empty()) return absl::OkStatus();
  if (holds_out() && are_sampled()) more->eval_negatives = options_.model_negatives;
  more->eval_source = absl::StrJoin(tests, ",");
  const uint64_t rarer = std::min(tested_.positives, tested_.samples - tested_.positives);
  if (rarer >= kRarerToEvaluate || (rarer > 0 && !options_.valid.empty())) return absl::OkStatus();
  if (!options_.valid.empty()) {
    return WithFix(WithOptions(absl::InvalidArgumentError(absl::StrCat(
                                   options_.valid, ": ", tested_.positives, " of ", tested_.samples,
                                   " rows are positive: both classes are needed")),
                               {"more", "valid"}),
                   "check the column of the label, or name another table");
  }
  // Too few to measure anything: with what the run evaluated on so far, if one weight fits both.
  const bool fits = more->eval_negatives == options_.eval_negatives;
  more->eval_source =
      fits ? absl::StrCat(options_.eval_source, ",", more->eval_source) : options_.eval_source;
  more->eval_negatives = options_.eval_negatives;
  calls_.Note(absl::StrCat(
      "note: the ", tested_.samples, " new rows that are held out ",
      rarer == 0 ? "are of one class" : absl::StrCat("have the rarer label only ", rarer, " times"),
      "; evaluation is on ", fits ? "these and on " : "",
      "the data of before, unless other data is named (valid)"));
  return absl::OkStatus();
}

absl::Status MoreTables::Convert(std::vector<std::string>* sources, MoreData* more) {
  const data::DenseSums before = SumsBefore();  // its files may get the names of others
  std::vector<std::string> tests;
  for (const Table& table : tables_) {
    CISTERN_RETURN_IF_ERROR(ReportOtherColumns(table.file));
    CISTERN_ASSIGN_OR_RETURN(const data::ConvertSummary part,
                             ConvertPart(table.file, table.place, false));
    AddTo(part, &trained_);
    sources->push_back(part.file_list);
    std::string held_out;
    if (holds_out()) {
      const absl::StatusOr<data::ConvertSummary> test =
          ConvertPart(table.file, table.place + ".test", true);
      if (test.ok()) {
        AddTo(*test, &tested_);
        tests.push_back(test->file_list);
        held_out = absl::StrCat(", ", test->samples, " more held out");
      } else if (part.samples >= kMaxRowsOfOneClass) {  // of a few rows none may be held out
        return test.status();
      }
    }
    calls_.Note(absl::StrCat("note: converted ", table.file, " to ", table.place, ": ",
                             part.samples, " samples", held_out));
  }
  if (!options_.valid.empty()) {
    CISTERN_ASSIGN_OR_RETURN(
        const data::ConvertSummary test,
        ConvertPart(options_.valid, PlaceFor(options_.out, options_.valid, &taken_) + ".test",
                    true));
    AddTo(test, &tested_);
    tests.push_back(test.file_list);
  }
  if (!options_.test.empty()) {
    const std::string place = absl::StrCat(options_.out, "/data/", kFinalTest);
    CISTERN_RETURN_IF_ERROR(ConvertPart(options_.test, place, true).status());
  }
  CISTERN_RETURN_IF_ERROR(CheckClasses());
  std::vector<std::string> given;
  for (const Table& table : tables_) given.push_back(table.file);
  CISTERN_RETURN_IF_ERROR(NoteRepeatedTables(options_.out, given, calls_));
  CISTERN_RETURN_IF_ERROR(ChooseEvaluation(tests, more));
  if (options_.share > 0 && !tests.empty()) {
    more->share = ShareOfPositives();
    more->exact_share = holds_out();
  }
  more->max_keys = std::max(trained_.max_keys, tested_.max_keys);
  more->warnings = Warnings(before);
  return absl::OkStatus();
}

data::DenseSums MoreTables::SumsBefore() const {
  data::DenseSums sums;
  data::DataSetOptions data;
  data.source = options_.eval_source;
  data.shape = data::RowEncoder(run_.recipe, nullptr).shape();
  data.check = data::NormCheck::kSum;
  data.wide_keys = run_.recipe.key_bits == 64;
  const absl::StatusOr<std::unique_ptr<data::SampleReader>> reader = data::OpenDataSet(data);
  if (!reader.ok()) return sums;
  data::SampleBlock block;
  while (sums.samples < kSamplesBefore) {
    block.Reset(1);
    const absl::StatusOr<size_t> got = (*reader)->Read(kSamplesBefore - sums.samples, &block);
    if (!got.ok() || *got == 0) break;
    sums.Add(block);
  }
  return sums;
}

std::vector<std::string> MoreTables::Warnings(const data::DenseSums& before) {
  std::vector<std::string> warnings = data::NewValues(grown_);
  warnings.insert(warnings.end(), trained_.odd_fields.begin(), trained_.odd_fields.end());
  for (const data::ShiftedColumn& shifted :
       data::ShiftedColumns(run_.recipe, before, trained_.dense_sums)) {
    warnings.push_back(shifted.sentence);
    for (data::ConvertSummary::Dense& dense : tested_.dense) {
      if (dense.column == shifted.column) dense.beyond = 0;  // is said already
    }
  }
  if (tested_.slots.empty()) return warnings;
  for (std::string& sentence : data::UnseenValues(tested_, &trained_)) {
    warnings.push_back(std::move(sentence));
  }
  return warnings;
}

// Whether a file must be converted by the recipe of the run.
absl::StatusOr<bool> IsText(const MoreOptions& options, const std::string& file,
                            const std::optional<data::FoundRecipe>& recipe) {
  if (!IsTable(file)) return false;
  // Without a recipe, Parquet is data of a model that reads it ("format": "Parquet").
  if (!recipe && absl::EndsWithIgnoreCase(file, ".parquet")) return false;
  const auto refuse = [](const std::string& what) {
    return WithFix(WithOptions(absl::InvalidArgumentError(what), {"more", "data.convert.recipe"}),
                   "convert it first, by the recipe of the run, extended by the new values");
  };
  if (!recipe) {
    return refuse(absl::StrCat(file, ": ", options.out,
                               " holds no recipe, which says how text is converted"));
  }
  if (options.workers > 1) {
    return refuse(absl::StrCat(file, ": text cannot be converted by several workers"));
  }
  return true;
}

absl::Status CheckNegatives(const MoreOptions& options, const std::string& file) {
  const double of_model = options.model_negatives, of_table = options.table_negatives;
  if (of_model == 1 && (of_table == 0 || of_table == 1)) return absl::OkStatus();
  if (of_model == of_table || (of_model < 1 && of_table == 1)) return absl::OkStatus();
  if (of_model == 1) {
    return WithFix(WithOptions(absl::InvalidArgumentError(
                                   absl::StrCat(of_table,
                                                ": this model was trained on all negative rows "
                                                "(cistern.negative_rate is 1)")),
                               {"negative_rate", "more"}),
                   "leave it out; to train on fewer, start a new run from the table");
  }
  return WithFix(
      WithOptions(absl::InvalidArgumentError(
                      absl::StrCat(file, ": the model was trained on ", of_model,
                                   " of the negative rows (cistern.negative_rate)",
                                   of_table == 0 ? ", and needs as much of these"
                                                 : absl::StrCat(", not on ", of_table))),
                  {"more", absl::StrCat("negative_rate=", of_model)}),
      absl::StrCat("add ", of_model, " to leave out the others, or 1 if the file holds no more"));
}

// Refuses a column that the recipe does not have.
absl::Status CheckAdded(const MoreOptions& options, const data::FoundRecipe& recipe) {
  const std::vector<std::string>& known = recipe.recipe.layout.columns;
  for (const std::string& name : options.add_columns) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return WithOptions(
        absl::InvalidArgumentError(absl::StrCat(
            "column '", name, "' is new to ", options.out,
            ": a trained network has no inputs for it, and one with more inputs begins anew; train "
            "a new run on the tables of all days, in which it is empty where it is not there")),
        {"more", "add_column"});
  }
  return absl::OkStatus();
}

absl::Status AsArgument(const absl::Status& status) {
  if (!absl::IsNotFound(status)) return status;
  return WithOptions(MissingIsWrong(status), {"more"});
}

}  // namespace

absl::StatusOr<MoreData> ConvertMore(const MoreOptions& given, const TableCalls& calls) {
  LocalFileSystem files;
  MoreOptions options = given;
  absl::StatusOr<std::vector<std::string>> columns = data::ExpandColumns(given.columns);
  if (!columns.ok()) return WithOptions(columns.status(), {"columns"});
  options.columns = *std::move(columns);
  CISTERN_ASSIGN_OR_RETURN(const std::optional<data::FoundRecipe> recipe,
                           data::FindRecipe(files, options.out));
  MoreData more;
  std::vector<std::string> sources, converted;
  std::vector<bool> is_text;
  std::optional<MoreTables> tables;
  for (const std::string& file : options.files) {
    CISTERN_ASSIGN_OR_RETURN(const bool text, IsText(options, file, recipe));
    is_text.push_back(text);
    if (!text) continue;
    CISTERN_RETURN_IF_ERROR(CheckNegatives(options, file));
    CISTERN_RETURN_IF_ERROR(CheckAdded(options, *recipe));
    if (!tables) tables.emplace(options, *recipe, calls);
    tables->Add(file);
  }
  if (tables) {
    absl::Status done = tables->Extend();
    if (done.ok()) done = tables->Convert(&converted, &more);
    if (!done.ok()) tables->ForgetRare();
    CISTERN_RETURN_IF_ERROR(AsArgument(done));
  } else if (!options.eval_source.empty()) {
    calls.Note(absl::StrCat("note: evaluation stays on ", options.eval_source,
                            ", whatever the new data holds; layers.0.eval_source names data of "
                            "the new days"));
  }
  for (size_t i = 0, next = 0; i < options.files.size(); ++i) {
    sources.push_back(is_text[i] ? converted[next++] : options.files[i]);
  }
  more.source = absl::StrJoin(sources, ",");
  return more;
}

}  // namespace cistern::app
