#include "worker/data/prepare/convert.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_join.h"
#include "worker/data/format/norm_set_writer.h"
#include "worker/data/format/output_file.h"
#include "worker/data/format/output_folder.h"
#include "worker/data/prepare/column_list.h"
#include "worker/data/prepare/column_plan.h"
#include "worker/data/prepare/row_encoder.h"
#include "worker/data/prepare/text_table.h"
#include "worker/data/prepare/vocabulary.h"

namespace cistern {
namespace {

constexpr size_t kRowsPerBlock = 4096;

KeyMode KeysOf(const ConvertOptions& options) {
  if (options.keys != KeyMode::kAuto) return options.keys;
  return options.format == TextFormat::kLibsvm ? KeyMode::kRaw : KeyMode::kHash;
}

// Fills in the values that depend on the format.
absl::StatusOr<ConvertOptions> Resolved(ConvertOptions options) {
  const bool libsvm = options.format == TextFormat::kLibsvm;
  const bool criteo = options.format == TextFormat::kCriteo;
  if (options.delimiter == 0) options.delimiter = options.format == TextFormat::kCsv ? ',' : '\t';
  options.keys = KeysOf(options);
  while (options.out.size() > 1 && options.out.back() == '/') options.out.pop_back();
  if (options.dense_transform == DenseTransform::kAuto) {
    options.dense_transform = criteo ? DenseTransform::kLog1p : DenseTransform::kNone;
  }
  absl::StatusOr<std::vector<std::string>> columns = ExpandColumns(options.columns);
  if (!columns.ok()) return AddContext(columns.status(), "--columns");
  options.columns = criteo ? CriteoColumns() : *std::move(columns);
  if (criteo || libsvm) options.label = {"label"};
  if (libsvm && options.libsvm_slots == LibsvmSlots::kSingle) {
    options.multi = {"features"};
    options.separator = ' ';
  }
  return options;
}

bool WantsVocabulary(const ConvertOptions& options) {
  return options.min_count > 1 || options.fit_rows > 0 || !options.vocab_in.empty() ||
         !options.vocab_out.empty();
}

// Refuses flags that a format with fixed columns would silently ignore.
absl::Status CheckFormat(const ConvertOptions& options) {
  const bool libsvm = options.format == TextFormat::kLibsvm;
  if (!libsvm && options.format != TextFormat::kCriteo) return absl::OkStatus();
  const char* const flag = !options.columns.empty()                             ? "--columns"
                           : options.label != std::vector<std::string>{"label"} ? "--label"
                           : libsvm && options.delimiter != 0                   ? "--delimiter"
                                                                                : "";
  if (*flag == '\0') return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " does not apply to --format=", libsvm ? "libsvm" : "criteo",
                   ", which has its own: omit it, or use --format=csv or tsv"));
}

absl::Status CheckNumbers(const ConvertOptions& options) {
  if (!(std::abs(options.dense_missing) <= std::numeric_limits<float>::max())) {
    return absl::InvalidArgumentError("--dense-missing must be a number that fits a float");
  }
  if (options.label_threshold.has_value() && std::isnan(*options.label_threshold)) {
    return absl::InvalidArgumentError("--label-threshold must be a number, not NaN");
  }
  for (const char part : {options.delimiter, options.separator}) {
    if (part != '"' && part != '\n' && part != '\r') continue;
    return absl::InvalidArgumentError(
        "--delimiter and --separator must be neither a quote nor a line end");
  }
  return absl::OkStatus();
}

// The vocabulary often goes beside a data set whose folder this conversion is the first to make.
absl::Status MakeParent(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (folder.empty() || std::filesystem::create_directories(folder, error) || !error) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("--vocab-out: cannot create the folder ",
                                                 folder.string(), ": ", error.message()));
}

// Checks that the conversion does not overwrite its own input.
absl::Status CheckFiles(const ConvertOptions& options) {
  std::vector<std::string> read;
  for (const std::string& input : options.input) {
    if (input != "-") read.push_back(input);
  }
  if (!options.vocab_in.empty()) read.push_back(options.vocab_in);
  CISTERN_RETURN_IF_ERROR(OutputFolder::CheckSpares(options.out, read));
  if (options.vocab_out.empty()) return absl::OkStatus();
  CISTERN_RETURN_IF_ERROR(OutputFolder::CheckSpares(options.out, {options.vocab_out}));
  CISTERN_RETURN_IF_ERROR(MakeParent(options.vocab_out));
  return AddContext(OutputFile::Check(options.vocab_out, read), "--vocab-out");
}

