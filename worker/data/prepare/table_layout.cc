#include "worker/data/prepare/table_layout.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/shown_text.h"
#include "worker/data/format/line_reader.h"
#include "worker/data/prepare/laid_out_table.h"
#include "worker/data/recipe/field_splitter.h"
#include "worker/data/recipe/json_table.h"
#include "worker/data/recipe/ordered_table.h"
#include "worker/data/recipe/parquet_table.h"
#include "worker/data/recipe/part_columns.h"
#include "worker/data/recipe/table_files.h"
#include "worker/data/recipe/value_text.h"

namespace cistern::data {
namespace {

constexpr size_t kMaxLines = 200;
constexpr size_t kMaxBytes = size_t{4} << 20;
// The first of equals wins. \x01 is Hive's.
constexpr char kDelimiters[] = {',', '\t', ';', '|', '\x01'};

// The first lines. Empty lines do not count.
absl::StatusOr<std::vector<std::string>> FirstLines(const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<LineReader> reader, LineReader::Open(path));
  std::vector<std::string> lines;
  for (size_t bytes = 0; lines.size() < kMaxLines && bytes < kMaxBytes;) {
    absl::string_view line;
    CISTERN_ASSIGN_OR_RETURN(const bool found, reader->Next(&line));
    if (!found) break;
    if (line.empty()) continue;
    bytes += line.size();
    lines.emplace_back(line);
  }
  if (lines.empty()) return absl::DataLossError(absl::StrCat(path, ": the file is empty"));
  return lines;
}

// The fields of a line. Empty for one whose quotes are not closed, which is a part of a longer row.
std::vector<std::string> FieldsOf(absl::string_view line, char delimiter, bool trim) {
  FieldSplitter splitter(delimiter, delimiter != '\t', trim);
  std::vector<absl::string_view> fields;
  const absl::Status split = splitter.Split(
      line, [](absl::string_view*) { return absl::StatusOr<bool>(false); }, &fields);
  if (!split.ok()) return {};
  return {fields.begin(), fields.end()};
}

// How many lines have as many fields as most lines, and that number.
std::pair<size_t, size_t> Agreement(const std::vector<std::string>& lines, char delimiter) {
  std::map<size_t, size_t> lines_by_fields;
  for (const std::string& line : lines) ++lines_by_fields[FieldsOf(line, delimiter, false).size()];
  lines_by_fields.erase(0);
  std::pair<size_t, size_t> best = {0, 0};
  for (const auto& [fields, count] : lines_by_fields) {
    if (fields > 1) best = std::max(best, {count, fields});
  }
  return best;
}

// Whether the first line has a text above a column of numbers.
bool NamesNumbers(const std::vector<std::string>& fields,
                  const std::vector<std::vector<std::string>>& rows) {
  constexpr size_t kUnderText = 2;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (IsUsuallyMissing(fields[i]) || IsFiniteNumber(fields[i])) continue;
    size_t numbers = 0, others = 0;
    for (const std::vector<std::string>& row : rows) {
      if (row.size() != fields.size() || IsUsuallyMissing(row[i])) continue;
      const bool repeats = row[i] == fields[i];  // a header line further below
      numbers += IsFiniteNumber(row[i]);
      others += !repeats && !IsFiniteNumber(row[i]);
    }
    if (numbers >= kUnderText && others == 0) return true;
  }
  return false;
}

// Whether a first line without numbers is a row for all that: fields of two columns, or that of a
// column of few values, such as a label, are values further below.
bool IsRow(const std::vector<std::string>& fields,
           const std::vector<std::vector<std::string>>& rows) {
  constexpr size_t kMinOthers = 20, kMinRepeats = 2, kOneIn = 10;
  std::vector<size_t> repeats(fields.size());
  size_t seen = 0;
  for (const std::vector<std::string>& row : rows) {
    if (row.size() != fields.size() || row == fields) continue;  // a header line further below
    ++seen;
    for (size_t i = 0; i < fields.size(); ++i) {
      repeats[i] += !IsUsuallyMissing(fields[i]) && row[i] == fields[i];
    }
  }
  if (seen < kMinOthers) return false;
  const auto columns = std::count_if(repeats.begin(), repeats.end(),
                                     [](size_t count) { return count >= kMinRepeats; });
  return columns >= 2 || std::any_of(repeats.begin(), repeats.end(),
                                     [&](size_t count) { return count * kOneIn >= seen; });
}

bool IsHeader(const std::vector<std::string>& fields,
              const std::vector<std::vector<std::string>>& rows,
              const std::vector<std::string>& mentions) {
  bool counts_up = true, has_number = false;
  for (size_t i = 0; i < fields.size(); ++i) {
    has_number |= IsFiniteNumber(fields[i]);
    counts_up &= fields[i] == absl::StrCat(i);
    if (std::count(mentions.begin(), mentions.end(), fields[i]) > 0) return true;
  }
  if (counts_up || NamesNumbers(fields, rows)) return true;
  return !has_number && !IsRow(fields, rows);
}

