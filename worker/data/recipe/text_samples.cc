#include "worker/data/recipe/text_samples.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "worker/data/format/line_reader.h"
#include "worker/data/recipe/json_table.h"
#include "worker/data/recipe/known_names.h"
#include "worker/data/recipe/ordered_table.h"
#include "worker/data/recipe/parquet_table.h"
#include "worker/data/recipe/part_columns.h"
#include "worker/data/recipe/spelling_check.h"
#include "worker/data/recipe/table_files.h"
#include "worker/data/recipe/utf8_check.h"
#include "worker/data/recipe/value_text.h"
#include "worker/data/storage/standard_input.h"

namespace cistern::data {
namespace {

// Decides what the first line of a delimited file is.
absl::StatusOr<std::vector<std::string>> ChooseColumns(const Recipe& recipe,
                                                       const std::vector<std::string>& line) {
  const std::vector<std::string> named_line = KnownNames(line, recipe.layout.columns);
  const std::set<std::string> found(named_line.begin(), named_line.end());
  const std::vector<std::string> features = FeatureColumns(recipe);
  const std::vector<std::string> all = WithoutParts(recipe.layout.columns);
  const bool named = std::all_of(features.begin(), features.end(),
                                 [&](const std::string& name) { return found.count(name) > 0; });
  if (named || recipe.layout.header) return std::vector<std::string>();  // the header
  if (line.size() == all.size()) return all;
  std::vector<std::string> unlabeled;
  for (const std::string& name : all) {
    const bool is_label =
        (!recipe.weight.empty() && name == recipe.weight) ||
        std::any_of(recipe.labels.begin(), recipe.labels.end(),
                    [&](const Recipe::Label& label) { return label.column == name; });
    if (!is_label) unlabeled.push_back(name);
  }
  if (line.size() == unlabeled.size()) return unlabeled;
  return WithOptions(absl::InvalidArgumentError(
                         absl::StrCat("has ", line.size(), " fields, but the training data had ",
                                      all.size(), " columns (", unlabeled.size(),
                                      " without labels) and no header line: check the delimiter, "
                                      "name the columns, or give the file a header line")),
                     {"delimiter", "columns"});
}

class TextSampleReader : public SampleReader {
 public:
  TextSampleReader(std::shared_ptr<const OwnedEncoder> encoder, TextInput input,
                   std::vector<uint32_t> slot_nums, KeptColumns* kept, TextFindings* findings)
      : owned_(std::move(encoder)),
        input_(std::move(input)),
        slot_nums_(std::move(slot_nums)),
        kept_(kept),
        findings_(findings),
        work_(owned_->encoder().NewWork()),
        spelling_(owned_->encoder()) {}

  absl::Status OpenNext();
  absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) override;

 private:
  const std::string& path() const { return input_.files[next_ - 1]; }
  absl::Status FindColumns();
  // Counts a row that was encoded.
  void Note(const TextRow& row);

  const std::shared_ptr<const OwnedEncoder> owned_;
  const TextInput input_;
  const std::vector<uint32_t> slot_nums_;
  KeptColumns* const kept_;
  TextFindings* const findings_;
  EncoderWork work_;
  size_t next_ = 0;                     // of input_.files
  std::optional<JsonColumns> members_;  // of several files
  std::unique_ptr<TextTable> table_;
  RowPlaces places_;
  std::vector<size_t> keep_;
  SpellingCheck spelling_;
};

absl::Status TextSampleReader::FindColumns() {
  const std::vector<std::string>& columns = table_->columns();
  absl::StatusOr<RowPlaces> places = FindPlaces(owned_->recipe(), columns, input_.labels);
  if (!places.ok()) {
    const std::string what(places.status().message());
    if (!input_.columns.empty()) {
      return WithOptions(absl::InvalidArgumentError(what + ": name it among the columns"),
                         {"columns"});
    }
    if (table_->has_objects() || IsParquetFile(path())) {
      return WithColumnsFix(places.status(), owned_->recipe(), columns, input_.labels);
    }
    if (columns.size() > 1 && std::any_of(columns.begin(), columns.end(), IsFiniteNumber)) {
      return WithOptions(absl::InvalidArgumentError(absl::StrCat(
                             "line 1: ", what,
                             ": this line is a row: write a header line above it, or name the "
                             "columns")),
                         {"columns"});
    }
    if (columns.size() > 1) {
      return AddContext(WithColumnsFix(places.status(), owned_->recipe(), columns, input_.labels),
                        "line 1");
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "line 1: ", what, ": check the delimiter, which is none of comma, tab, semicolon and |"));
  }
  places_ = *std::move(places);
  keep_.clear();
  for (const std::string& name : input_.keep) {
    auto found = std::find(columns.begin(), columns.end(), name);
    if (const std::string* const other = FindInAnyCase(name, columns);
        found == columns.end() && other != nullptr) {
      found = columns.begin() + (other - columns.data());
    }
    if (found == columns.end()) {
      return WithOptions(
          absl::InvalidArgumentError(absl::StrCat(
              "there is no column '", name, "'; the columns are ", absl::StrJoin(columns, ", "))),
          {"keep"});
    }
    keep_.push_back(static_cast<size_t>(found - columns.begin()));
  }
  return absl::OkStatus();
}

