#include "worker/data/prepare/planned_recipe.h"

#include <algorithm>
#include <utility>

#include "worker/data/prepare/text_note.h"
#include "worker/data/recipe/json_table.h"
#include "worker/data/recipe/parquet_table.h"
#include "worker/data/recipe/table_files.h"
#include "worker/data/recipe/value_text.h"

namespace cistern::data {

namespace {

// Whether a dense feature or a bucket reads the column.
bool ReadsNumbers(const Recipe& recipe, const std::string& column) {
  const auto reads = [&](const auto& source) { return source.bucket && source.column == column; };
  const auto is = [&](const Recipe::Dense& dense) { return dense.column == column; };
  if (std::any_of(recipe.dense.begin(), recipe.dense.end(), is)) return true;
  return std::any_of(recipe.slots.begin(), recipe.slots.end(), [&](const Recipe::Slot& slot) {
    return reads(slot) || std::any_of(slot.cross.begin(), slot.cross.end(), reads);
  });
}

FeatureValues FeatureValuesOf(const ConvertOptions& options) {
  return data::FeatureValuesOf(!options.key_weights.empty(), options.any_value);
}

}  // namespace

Recipe RecipeOf(const ConvertOptions& options, const ColumnPlan& plan,
                const std::vector<std::string>& columns) {
  Recipe recipe;
  recipe.layout = {options.format,          options.delimiter,
                   options.columns.empty(), options.libsvm_slots == LibsvmSlots::kSingle,
                   options.any_value,       columns};
  const auto is_named = [&](const std::vector<std::string>& names, size_t column) {
    return std::find(names.begin(), names.end(), columns[column]) != names.end();
  };
  for (const size_t column : plan.label) {
    recipe.labels.push_back(
        {columns[column], options.label_threshold, options.positive, options.negative});
  }
  if (plan.weight) recipe.weight = columns[*plan.weight];
  for (const size_t column : plan.dense) {
    Recipe::Dense& dense = recipe.dense.emplace_back();
    dense.column = columns[column];
    dense.transform =
        is_named(options.log1p, column) ? DenseTransform::kLog1p : options.dense_transform;
    dense.missing = options.dense_missing;
    const auto bounds = options.bounds.find(dense.column);
    if (bounds == options.bounds.end()) continue;
    dense.low = bounds->second.first;
    dense.high = bounds->second.second;
  }
  for (const size_t column : plan.dense) {
    const auto pieces = options.pieces.find(columns[column]);
    if (pieces == options.pieces.end()) continue;
    for (size_t i = 0; i + 1 < pieces->second.size(); ++i) {
      Recipe::Dense& piece = recipe.dense.emplace_back();
      piece.column = columns[column];
      piece.transform = DenseTransform::kStandardize;
      piece.low = pieces->second[i];
      piece.high = pieces->second[i + 1];
    }
  }
  for (const size_t column : plan.dense) {
    if (!is_named(options.told_missing, column)) continue;
    Recipe::Dense& told = recipe.dense.emplace_back();
    told.column = columns[column];
    told.missing = 1;
    told.low = told.high = 0;  // any number is 0
  }
  const auto source = [&](const ColumnPlan::Slot& slot) {
    Recipe::Source read;
    read.column = columns[slot.column];
    read.bucket = slot.bucket;
    read.integer = !slot.bucket && is_named(options.integers, slot.column);
    if (!slot.multi) return read;
    const auto form = options.forms.find(read.column);
    read.separator = form == options.forms.end() ? options.separator : form->second.separator;
    read.list = form != options.forms.end() && form->second.list;
    read.weights = form != options.forms.end() && form->second.weights;
    return read;
  };
  for (const ColumnPlan::Slot& slot : plan.slots) {
    const Recipe::Source read = source(slot);
    recipe.slots.push_back(
        {read.column, read.bucket, read.separator, {}, read.integer, read.list, read.weights});
    if (slot.shares) recipe.slots.back().shares = columns[*slot.shares];
    if (!slot.key_weights) continue;
    const auto form = options.forms.find(read.column);
    if (form != options.forms.end()) recipe.slots.back().weight_mark = form->second.weight_mark;
    recipe.slots.back().key_weights = true;
    recipe.slots.back().weights = !slot.weight_column;
    if (slot.weight_column) recipe.slots.back().weight_column = columns[*slot.weight_column];
  }
  for (const std::vector<ColumnPlan::Slot>& cross : plan.crosses) {
    std::vector<Recipe::Source> sources;
    for (const ColumnPlan::Slot& slot : cross) sources.push_back(source(slot));
    Recipe::Slot& crossed = recipe.slots.emplace_back();
    crossed.column = CrossName(sources);
    crossed.cross = std::move(sources);
  }
  for (const auto& [column, form] : options.numbers) {
    if (ReadsNumbers(recipe, column)) recipe.numbers.push_back({column, form});
  }
  recipe.trim = options.trim;
  recipe.missing_values = options.missing_values;
  recipe.missing = options.missing;
  recipe.keys = options.keys;
  recipe.key_bits = options.key_bits;
  recipe.rare = options.rare;
  return recipe;
}

std::vector<std::string> FindNumbers(TextTable* table, Recipe* recipe) {
  constexpr size_t kRowsSeen = 10000;
  const std::vector<std::string> columns = table->columns();
  std::vector<std::vector<std::string>> texts(columns.size());
  TextRow row;
  for (size_t rows = 0; rows < kRowsSeen; ++rows) {
    const absl::StatusOr<bool> found = table->Next(&row);
    if (!found.ok() || !*found) break;  // the conversion reads all rows, and reports it
    for (size_t i = 0; i < columns.size(); ++i) {
      if (!ReadsNumbers(*recipe, columns[i])) continue;
      if (!IsUsuallyMissing(row.fields[i])) texts[i].emplace_back(row.fields[i]);
    }
  }
  std::vector<std::string> sentences;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (NumberFormOf(*recipe, columns[i]) != nullptr) continue;
    std::optional<NumberForm> form = FindNumberForm(texts[i]);
    if (form) form->none.clear();  // a text that is no number is an error, with its line
    if (!form || *form == NumberForm()) continue;
    recipe->numbers.push_back({columns[i], *form});
    sentences.push_back(absl::StrCat("the numbers of '", columns[i], "': ", NoteOf(*form)));
  }
  return sentences;
}