absl::Status Check(const ConvertOptions& options) {
  const auto invalid = [](absl::string_view why) { return absl::InvalidArgumentError(why); };
  const bool raw = KeysOf(options) == KeyMode::kRaw;
  if (options.input.empty()) return invalid("no input: use --input=FILE");
  if (options.key_bits != 32 && options.key_bits != 64) return invalid("use --key-bits 32 or 64");
  if (options.samples_per_file == 0) return invalid("--samples-per-file must be at least 1");
  CISTERN_RETURN_IF_ERROR(CheckFormat(options));
  CISTERN_RETURN_IF_ERROR(CheckNumbers(options));
  CISTERN_RETURN_IF_ERROR(CheckFiles(options));
  if (raw && !options.bucket.empty()) return invalid("--bucket makes text: it needs --keys=hash");
  if (raw && options.missing == StandIn::kKey) {
    return invalid("--missing=key creates a hashed key: it needs --keys=hash");
  }
  if (!WantsVocabulary(options)) return absl::OkStatus();
  if (raw && options.rare == StandIn::kKey) {
    return invalid(
        "rare values become a hashed key: use --keys=hash, or drop them with --rare=none");
  }
  if (!options.vocab_in.empty() && (!options.vocab_out.empty() || options.fit_rows > 0)) {
    return invalid("--vocab-in replaces counting: it excludes --vocab-out and --fit-rows");
  }
  for (const std::string& input : options.input) {
    if (input == "-" && options.vocab_in.empty()) {
      return invalid("standard input cannot be read twice: name a file, or give --vocab-in");
    }
  }
  return absl::OkStatus();
}

class Conversion {
 public:
  Conversion(const ConvertOptions& options, const ConvertProgressCallback& progress)
      : options_(options),
        progress_(progress),
        files_(options.files == nullptr ? own_ : *options.files) {}
  absl::StatusOr<ConvertSummary> Run();

 private:
  using OnRow = std::function<absl::Status(const TextRow&)>;

  absl::StatusOr<std::unique_ptr<TextTable>> OpenTable(const std::string& path) const;
  // Creates the encoder for the columns of the first input.
  absl::Status Plan(const std::vector<std::string>& columns);
  // Calls on_row for the rows that the options select, up to `limit` (0: all).
  absl::Status ForEachRow(const char* stage, uint64_t limit, const OnRow& on_row);
  absl::Status Report(const char* stage, uint64_t bytes) const;
  absl::Status FillVocabulary();
  absl::Status Write(const std::string& folder, ConvertSummary* summary);

  const ConvertOptions options_;
  const ConvertProgressCallback& progress_;
  LocalFileSystem own_;
  FileSystem& files_;
  uint64_t bytes_total_ = 0;
  std::vector<std::string> columns_;
  std::unique_ptr<Vocabulary> vocabulary_;
  std::unique_ptr<RowEncoder> encoder_;
  uint64_t rows_ = 0;  // selected rows in the current stage
};

absl::StatusOr<std::unique_ptr<TextTable>> Conversion::OpenTable(const std::string& path) const {
  if (options_.format == TextFormat::kLibsvm) {
    return OpenLibsvm(path, {options_.libsvm_slots == LibsvmSlots::kSingle, options_.any_value});
  }
  return OpenDelimited(path,
                       {options_.delimiter, options_.format == TextFormat::kCsv, options_.columns});
}

absl::Status Conversion::Plan(const std::vector<std::string>& columns) {
  columns_ = columns;
  CISTERN_ASSIGN_OR_RETURN(const ColumnPlan plan, PlanColumns(options_, columns));
  encoder_ = std::make_unique<RowEncoder>(options_, plan, columns, vocabulary_.get());
  return absl::OkStatus();
}

absl::Status Conversion::ForEachRow(const char* stage, uint64_t limit, const OnRow& on_row) {
  uint64_t seen = 0, bytes_before = 0;
  rows_ = 0;
  for (const std::string& path : options_.input) {
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<TextTable> table, OpenTable(path));
    if (encoder_ == nullptr) CISTERN_RETURN_IF_ERROR(AddContext(Plan(table->columns()), path));
    if (table->columns() != columns_) {
      return absl::DataLossError(absl::StrCat(
          path, ": its columns are ", absl::StrJoin(table->columns(), ", "), ", but those of ",
          options_.input[0], " are ", absl::StrJoin(columns_, ", ")));
    }
    for (TextRow row; limit == 0 || rows_ < limit;) {
      CISTERN_ASSIGN_OR_RETURN(const bool found, table->Next(&row));
      if (!found) break;
      if (seen++ < options_.skip_rows) continue;
      CISTERN_RETURN_IF_ERROR(AddContext(on_row(row), absl::StrCat(path, ": line ", row.line)));
      if (++rows_ % kRowsPerBlock == 0) {
        CISTERN_RETURN_IF_ERROR(Report(stage, bytes_before + table->bytes_read()));
      }
    }
    bytes_before += table->bytes_read();
  }
  return Report(stage, bytes_before);
}