absl::Status TextSampleReader::OpenNext() {
  if (next_ == 0 && input_.files.size() > 1) {
    CISTERN_ASSIGN_OR_RETURN(members_,
                             FindJsonColumns(input_.files, SeparatorsOf(owned_->recipe())));
  }
  ++next_;
  CISTERN_ASSIGN_OR_RETURN(
      table_, OpenRecipeTable(owned_->recipe(), path(), input_.delimiter, input_.columns,
                              members_ ? &*members_ : nullptr));
  table_ = WithPartitions(std::move(table_), path(), FeatureColumns(owned_->recipe()));
  if (!input_.add_columns.empty()) {
    table_ = WithEmptyColumns(std::move(table_), input_.add_columns);
    table_ = WithParts(std::move(table_), path(), FeatureColumns(owned_->recipe()));
  }
  CISTERN_RETURN_IF_ERROR(AddContext(FindColumns(), path()));
  return AddContext(CheckReadable(*table_, FeatureColumns(owned_->recipe())), path());
}

void TextSampleReader::Note(const TextRow& row) {
  constexpr uint64_t kRowsChecked = 100000;  // for UTF-8, which costs more than counting
  ++findings_->rows;
  spelling_.Add(row.fields, places_);
  if (!findings_->not_utf8.empty() || findings_->rows > kRowsChecked) return;
  for (const std::vector<size_t>& places : places_.slots) {
    for (const size_t place : places) {
      if (IsUtf8(row.fields[place])) continue;
      findings_->not_utf8 = absl::StrCat(path(), ": line ", row.line);
      return;
    }
  }
}

absl::StatusOr<size_t> TextSampleReader::Read(size_t max_samples, SampleBlock* block) {
  size_t got = 0;
  for (TextRow row; got < max_samples;) {
    CISTERN_ASSIGN_OR_RETURN(const bool found, table_->Next(&row));
    if (!found) {
      if (findings_ != nullptr) {
        for (std::string& one : table_->odd_fields())
          findings_->odd_fields.push_back(std::move(one));
      }
      if (next_ == input_.files.size()) {
        if (findings_ != nullptr) findings_->complete = true;
        break;
      }
      CISTERN_RETURN_IF_ERROR(OpenNext());
      continue;
    }
    const absl::Status encoded =
        owned_->encoder().Encode(row.fields, places_, input_.labels, slot_nums_, &work_, block);
    if (!encoded.ok()) return AddContext(encoded, absl::StrCat(path(), ": line ", row.line));
    ++got;
    if (findings_ != nullptr) Note(row);
    if (kept_ == nullptr) continue;
    std::vector<std::string> texts;
    for (const size_t place : keep_) texts.emplace_back(row.fields[place]);
    kept_->Put(std::move(texts));
  }
  if (findings_ != nullptr) {
    findings_->missing = work_.slot_missing;
    findings_->rare = work_.slot_rare;
    findings_->beyond = work_.dense_beyond;
    findings_->spellings = spelling_.Sentences();
  }
  return got;
}

bool HasFeatures(const Recipe& recipe, const TextTable& table) {
  return FindPlaces(recipe, KnownNames(table.columns(), recipe.layout.columns), Labels::kOptional)
      .ok();
}

constexpr size_t kMaxFirstLine = size_t{1} << 20;

// Without spaces around it; empty: it cannot be read as text, or only once.
std::string FirstLineOf(const std::string& path) {
  if (path == "-") {
    const absl::StatusOr<std::string> line = FirstLineOfStandardInput(kMaxFirstLine);
    return line.ok() ? std::string(absl::StripAsciiWhitespace(*line)) : "";
  }
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return "";
  const absl::StatusOr<std::unique_ptr<LineReader>> lines = LineReader::Open(path);
  absl::string_view line;
  if (!lines.ok() || !(*lines)->Next(&line).ok()) return "";
  return std::string(absl::StripAsciiWhitespace(line));
}

