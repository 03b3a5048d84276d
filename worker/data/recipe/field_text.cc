// Reads lines whose features name their columns: libffm and Vowpal Wabbit.
#include <set>

#include "absl/strings/numbers.h"
#include "worker/data/format/line_reader.h"
#include "worker/data/recipe/text_table.h"

namespace cistern::data {
namespace {

// The names of columns; those that are numbers by number, before the others.
using FieldNames = std::set<std::pair<uint64_t, std::string>>;

void AddName(absl::string_view name, FieldNames* names) {
  uint64_t number = 0;
  if (!absl::SimpleAtoi(name, &number)) number = UINT64_MAX;
  names->emplace(number, std::string(name));
}

// What differs between the formats.
struct FieldFormat {
  TextFormat format;
  const char* features;  // for errors
  // Adds the columns of a line. Tokens that are none are refused with their line when it is read.
  void (*add_names)(absl::Span<const absl::string_view> tokens, FieldNames* names);
};

constexpr FieldFormat kLibffm = {TextFormat::kLibffm,
                                 "field:feature:value, which libffm lines are made of",
                                 [](absl::Span<const absl::string_view> tokens, FieldNames* names) {
                                   for (const absl::string_view token : tokens) {
                                     absl::string_view field;
                                     if (LibffmField(token, &field)) AddName(field, names);
                                   }
                                 }};

constexpr FieldFormat kVw = {
    TextFormat::kVw, "|namespace feature, which lines of Vowpal Wabbit are made of",
    [](absl::Span<const absl::string_view> tokens, FieldNames* names) {
      const absl::StatusOr<std::vector<VwFeature>> features = VwFeatures(tokens);
      if (!features.ok()) return;
      for (const VwFeature& one : *features) AddName(one.space, names);
    }};

// A line as a label, "" if it has none, and the tokens after it.
struct LabeledTokens {
  absl::string_view label;
  std::vector<absl::string_view> tokens;
};

// The next line that is not empty; false at the end.
absl::StatusOr<bool> NextLabeled(LineReader& lines, TextFormat format, LabeledTokens* next) {
  CISTERN_ASSIGN_OR_RETURN(const bool found, NextTokens(lines, format, &next->tokens));
  next->label = "";
  if (!found || !HasLabel(next->tokens)) return found;
  next->label = next->tokens[0];
  next->tokens.erase(next->tokens.begin());
  return true;
}

class FieldText : public TextTable {
 public:
  FieldText(std::unique_ptr<LineReader> lines, TextFormat format, FeatureValues values,
            std::vector<std::string> columns)
      : lines_(std::move(lines)),
        format_(format),
        columns_(std::move(columns)),
        features_(EntryOf(format).features(values, columns_, /*single_slot=*/false)) {}

  const std::vector<std::string>& columns() const override { return columns_; }
  absl::StatusOr<bool> Next(TextRow* row) override {
    LabeledTokens next;
    CISTERN_ASSIGN_OR_RETURN(const bool found, NextLabeled(*lines_, format_, &next));
    if (!found) return false;
    row->line = lines_->line();
    row->fields.assign(1, next.label);
    CISTERN_RETURN_IF_ERROR(lines_->WithPlace(features_->Split(next.tokens, &row->fields)));
    return true;
  }
  uint64_t bytes_read() const override { return lines_->bytes_read(); }

 private:
  const std::unique_ptr<LineReader> lines_;
  const TextFormat format_;
  const std::vector<std::string> columns_;
  const std::unique_ptr<FeatureLine> features_;
};

// "label" and the fields of all lines.
absl::StatusOr<std::vector<std::string>> ColumnsOf(const std::string& path,
                                                   const FieldFormat& kind) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<LineReader> lines, LineReader::Open(path));
  FieldNames names;
  LabeledTokens next;
  while (true) {
    CISTERN_ASSIGN_OR_RETURN(const bool found, NextLabeled(*lines, kind.format, &next));
    if (!found) break;
    kind.add_names(next.tokens, &names);
  }
  std::vector<std::string> columns = {"label"};
  for (const auto& [number, name] : names) columns.push_back(name);
  if (columns.size() > 1) return columns;
  return absl::DataLossError(absl::StrCat(path, " holds no ", kind.features));
}

absl::StatusOr<std::unique_ptr<TextTable>> OpenFieldText(const std::string& path,
                                                         const TextOptions& options,
                                                         const FieldFormat& kind) {
  std::vector<std::string> names = options.columns;
  if (names.empty()) {
    if (path == "-") {
      return absl::InvalidArgumentError(absl::StrCat("standard input cannot be read twice, which ",
                                                     EntryOf(kind.format).word,
                                                     " needs: name a file"));
    }
    CISTERN_ASSIGN_OR_RETURN(names, ColumnsOf(path, kind));
  }
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<LineReader> lines, LineReader::Open(path));
  return std::make_unique<FieldText>(std::move(lines), kind.format, options.values,
                                     std::move(names));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TextTable>> OpenLibffm(const std::string& path,
                                                      const TextOptions& options) {
  return OpenFieldText(path, options, kLibffm);
}

absl::StatusOr<std::unique_ptr<TextTable>> OpenVw(const std::string& path,
                                                  const TextOptions& options) {
  return OpenFieldText(path, options, kVw);
}

}  // namespace cistern::data