// Finds out whether all lines hold features.
bool FindFeatureLines(const std::vector<std::string>& lines, TableLayout* layout) {
  std::set<size_t> counts;  // of features
  const TextFormatEntry* format = nullptr;
  bool ones = true;
  for (const std::string& line : lines) {
    std::vector<absl::string_view> tokens = LineTokens(line, TextFormat::kLibsvm);
    if (tokens.empty()) continue;  // a comment
    if (!IsFiniteNumber(tokens[0])) return false;
    tokens.erase(tokens.begin());
    if (!tokens.empty() && absl::StartsWith(tokens[0], "qid:")) tokens.erase(tokens.begin());
    counts.insert(tokens.size());
    if (tokens.empty()) continue;
    const TextFormatEntry* const here = FindFeatureFormat(tokens);
    if (here == nullptr || (format != nullptr && here != format)) return false;
    format = here;
    for (const absl::string_view token : tokens) {
      double value = 0;
      ReadNumber(token.substr(token.rfind(':') + 1), &value);
      ones = ones && value == 1;
    }
  }
  if (format == nullptr) return false;
  layout->format = format->format;
  layout->delimiter = 0;
  layout->values = ones ? FeatureValues::kOnes : FeatureValues::kWeights;
  layout->single_slot = format->by_position && (!ones || counts.size() > 1);
  return true;
}

// Whether fields have a space on a side of a delimiter: "a, b" or "a ,b". Some are enough: padding
// is no part of an id.
bool HasSpaces(const std::vector<std::string>& lines, char delimiter) {
  for (const std::string& line : lines) {
    for (const std::string& field : FieldsOf(line, delimiter, false)) {
      if (!field.empty() && (field.front() == ' ' || field.back() == ' ')) return true;
    }
  }
  return false;
}

// Whether all lines are Vowpal Wabbit's: "1 2.0 'tag|user u7 |item i3:0.5", with a label of numbers
// before the first "|" and a name or a space behind each.
bool AreVowpalWabbit(const std::vector<std::string>& lines) {
  return std::all_of(lines.begin(), lines.end(), [](absl::string_view line) {
    const size_t bar = std::min(line.find('|'), line.size());
    const std::vector<absl::string_view> label =
        absl::StrSplit(line.substr(0, bar), ' ', absl::SkipWhitespace());
    if (label.empty() || bar + 2 > line.size() || line[bar + 1] == ' ') return false;
    const bool tagged = absl::StartsWith(label.back(), "'");
    if (!tagged && line[bar - 1] != ' ') return false;
    return std::all_of(label.begin(), label.end() - (tagged ? 1 : 0), IsFiniteNumber) &&
           absl::StrContains(line.substr(bar), ' ');
  });
}

// Ones, if no feature has another value.
FeatureValues VwValues(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    const std::vector<absl::string_view> tokens = LineTokens(line, TextFormat::kVw);
    const absl::StatusOr<std::vector<VwFeature>> features =
        VwFeatures(absl::MakeSpan(tokens).subspan(1));
    if (!features.ok()) continue;  // refused with its line when it is read
    for (const VwFeature& one : *features) {
      const size_t colon = one.feature.rfind(':');
      double value = 1;
      if (colon != absl::string_view::npos) ReadNumber(one.feature.substr(colon + 1), &value);
      if (value != 1) return FeatureValues::kWeights;
    }
  }
  return FeatureValues::kOnes;
}

// What separates the fields of most lines, and how many lines have as many fields as most.
std::pair<char, std::pair<size_t, size_t>> FindDelimiter(const std::vector<std::string>& lines,
                                                         const std::vector<char>& delimiters) {
  std::pair<char, std::pair<size_t, size_t>> best = {0, {0, 1}};
  for (const char delimiter : delimiters) {
    const std::pair<size_t, size_t> found = Agreement(lines, delimiter);
    if (found > best.second) best = {delimiter, found};
  }
  return best;
}

std::string NameOf(char delimiter) {
  switch (delimiter) {
    case ',':
      return "the comma";
    case '\t':
      return "tab";
    case ';':
      return "the semicolon";
    case ' ':
      return "space";
    default:
      return absl::StrCat("'", ShownText(std::string(1, delimiter)), "'");
  }
}