bool IsObject(absl::string_view line) {
  return line.size() > 2 && line.front() == '{' && line.back() == '}';
}

// Says what is wrong with a file that begins like JSON and is no table; OK for any other.
absl::Status CheckNoJson(const std::string& path, absl::string_view line) {
  const char* const jq = absl::StartsWith(line, "[") ? "jq -c '.[]' " : "jq -c . ";
  if (!absl::StartsWith(line, "[") && !absl::StartsWith(line, "{")) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": is JSON, but has no object a line (JSON Lines): ", jq, path, " > rows.jsonl"));
}

// Standard input is read once, so its first line decides what reads it.
absl::StatusOr<std::unique_ptr<TextTable>> OpenStandardTable(const Recipe& recipe, char delimiter,
                                                             TextOptions options) {
  const std::string line = FirstLineOf("-");
  if (absl::StartsWith(line, "PAR1")) {
    return absl::InvalidArgumentError(
        "-: is a Parquet file, which standard input cannot be: write it to a file, and name that");
  }
  if (IsObject(line)) {
    const ListSeparators separators = SeparatorsOf(recipe);
    absl::StatusOr<JsonColumns> members = ColumnsOfObject(line, separators);
    if (!members.ok()) return AddContext(members.status(), "-: line 1");
    return OpenJsonLines("-", separators, &*members);
  }
  CISTERN_RETURN_IF_ERROR(CheckNoJson("-", line));
  const std::vector<std::string> features = FeatureColumns(recipe);
  for (const char one : {options.delimiter, ',', '\t', ';', '|'}) {
    if (delimiter != 0 || !options.columns.empty()) break;
    std::vector<std::string> names;
    for (absl::string_view name : absl::StrSplit(line, one)) {
      absl::ConsumePrefix(&name, "\xEF\xBB\xBF");
      name = absl::StripAsciiWhitespace(name);
      if (absl::ConsumePrefix(&name, "\"")) absl::ConsumeSuffix(&name, "\"");
      names.emplace_back(name);
    }
    names = KnownNames(names, recipe.layout.columns);
    if (!std::all_of(features.begin(), features.end(), [&](const std::string& feature) {
          return std::count(names.begin(), names.end(), feature) > 0;
        })) {
      continue;
    }
    options.quotes = options.quotes && one != '\t';
    options.delimiter = one;
    break;
  }
  return OpenDelimited("-", options);
}

absl::StatusOr<std::unique_ptr<TextTable>> OpenOwnColumns(const Recipe& recipe,
                                                          const std::string& path, char delimiter,
                                                          const std::vector<std::string>& columns,
                                                          const JsonColumns* members) {
  const Recipe::Layout& layout = recipe.layout;
  if (IsParquetFile(path)) return OpenParquetTable(path, SeparatorsOf(recipe));
  if (IsJsonLines(path)) return OpenJsonLines(path, SeparatorsOf(recipe), members);
  CISTERN_RETURN_IF_ERROR(CheckNoJsonArray(path));
  const TextFormatEntry& format = EntryOf(layout.format);
  TextOptions options;
  options.single_slot = layout.single_slot;
  options.values = FeatureValuesOf(recipe);
  options.columns = format.has_features() ? layout.columns : columns;
  if (format.has_features()) return format.open(path, options);
  const bool tsv = absl::EndsWith(path, ".tsv") || absl::EndsWith(path, ".tsv.gz") ||
                   absl::EndsWith(path, ".tsv.zst");
  options.delimiter = delimiter != 0             ? delimiter
                      : tsv && format.is_default ? '\t'
                                                 : layout.delimiter;
  options.quotes = format.quotes;
  options.trim = recipe.trim;
  if (columns.empty()) {
    options.choose_columns = [&recipe](const std::vector<std::string>& line) {
      return ChooseColumns(recipe, line);
    };
  }
  if (path == "-") return OpenStandardTable(recipe, delimiter, options);
  if (!columns.empty()) return format.open(path, options);
  absl::StatusOr<std::unique_ptr<TextTable>> table = format.open(path, options);
  if (!table.ok() || !HasFeatures(recipe, **table)) {
    const std::string line = FirstLineOf(path);
    if (IsObject(line)) return OpenJsonLines(path, SeparatorsOf(recipe));  // one row
    CISTERN_RETURN_IF_ERROR(CheckNoJson(path, line));
  }
  const bool fits =
      absl::IsDataLoss(table.status()) || (table.ok() && HasFeatures(recipe, **table));
  std::error_code error;
  if (delimiter != 0 || fits || !std::filesystem::is_regular_file(path, error)) return table;
  // Days of one table come from different programs.
  for (const char other : {',', '\t', ';', '|'}) {
    if (other == options.delimiter) continue;
    TextOptions others = options;
    others.delimiter = other;
    others.quotes = other != '\t';
    absl::StatusOr<std::unique_ptr<TextTable>> opened = OpenDelimited(path, others);
    if (opened.ok() && HasFeatures(recipe, **opened)) return opened;
  }
  return table;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TextTable>> OpenRecipeTable(const Recipe& recipe,
                                                           const std::string& path, char delimiter,
                                                           const std::vector<std::string>& columns,
                                                           const JsonColumns* members) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<TextTable> table,
                           OpenOwnColumns(recipe, path, delimiter, columns, members));
  table = WithKnownNames(std::move(table), recipe.layout.columns);
  return WithParts(std::move(table), path, FeatureColumns(recipe), recipe.layout.columns);
}