absl::Status TakeLists(const TextTable& table, ConvertOptions* options) {
  const auto holds = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const auto weighs = [&](const std::string& name) {
    return std::any_of(options->key_weights.begin(), options->key_weights.end(),
                       [&](const auto& given) { return KeyWeightColumns(given).second == name; });
  };
  for (const std::string& name : table.list_columns()) {
    if (holds(options->ignore, name) || holds(options->label, name) || weighs(name)) continue;
    if (name == options->weight) {
      return absl::InvalidArgumentError(
          absl::StrCat("column '", name, "' holds lists, but a weight is one number"));
    }
    if (holds(options->dense, name) || holds(options->bucket, name)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "column '", name, "' holds lists, but a dense feature or a bucket takes one number"));
    }
    options->forms[name] = {kListSeparator};
    if (!holds(options->multi, name)) options->multi.push_back(name);
  }
  return absl::OkStatus();
}

absl::Status ExpandInput(ConvertOptions* options) {
  options->partitions.clear();
  for (const std::string& path : options->input) {
    for (const std::string& column : PartitionColumns(path)) options->partitions.push_back(column);
  }
  CISTERN_ASSIGN_OR_RETURN(options->input, TableFiles(options->input));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<TextTable>> OpenInput(const ConvertOptions& options,
                                                     const std::vector<std::string>& columns,
                                                     const JsonColumns& members,
                                                     const std::string& path) {
  if (IsParquetFile(path)) return OpenParquetTable(path);
  const TextFormatEntry& format = EntryOf(options.format);
  if (format.is_default && IsJsonLines(path)) return OpenJsonLines(path, {}, &members);
  return format.open(path, {.delimiter = options.delimiter,
                            .quotes = format.quotes,
                            .columns = format.has_features() ? columns : options.columns,
                            .trim = options.trim,
                            .single_slot = options.libsvm_slots == LibsvmSlots::kSingle,
                            .values = FeatureValuesOf(options)});
}

absl::Status WriteRare(FileSystem& files, const std::string& path, Vocabulary* rare) {
  constexpr uint64_t kMaxValues = 5000000;
  if (path.empty()) return absl::OkStatus();
  for (uint64_t least = 2; rare->size() > kMaxValues; ++least) rare->Keep(least);
  return rare->Write(files, path).status();
}

}  // namespace cistern::data