absl::Status Conversion::Report(const char* stage, uint64_t bytes) const {
  if (!progress_ || progress_({stage, rows_, bytes, bytes_total_})) return absl::OkStatus();
  return absl::CancelledError("the conversion was stopped; nothing was written");
}

absl::Status Conversion::FillVocabulary() {
  if (!options_.vocab_in.empty()) {
    CISTERN_RETURN_IF_ERROR(vocabulary_->Read(options_.vocab_in));
  } else {
    uint64_t limit = options_.max_rows;
    if (options_.fit_rows > 0 && (limit == 0 || options_.fit_rows < limit)) {
      limit = options_.fit_rows;
    }
    CISTERN_RETURN_IF_ERROR(ForEachRow(
        "counting values", limit, [this](const TextRow& row) { return encoder_->Count(row); }));
  }
  vocabulary_->Keep(options_.min_count);
  return absl::OkStatus();
}

absl::Status Conversion::Write(const std::string& folder, ConvertSummary* summary) {
  SampleBlock block;
  block.Reset(1);
  std::unique_ptr<NormSetWriter> writer;
  const auto flush = [&]() -> absl::Status {
    if (writer == nullptr) {
      const NormWriterOptions options = {options_.check, options_.key_bits == 64,
                                         encoder_->shape()};
      writer = std::make_unique<NormSetWriter>(files_, folder, options, options_.samples_per_file);
    }
    CISTERN_RETURN_IF_ERROR(writer->Append(block));
    block.Reset(1);
    return absl::OkStatus();
  };
  const auto on_row = [&](const TextRow& row) -> absl::Status {
    CISTERN_RETURN_IF_ERROR(encoder_->Encode(row, &block));
    return block.size < kRowsPerBlock ? absl::OkStatus() : flush();
  };
  CISTERN_RETURN_IF_ERROR(ForEachRow("writing", options_.max_rows, on_row));
  CISTERN_RETURN_IF_ERROR(flush());
  CISTERN_RETURN_IF_ERROR(writer->Close());
  summary->samples = rows_;
  summary->files = writer->files();
  summary->bytes = writer->bytes();
  summary->shape = encoder_->shape();
  encoder_->Summarize(summary);
  return absl::OkStatus();
}

absl::StatusOr<ConvertSummary> Conversion::Run() {
  for (const std::string& path : options_.input) {
    std::error_code error;
    const auto size = std::filesystem::file_size(path, error);
    if (!error) bytes_total_ += size;
  }
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<OutputFolder> out,
                           OutputFolder::Create(files_, options_.out, options_.overwrite));
  if (WantsVocabulary(options_)) {
    vocabulary_ = std::make_unique<Vocabulary>(
        absl::StrCat(options_.keys == KeyMode::kRaw ? "raw " : "hash ", options_.key_bits));
    CISTERN_RETURN_IF_ERROR(FillVocabulary());
  }
  ConvertSummary summary;
  CISTERN_ASSIGN_OR_RETURN(const std::string folder, out->Subfolder(""));
  CISTERN_RETURN_IF_ERROR(Write(folder, &summary));
  if (summary.samples == 0) {
    return absl::DataLossError(absl::StrCat(
        absl::StrJoin(options_.input, ", "), ": no row to convert: ",
        options_.skip_rows > 0     ? "--skip-rows skips all of them"
        : options_.columns.empty() ? "no line follows the header line (lines end in LF or CR LF)"
                                   : "the input has no lines"));
  }
  if (vocabulary_ != nullptr) summary.vocabulary = vocabulary_->size();
  if (!options_.vocab_out.empty()) {
    CISTERN_RETURN_IF_ERROR(vocabulary_->Write(files_, options_.vocab_out));
  }
  CISTERN_RETURN_IF_ERROR(out->Publish());
  summary.file_list = options_.out + "/file_list.txt";
  return summary;
}

}  // namespace

absl::StatusOr<ConvertSummary> Convert(const ConvertOptions& options,
                                       const ConvertProgressCallback& progress) {
  CISTERN_RETURN_IF_ERROR(Check(options));
  CISTERN_ASSIGN_OR_RETURN(const ConvertOptions resolved, Resolved(options));
  return Conversion(resolved, progress).Run();
}

}  // namespace cistern