// wished: the delimiter that the caller names, or 0.
absl::Status NoFields(const std::string& path, const std::vector<std::string>& lines, char wished) {
  const absl::string_view first = absl::StripLeadingAsciiWhitespace(lines.front());
  if (absl::StartsWith(first, "<")) {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     ": is HTML or XML, such as the error page of a download, not a table: "
                     "look at its first line, and fetch the table again"));
  }
  if (wished != 0) {
    const auto [fits, most] =
        FindDelimiter(lines, {std::begin(kDelimiters), std::end(kDelimiters)});
    return WithOptions(
        absl::InvalidArgumentError(absl::StrCat(
            path, ": ", NameOf(wished), ", the delimiter on request, is in none of its first lines",
            fits == 0
                ? ": name the character that separates the fields"
                : absl::StrCat("; ", NameOf(fits), " makes ", most.second,
                               " fields of a line: leave the delimiter out, and it is found"))),
        {"delimiter"});
  }
  const bool spaces = std::all_of(lines.begin(), lines.end(), [](const std::string& line) {
    return absl::StrContains(line, ' ');
  });
  return WithOptions(absl::InvalidArgumentError(absl::StrCat(
                         path,
                         ": its lines hold one field only (none of comma, tab, semicolon and | "
                         "separates fields); a "
                         "table needs a label and at least one feature",
                         spaces ? "; if spaces separate them, name the delimiter 'space'"
                                : "; if another character does, name it")),
                     {"delimiter"});
}

// Lines above the header, or a header that does not fit the rows. most: of the lines, and their
// fields.
absl::Status CheckFirstLine(const std::string& path, const std::vector<std::string>& lines,
                            const TableLayout& layout, std::pair<size_t, size_t> most) {
  const size_t fields = layout.columns.size();
  if (fields == 0 || fields == most.second || 2 * most.first < lines.size()) {
    return absl::OkStatus();
  }
  const std::string counts =
      absl::StrCat(path, ": line 1 has ", fields, fields == 1 ? " field" : " fields",
                   ", but most lines have ", most.second);
  const std::vector<std::string> row = FieldsOf(lines.back(), layout.delimiter, true);
  if (fields + 1 == most.second && row.size() == most.second && row.back().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(counts, ": rows end with the delimiter, line 1 does not: add it (sed '1s/$/",
                     std::string(1, layout.delimiter), "/' ", path, " > table.csv)"));
  }
  return WithOptions(
      absl::InvalidArgumentError(
          absl::StrCat(counts, ", so '", ShownText(lines.front(), 40),
                       "' is not their header: name every column in it, remove the lines above the "
                       "header (tail -n +2 ",
                       path, " > table.csv), or name what separates the fields")),
      {"delimiter"});
}

// The columns that are in the files themselves.
std::vector<std::string> OwnColumns(const TableLayout& layout) {
  std::vector<std::string> columns;
  for (const std::string& name : layout.columns) {
    const auto holds = [&](const std::vector<std::string>& names) {
      return std::count(names.begin(), names.end(), name) > 0;
    };
    if (!holds(layout.partitions) && !holds(layout.added) && !holds(layout.parts)) {
      columns.push_back(name);
    }
  }
  return columns;
}

absl::Status FindDelimited(const std::string& path, const LayoutWishes& wishes,
                           TableLayout* layout) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> lines, FirstLines(path));
  const absl::string_view first = absl::StripLeadingAsciiWhitespace(lines.front());
  CISTERN_RETURN_IF_ERROR(CheckNoJsonArray(path));
  if (absl::StartsWith(first, "{")) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        ": is JSON, but has no object a line: if it is a model file, train it with cistern train ",
        path, "; if it is a table, write an object a line (JSON Lines): jq -c . ", path,
        " > table.jsonl; of pandas' columns, to_json(\"table.jsonl\", orient=\"records\", "
        "lines=True)"));
  }
  if (lines.size() == 1 && absl::StrContains(lines.front(), '\r')) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": its lines end in CR alone: tr '\\r' '\\n' < ", path, " > table.csv"));
  }
  const bool free = wishes.delimiter == 0 && wishes.columns.empty();
  if (free && FindFeatureLines(lines, layout)) return absl::OkStatus();
  if (free && AreVowpalWabbit(lines)) {
    layout->format = TextFormat::kVw;
    layout->delimiter = 0;
    layout->values = VwValues(lines);
    return absl::OkStatus();
  }
  const std::vector<char> delimiters =
      wishes.delimiter != 0 ? std::vector{wishes.delimiter}
                            : std::vector<char>(std::begin(kDelimiters), std::end(kDelimiters));
  const auto [delimiter, best] = FindDelimiter(lines, delimiters);
  if (best.first == 0) return NoFields(path, lines, wishes.delimiter);
  layout->delimiter = delimiter;
  if (layout->delimiter == '\t') layout->format = TextFormat::kTsv;
  layout->trim = layout->delimiter != ' ' && HasSpaces(lines, layout->delimiter);
  if (!wishes.columns.empty()) {
    layout->columns = wishes.columns;
    layout->header = false;
    return absl::OkStatus();
  }
  layout->columns = FieldsOf(lines.front(), layout->delimiter, layout->trim);
  if (std::count(layout->columns.begin(), layout->columns.end(), "") > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        ": line 1 leaves several columns without a name: if it is a title, remove the lines "
        "above the header (tail -n +2 ",
        path, " > table.csv); else name every column"));
  }
  CISTERN_RETURN_IF_ERROR(CheckFirstLine(path, lines, *layout, best));
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 1; i < lines.size(); ++i) {
    rows.push_back(FieldsOf(lines[i], layout->delimiter, layout->trim));
  }
  // A header with a quoted line end is longer than its first line; it is never a row of numbers.
  layout->header = layout->columns.empty() || IsHeader(layout->columns, rows, wishes.mentions);
  if (!layout->header) {
    for (size_t i = 0; i < layout->columns.size(); ++i) {
      layout->columns[i] = absl::StrCat("c", i + 1);
    }
  }
  return absl::OkStatus();
}