void KeptColumns::Put(std::vector<std::string> row) {
  const absl::MutexLock lock(&mutex_);
  rows_.push_back(std::move(row));
}

std::vector<std::string> KeptColumns::Take() {
  const absl::MutexLock lock(&mutex_);
  std::vector<std::string> row = std::move(rows_.front());
  rows_.pop_front();
  return row;
}

absl::StatusOr<std::unique_ptr<SampleReader>> OpenTextSamples(
    std::shared_ptr<const OwnedEncoder> encoder, const TextInput& input,
    const std::vector<uint32_t>& slot_nums, KeptColumns* kept, TextFindings* findings) {
  TextInput files = input;
  CISTERN_ASSIGN_OR_RETURN(files.files, TableFiles(input.files));
  auto reader =
      std::make_unique<TextSampleReader>(std::move(encoder), files, slot_nums, kept, findings);
  CISTERN_RETURN_IF_ERROR(reader->OpenNext());
  return reader;
}

namespace {

// Whether the inputs whose keys have weights are those with such slots in the recipe.
absl::Status CheckKeyWeights(const Recipe& recipe, const SampleShape& model) {
  size_t slot = 0;
  for (size_t input = 0; input < model.slot_nums.size(); ++input) {
    bool weighted = false;
    for (const size_t end = slot + model.slot_nums[input]; slot < end; ++slot) {
      weighted = weighted || (slot < recipe.slots.size() && recipe.slots[slot].key_weights);
    }
    const bool read = !model.key_weights.empty() && model.key_weights[input];
    if (weighted == read) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the recipe makes keys ", weighted ? "with" : "without", " weights in input ",
                     input, ", but the model reads them ", read ? "with" : "without",
                     " (cistern.key_weights): it belongs to other data"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRecipeShape(const Recipe& recipe, const SampleShape& model, bool wide_keys) {
  const auto differs = [](const char* what, uint64_t mine, uint64_t wanted) {
    return absl::InvalidArgumentError(absl::StrCat("the recipe makes samples with ", mine, " ",
                                                   what, ", but the model reads ", wanted,
                                                   ": it belongs to other data"));
  };
  if (recipe.weight.empty() == model.weighted) {
    return absl::InvalidArgumentError(
        absl::StrCat("the recipe makes samples ", model.weighted ? "without" : "with",
                     " a weight, but the model reads them ", model.weighted ? "with" : "without",
                     " one (cistern.sample_weights): it belongs to other data"));
  }
  CISTERN_RETURN_IF_ERROR(CheckKeyWeights(recipe, model));
  const size_t labels = model.label_dim - (model.weighted ? 1 : 0);
  if (recipe.labels.size() != labels) {
    return differs("labels (label_dim)", recipe.labels.size(), labels);
  }
  if (recipe.dense.size() != model.dense_dim) {
    return differs("dense features (dense_dim)", recipe.dense.size(), model.dense_dim);
  }
  const uint64_t slots =
      std::accumulate(model.slot_nums.begin(), model.slot_nums.end(), uint64_t{0});
  if (recipe.slots.size() != slots) return differs("slots (slot_num)", recipe.slots.size(), slots);
  const int bits = wide_keys ? 64 : 32;
  if (recipe.key_bits == bits) return absl::OkStatus();
  return differs("bits in a key (solver.input_key_type)", static_cast<uint64_t>(recipe.key_bits),
                 static_cast<uint64_t>(bits));
}

}  // namespace cistern::data
