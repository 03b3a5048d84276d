#include "worker/data/prepare/convert_check.h"

#include <cmath>
#include <filesystem>
#include <limits>

#include "common/io/new_file.h"
#include "worker/data/format/output_folder.h"
#include "worker/data/prepare/column_list.h"
#include "worker/data/prepare/column_plan.h"

namespace cistern::data {
namespace {

KeyMode KeysOf(const ConvertOptions& options) {
  if (options.keys != KeyMode::kAuto) return options.keys;
  const TextFormatEntry& format = EntryOf(options.format);
  return format.has_features() && !format.names ? KeyMode::kRaw : KeyMode::kHash;
}

// Refuses flags that a format with fixed columns would silently ignore.
absl::Status CheckFormat(const ConvertOptions& options) {
  const TextFormatEntry& format = EntryOf(options.format);
  if (!format.has_own_columns()) return absl::OkStatus();
  if (format.has_features() && options.any_value && !options.key_weights.empty()) {
    return WithOptions(
        absl::InvalidArgumentError("values are either the weights of keys or dropped, not both"),
        {"key_weights", "any_value"});
  }
  const char* const option = !options.columns.empty()                             ? "columns"
                             : options.label != std::vector<std::string>{"label"} ? "label"
                             : format.has_features() && options.delimiter != 0    ? "delimiter"
                                                                                  : "";
  if (*option == '\0') return absl::OkStatus();
  return WithOptions(
      absl::InvalidArgumentError(absl::StrCat(option, " does not apply to the format ", format.word,
                                              ", which has its own: omit it, or use csv or tsv")),
      {option, "format"});
}

absl::Status CheckNumbers(const ConvertOptions& options) {
  if (!(std::abs(options.dense_missing) <= std::numeric_limits<float>::max())) {
    return WithOptions(absl::InvalidArgumentError(
                           "the value of missing numbers must be a number that fits a float"),
                       {"dense_missing"});
  }
  CISTERN_RETURN_IF_ERROR(CheckNegativeRate(options.negative_rate));
  if (options.label_threshold.has_value() && std::isnan(*options.label_threshold)) {
    return WithOptions(
        absl::InvalidArgumentError("the threshold of labels must be a number, not NaN"),
        {"label_threshold"});
  }
  if (options.label_threshold.has_value() && !options.positive.empty()) {
    return WithOptions(
        absl::InvalidArgumentError(
            "positive texts are for text labels, a threshold is for numeric ones: give only one"),
        {"positive", "label_threshold"});
  }
  for (const char part : {options.delimiter, options.separator}) {
    if (part != '"' && part != '\n' && part != '\r') continue;
    return WithOptions(absl::InvalidArgumentError(
                           "delimiter and separator must be neither a quote nor a line end"),
                       {"delimiter", "separator"});
  }
  return absl::OkStatus();
}

// The vocabulary is often written next to the data set, in a folder that this conversion creates.
absl::Status MakeParent(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (folder.empty() || std::filesystem::create_directories(folder, error) || !error) {
    return absl::OkStatus();
  }
  return WithOptions(absl::InvalidArgumentError(absl::StrCat(
                         "cannot create the folder ", folder.string(), ": ", error.message())),
                     {"vocab_out"});
}

// Checks that the conversion does not overwrite its own input.
absl::Status CheckFiles(const ConvertOptions& options) {
  std::vector<std::string> read;
  for (const std::string& input : options.input) {
    if (input != "-") read.push_back(input);
  }
  if (!options.vocab_in.empty()) read.push_back(options.vocab_in);
  if (!options.recipe.empty()) {
    std::error_code error;
    const bool folder = std::filesystem::is_directory(options.recipe, error);
    read.push_back(folder ? absl::StrCat(options.recipe, "/", kRecipeFile) : options.recipe);
  }
  CISTERN_RETURN_IF_ERROR(OutputFolder::CheckSpares(options.out, read));
  if (options.vocab_out.empty()) return absl::OkStatus();
  CISTERN_RETURN_IF_ERROR(OutputFolder::CheckSpares(options.out, {options.vocab_out}));
  CISTERN_RETURN_IF_ERROR(MakeParent(options.vocab_out));
  return WithOptions(NewFile::Check(options.vocab_out, read), {"vocab_out"});
}

}  // namespace

absl::Status CheckNegativeRate(double rate) {
  if (rate > 0 && rate <= 1) return absl::OkStatus();
  return WithOptions(
      absl::InvalidArgumentError(absl::StrCat(
          "the share of negative rows to keep must be above 0 and at most 1, not ", rate)),
      {"negative_rate"});
}

bool WantsVocabulary(const ConvertOptions& options) {
  return options.min_count > 1 || options.fit_rows > 0 || !options.vocab_in.empty() ||
         !options.vocab_out.empty();
}

// Fills in the values that depend on the format.
absl::StatusOr<ConvertOptions> ResolveConversion(ConvertOptions options) {
  const TextFormatEntry& format = EntryOf(options.format);
  if (options.delimiter == 0) options.delimiter = format.delimiter;
  options.keys = KeysOf(options);
  while (options.out.size() > 1 && options.out.back() == '/') options.out.pop_back();
  if (options.dense_transform == DenseTransform::kAuto) {
    options.dense_transform = format.log1p > 0 ? DenseTransform::kLog1p : DenseTransform::kNone;
  }
  absl::StatusOr<std::vector<std::string>> columns = ColumnsOf(format, options.columns);
  if (!columns.ok()) return WithOptions(columns.status(), {"columns"});
  absl::StatusOr<std::vector<std::string>> log1p = ExpandColumns(options.log1p);
  if (!log1p.ok()) return WithOptions(log1p.status(), {"log1p"});
  options.log1p = *std::move(log1p);
  options.columns = *std::move(columns);
  if (format.has_own_columns()) options.label = {"label"};
  if (format.by_position && options.libsvm_slots == LibsvmSlots::kSingle) {
    options.multi = {"features"};
  }
  if (format.by_position && (!options.multi.empty() || !options.key_weights.empty()))
    options.separator = ' ';
  return options;
}

absl::Status CheckConversion(const ConvertOptions& options) {
  const auto invalid = [](absl::string_view why) { return absl::InvalidArgumentError(why); };
  const bool raw = KeysOf(options) != KeyMode::kHash;
  if (options.input.empty()) return WithOptions(invalid("no input was named"), {"input"});
  if (options.key_bits != 32 && options.key_bits != 64)
    return WithOptions(invalid("a key has 32 or 64 bits"), {"key_bits"});
  if (options.samples_per_file == 0)
    return WithOptions(invalid("the samples per file must be at least 1"), {"samples_per_file"});
  CISTERN_RETURN_IF_ERROR(CheckFormat(options));
  CISTERN_RETURN_IF_ERROR(CheckNumbers(options));
  CISTERN_RETURN_IF_ERROR(CheckFiles(options));
  if (raw && !options.bucket.empty())
    return WithOptions(invalid("a bucket makes text, which needs hashed keys"),
                       {"bucket", "keys=hash"});
  if (raw && !options.cross.empty())
    return WithOptions(invalid("a cross needs hashed keys"), {"cross", "keys=hash"});
  if (raw && !options.share.empty()) {
    return WithOptions(invalid("raw keys are equal in all columns anyway"), {"share"});
  }
  if (raw && options.missing == StandIn::kKey) {
    return WithOptions(invalid("a key for missing values needs hashed keys"),
                       {"missing", "keys=hash"});
  }
  const bool counts = options.vocab_in.empty() && WantsVocabulary(options);
  const bool standardizes = options.dense_transform == DenseTransform::kStandardize;
  if (options.extend && options.recipe.empty())
    return WithOptions(invalid("there is no recipe to extend"), {"extend", "recipe"});
  for (const std::string& input : options.input) {
    if (input != "-" || !(counts || standardizes || options.extend)) continue;
    if (options.extend) {
      return WithOptions(
          invalid(
              "standard input cannot be read twice, which extending a recipe needs: name a file"),
          {"extend"});
    }
    return WithOptions(
        invalid(
            counts ? "standard input cannot be read twice: name a file, or give a vocabulary"
                   : "standard input cannot be read twice, which standardizing needs: name a file"),
        {"vocab_in"});
  }
  if (!WantsVocabulary(options)) return absl::OkStatus();
  if (raw && options.rare == StandIn::kKey) {
    return WithOptions(
        invalid("rare values become a hashed key: hash the keys, or drop rare values"),
        {"keys=hash", "rare=none"});
  }
  if (!options.vocab_in.empty() && (!options.vocab_out.empty() || options.fit_rows > 0)) {
    return WithOptions(
        invalid("a given vocabulary replaces counting: none is written or fitted then"),
        {"vocab_in", "vocab_out", "fit_rows"});
  }
  return absl::OkStatus();
}

}  // namespace cistern::data