// The columns that are parts of others, by the first rows.
std::vector<std::string> FindParts(TextTable* table) {
  constexpr size_t kRowsSeen = 1000;
  PartFinder finder(table->columns().size());
  TextRow row;
  for (size_t i = 0; i < kRowsSeen; ++i) {
    const absl::StatusOr<bool> found = table->Next(&row);
    if (!found.ok() || !*found) break;  // the inspection reads all rows, and reports it
    finder.Add(row.fields);
  }
  return NewParts(finder, table->columns());
}

// kInvalidArgument unless each column of add_columns is in one of the files, mostly the latest.
absl::Status CheckAdded(const std::vector<std::string>& files, const LayoutWishes& wishes,
                        const TableLayout& layout) {
  std::set<std::string> missing(wishes.add_columns.begin(), wishes.add_columns.end());
  for (auto file = files.rbegin(); file != files.rend() && !missing.empty(); ++file) {
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<TextTable> table, OpenLaidOut(*file, layout));
    for (const std::string& name : table->columns()) missing.erase(name);
  }
  if (missing.empty()) return absl::OkStatus();
  return WithOptions(absl::InvalidArgumentError(
                         absl::StrCat("no file has a column '", *missing.begin(),
                                      "': its columns are ", absl::StrJoin(layout.columns, ", "))),
                     {"add_column"});
}

}  // namespace

absl::StatusOr<TableLayout> FindLayout(const std::string& table, const LayoutWishes& wishes) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> files, TableFiles(table));
  const std::string& path = files.front();
  TableLayout layout;
  const bool is_text = !IsParquetFile(path) && !IsJsonLines(path);
  if (is_text) CISTERN_RETURN_IF_ERROR(FindDelimited(path, wishes, &layout));
  layout.partitions = PartitionColumns(table);
  CISTERN_ASSIGN_OR_RETURN(layout.members, FindJsonColumns(files));
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<TextTable> opened,  // refuses duplicate names
                           OpenLaidOut(path, layout));
  if (!wishes.add_columns.empty()) {
    layout.columns = opened->columns();
    CISTERN_RETURN_IF_ERROR(CheckAdded(files, wishes, layout));
    layout.added = wishes.add_columns;
    opened = WithEmptyColumns(std::move(opened), layout.added);
  }
  layout.columns = opened->columns();
  layout.lists = opened->list_columns();
  if (!layout.has_feature_lines()) layout.parts = FindParts(opened.get());
  layout.columns.insert(layout.columns.end(), layout.parts.begin(), layout.parts.end());
  return layout;
}

bool UseSingleSlot(TableLayout* layout) {
  if (!EntryOf(layout->format).by_position || layout->single_slot) return false;
  layout->single_slot = true;
  layout->columns = {"label", "features"};
  return true;
}

absl::StatusOr<std::unique_ptr<TextTable>> OpenLaidOut(const std::string& path,
                                                       const TableLayout& layout) {
  std::unique_ptr<TextTable> table;
  if (IsParquetFile(path)) {
    CISTERN_ASSIGN_OR_RETURN(table, OpenParquetTable(path));
  } else if (IsJsonLines(path)) {
    CISTERN_ASSIGN_OR_RETURN(table, OpenJsonLines(path, {}, &layout.members));
  } else {
    const TextFormatEntry& format = EntryOf(layout.format);
    TextOptions options;
    options.delimiter = layout.delimiter;
    options.quotes = format.quotes;
    options.trim = layout.trim;
    options.single_slot = layout.single_slot;
    options.values = layout.values;
    if (format.has_features()) options.columns = layout.columns;
    if (!layout.header) options.columns = OwnColumns(layout);
    CISTERN_ASSIGN_OR_RETURN(table, format.open(path, options));
  }
  table = WithPartitions(std::move(table), path, layout.partitions);
  return WithParts(WithEmptyColumns(std::move(table), layout.added), path, layout.parts);
}

}  // namespace cistern::data
