#include "worker/data/prepare/convert.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "common/base/hash.h"
#include "worker/data/format/norm_set_writer.h"
#include "worker/data/format/output_folder.h"
#include "worker/data/prepare/column_plan.h"
#include "worker/data/prepare/conversion_counts.h"
#include "worker/data/prepare/convert_check.h"
#include "worker/data/prepare/moments.h"
#include "worker/data/prepare/number_slots.h"
#include "worker/data/prepare/planned_recipe.h"
#include "worker/data/recipe/ordered_table.h"
#include "worker/data/recipe/parquet_table.h"
#include "worker/data/recipe/part_columns.h"
#include "worker/data/recipe/recipe_folder.h"
#include "worker/data/recipe/spelling_check.h"
#include "worker/data/recipe/table_files.h"
#include "worker/data/recipe/text_samples.h"
#include "worker/data/recipe/text_table.h"
#include "worker/data/recipe/utf8_check.h"

namespace cistern::data {
namespace {

constexpr size_t kRowsPerBlock = 4096;
constexpr uint64_t kRowsForNumbers = 20000;

class Conversion {
 public:
  Conversion(const ConvertOptions& options, const ConvertProgressCallback& progress)
      : options_(options),
        progress_(progress),
        files_(options.files == nullptr ? own_ : *options.files) {}
  absl::StatusOr<ConvertSummary> Run();
  absl::StatusOr<Recipe> RunFit();
  absl::StatusOr<Recipe> RunExtend(std::vector<GrownColumn>* grown);

 private:
  using OnRow = std::function<absl::Status(const TextRow&)>;

  absl::StatusOr<std::unique_ptr<TextTable>> OpenTable(const std::string& path);
  // Finds the columns of the recipe in a table. The first table of a conversion without a given
  // recipe makes it.
  absl::Status Plan(const TextTable& table, const std::string& path);
  // Opens the next table and plans it. Its columns are in the order of the first one.
  absl::StatusOr<std::unique_ptr<TextTable>> OpenPlanned(const std::string& path);
  // Calls on_row for the rows that the options select, up to `limit` (0: all).
  absl::Status ForEachRow(const char* stage, uint64_t limit, const OnRow& on_row);
  // Whether negative_rate leaves out a row.
  bool IsLeftOut(uint64_t number, const TextRow& row) const;
  absl::Status Report(const char* stage, uint64_t bytes) const;
  absl::Status ReadGivenRecipe(const std::string& folder);
  absl::Status Extend(const FoundRecipe& found, const std::string& folder);
  bool standardizes() const { return options_.dense_transform == DenseTransform::kStandardize; }
  // Counts values, and what standardizing needs; writes the vocabulary, if there is one.
  absl::Status Fit(const std::string& folder);
  absl::Status WithColumnFix(const absl::Status& error,
                             const std::vector<std::string>& columns) const;
  absl::Status CountInput();
  absl::Status FitRow(const TextRow& row);
  // Remembers the first row with a value that is not UTF-8.
  void NoteEncoding(const TextRow& row);
  absl::Status Write(const std::string& folder, ConvertSummary* summary);

  const ConvertOptions options_;
  const ConvertProgressCallback& progress_;
  LocalFileSystem own_;
  FileSystem& files_;
  uint64_t bytes_total_ = 0;
  std::vector<std::string> columns_;           // of the first input
  std::optional<JsonColumns> members_;         // of the inputs that are JSON Lines
  std::optional<Recipe> recipe_;               // once it is known
  std::shared_ptr<const OwnedEncoder> given_;  // with options_.recipe
  std::unique_ptr<Vocabulary> vocabulary_;
  std::vector<GrownColumn> grown_;                       // the given vocabulary's, with extend
  std::vector<std::pair<std::string, uint64_t>> added_;  // to it, by column
  std::optional<uint64_t> vocabulary_xxh3_;
  std::vector<Moments> moments_;  // by dense feature
  std::unique_ptr<RowEncoder> own_encoder_;
  const RowEncoder* encoder_ = nullptr;
  EncoderWork work_;
  RowPlaces places_;                   // of the table that is read
  const std::string* path_ = nullptr;  // likewise
  std::string not_utf8_;
  std::vector<std::string> written_numbers_;
  std::vector<std::string> odd_fields_;  // of the tables of the current stage
  NumberSlots numbers_;
  std::optional<SpellingCheck> spelling_;  // with a given recipe
  std::vector<std::string> spellings_;     // its sentences, by slot
  uint64_t rows_ = 0;                      // selected rows in the current stage
  uint64_t left_out_ = 0;                  // likewise, by negative_rate
};

absl::StatusOr<std::unique_ptr<TextTable>> Conversion::OpenTable(const std::string& path) {
  if (!members_) {
    const bool may_be_json = given_ != nullptr || EntryOf(options_.format).is_default;
    CISTERN_ASSIGN_OR_RETURN(
        members_,
        FindJsonColumns(may_be_json ? options_.input : std::vector<std::string>(),
                        given_ != nullptr ? SeparatorsOf(given_->recipe()) : ListSeparators()));
  }
  if (given_ != nullptr) {
    return OpenRecipeTable(given_->recipe(), path, options_.delimiter, options_.columns,
                           &*members_);
  }
  return OpenInput(options_, columns_, *members_, path);
}

// error: of a column that the table lacks. The first line of a file without a header names none.
absl::Status Conversion::WithColumnFix(const absl::Status& error,
                                       const std::vector<std::string>& columns) const {
  const std::vector<std::string> read = ReadColumns(*recipe_);
  const bool names_any = std::any_of(read.begin(), read.end(), [&](const std::string& name) {
    return std::count(columns.begin(), columns.end(), name) > 0;
  });
  const std::vector<std::string>& all = recipe_->layout.columns;
  if (names_any || !options_.columns.empty()) {
    return WithColumnsFix(error, *recipe_, columns, Labels::kNeeded);
  }
  const std::string names = absl::StrJoin(all, ",");
  if (all.size() == columns.size()) {
    return WithOptions(
        WithMessage(error, absl::StrCat(error.message(),
                                        ": if the file has no header line, but the columns of the "
                                        "training table in their order, name them")),
        {absl::StrCat("columns=", names)});
  }
  return WithOptions(
      WithMessage(error,
                  absl::StrCat(error.message(), ": if the file has no header line, name its ",
                               columns.size(), " columns in their order; the training table had ",
                               all.size(), ", ", names)),
      {"columns=NAME,..."});
}

absl::Status Conversion::Plan(const TextTable& table, const std::string& path) {
  const std::vector<std::string>& columns = table.columns();
  if (!recipe_) {
    ConvertOptions options = options_;
    CISTERN_RETURN_IF_ERROR(AddContext(TakeLists(table, &options), path));
    const TextFormatEntry& format = EntryOf(options.format);
    if (format.has_features() && !format.by_position) {  // a field can hold several features
      options.separator = ' ';
      options.multi.assign(columns.begin() + 1, columns.end());
    }
    const absl::StatusOr<ColumnPlan> plan = PlanColumns(options, columns);
    if (!plan.ok()) return AddContext(plan.status(), path);
    recipe_ = RecipeOf(options, *plan, columns);
    std::error_code error;
    if (options.find_numbers && std::filesystem::is_regular_file(path, error)) {
      CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<TextTable> again, OpenTable(path));
      written_numbers_ = FindNumbers(again.get(), &*recipe_);
    }
  }
  if (encoder_ == nullptr) {
    recipe_->vocabulary_xxh3 = vocabulary_xxh3_;
    if (vocabulary_xxh3_ && options_.vocab_in.empty()) {
      recipe_->history.min_count = options_.min_count;
    }
    own_encoder_ =
        std::make_unique<RowEncoder>(*recipe_, vocabulary_xxh3_ ? vocabulary_.get() : nullptr);
    encoder_ = own_encoder_.get();
    work_ = encoder_->NewWork();
  }
  if (options_.negative_rate < 1 && recipe_->labels.size() != 1) {
    return WithOptions(absl::InvalidArgumentError(absl::StrCat(
                           path, ": has ", recipe_->labels.size(),
                           " labels: negative rows can be left out where there is one only")),
                       {"negative_rate"});
  }
  absl::StatusOr<RowPlaces> places = FindPlaces(*recipe_, columns, Labels::kNeeded);
  if (!places.ok()) return AddContext(WithColumnFix(places.status(), columns), path);
  places_ = *std::move(places);
  return AddContext(CheckReadable(table, ReadColumns(*recipe_)), path);
}

absl::StatusOr<std::unique_ptr<TextTable>> Conversion::OpenPlanned(const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<TextTable> table, OpenTable(path));
  std::vector<std::string> wanted = options_.partitions;
  if (given_ != nullptr) {
    const std::vector<std::string> read = ReadColumns(*recipe_);
    wanted.insert(wanted.end(), read.begin(), read.end());
  }
  table = WithPartitions(std::move(table), path, wanted);
  table = WithEmptyColumns(std::move(table), options_.add_columns);
  table = WithParts(std::move(table), path, options_.parts);
  if (columns_.empty()) columns_ = table->columns();
  if (given_ == nullptr) {
    CISTERN_ASSIGN_OR_RETURN(table, InOrder(std::move(table), path, columns_, options_.input[0]));
  }
  CISTERN_RETURN_IF_ERROR(Plan(*table, path));
  if (given_ == nullptr) return table;
  // Columns that the recipe does not read may be missing.
  table = InOrderAsFound(std::move(table), columns_);
  CISTERN_ASSIGN_OR_RETURN(places_, FindPlaces(*recipe_, columns_, Labels::kNeeded));
  return table;
}

absl::Status Conversion::ForEachRow(const char* stage, uint64_t limit, const OnRow& on_row) {
  uint64_t seen = 0, bytes_before = 0;
  rows_ = left_out_ = 0;
  odd_fields_.clear();
  for (const std::string& path : options_.input) {
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<TextTable> table, OpenPlanned(path));
    path_ = &path;
    for (TextRow row; limit == 0 || rows_ < limit;) {
      CISTERN_ASSIGN_OR_RETURN(const bool found, table->Next(&row));
      if (!found) break;
      const uint64_t number = seen++;
      if (number < options_.skip_rows) continue;
      if (options_.select && !options_.select(number, row.fields)) continue;
      if (IsLeftOut(number, row)) {
        ++left_out_;
        continue;
      }
      CISTERN_RETURN_IF_ERROR(AddContext(on_row(row), absl::StrCat(path, ": line ", row.line)));
      if (++rows_ % kRowsPerBlock == 0) {
        CISTERN_RETURN_IF_ERROR(Report(stage, bytes_before + table->bytes_read()));
      }
    }
    bytes_before += table->bytes_read();
    for (std::string& sentence : table->odd_fields()) odd_fields_.push_back(std::move(sentence));
  }
  return Report(stage, bytes_before);
}

bool Conversion::IsLeftOut(uint64_t number, const TextRow& row) const {
  if (options_.negative_rate >= 1) return false;
  // Another sequence than that of HeldOutRows.
  constexpr uint64_t kSeed = 0xd6e8feb86659fd93;
  const double draw = static_cast<double>(MixKey(number ^ kSeed) >> 11) * 0x1p-53;
  return draw >= options_.negative_rate && encoder_->IsNegative(row.fields, places_);
}

absl::Status Conversion::Report(const char* stage, uint64_t bytes) const {
  if (!progress_ || progress_({stage, rows_, bytes, bytes_total_})) return absl::OkStatus();
  return absl::CancelledError("the conversion was stopped; nothing was written");
}

absl::Status Conversion::FitRow(const TextRow& row) {
  if (vocabulary_ != nullptr) {
    CISTERN_RETURN_IF_ERROR(encoder_->Count(row.fields, places_, &work_, vocabulary_.get()));
  }
  if (!standardizes()) return absl::OkStatus();
  moments_.resize(recipe_->dense.size());
  for (size_t i = 0; i < moments_.size(); ++i) {
    CISTERN_ASSIGN_OR_RETURN(const std::optional<double> x,
                             encoder_->DenseNumber(row.fields[places_.dense[i]], i));
    if (x) moments_[i].Add(*x);
  }
  return absl::OkStatus();
}

absl::Status Conversion::CountInput() {
  if ((vocabulary_ != nullptr && options_.vocab_in.empty()) || standardizes()) {
    uint64_t limit = options_.max_rows;
    if (options_.fit_rows > 0 && (limit == 0 || options_.fit_rows < limit)) {
      limit = options_.fit_rows;
    }
    CISTERN_RETURN_IF_ERROR(
        ForEachRow("counting values", limit, [this](const TextRow& row) { return FitRow(row); }));
    for (size_t i = 0; i < moments_.size(); ++i) {
      if (recipe_->dense[i].transform == DenseTransform::kNone) continue;
      recipe_->dense[i].mean = moments_[i].mean;
      recipe_->dense[i].deviation = moments_[i].deviation();
    }
    encoder_ = nullptr;  // the next stage encodes with what was counted
  }
  if (vocabulary_ == nullptr) return absl::OkStatus();
  if (options_.rare_out.empty()) {
    vocabulary_->Keep(options_.min_count);
    return absl::OkStatus();
  }
  Vocabulary rare(VocabularyKind(*recipe_));
  vocabulary_->Keep(options_.min_count, &rare);
  return WriteRare(files_, options_.rare_out, &rare);
}

absl::Status Conversion::ReadGivenRecipe(const std::string& folder) {
  CISTERN_ASSIGN_OR_RETURN(const FoundRecipe found, ReadRecipe(files_, options_.recipe));
  CISTERN_ASSIGN_OR_RETURN(given_, OwnedEncoder::Open(found.recipe, found.vocabulary_path()));
  recipe_ = given_->recipe();
  encoder_ = &given_->encoder();
  work_ = encoder_->NewWork();
  spelling_.emplace(*encoder_);
  return options_.extend && given_->vocabulary() != nullptr ? Extend(found, folder)
                                                            : CopyRecipe(files_, found, folder);
}

// Writes the given recipe to `folder`, extended by the values of the input.
absl::Status Conversion::Extend(const FoundRecipe& found, const std::string& folder) {
  const Vocabulary& known = *given_->vocabulary();
  const std::string kind = VocabularyKind(*recipe_);
  Vocabulary counted(kind), earlier(kind), rare(kind);
  for (const std::string& path : options_.rare_in) {
    Vocabulary one(kind);
    CISTERN_RETURN_IF_ERROR(one.Read(path).status());
    earlier.Add(one);
  }
  CISTERN_RETURN_IF_ERROR(
      ForEachRow("counting values", options_.max_rows, [&](const TextRow& row) -> absl::Status {
        spelling_->Add(row.fields, places_);
        return encoder_->Count(row.fields, places_, &work_, &counted);
      }));
  // Older recipes do not say how rare is rare; their least count is no less. 10: a table's most.
  constexpr uint64_t kMaxMinCount = 10;
  const uint64_t min_count = recipe_->history.min_count > 0
                                 ? recipe_->history.min_count
                                 : std::min(known.LeastCount(), kMaxMinCount);
  vocabulary_ = std::make_unique<Vocabulary>(known);
  grown_ = vocabulary_->Grow(counted, earlier, min_count, &rare);
  spellings_ = spelling_->Sentences();
  for (size_t s = 0; s < spellings_.size(); ++s) {
    for (GrownColumn& column : grown_) {
      if (column.column == recipe_->slots[s].column) column.spelling = spellings_[s];
    }
  }
  spelling_.reset();
  for (const GrownColumn& column : grown_) {
    if (column.keys > 0) added_.emplace_back(column.column, column.keys);
  }
  CISTERN_RETURN_IF_ERROR(WriteRare(files_, options_.rare_out, &rare));
  if (added_.empty()) return CopyRecipe(files_, found, folder);
  recipe_->history.min_count = min_count;
  recipe_->history.extends.push_back(HashOf(found.recipe));
  const std::string path = absl::StrCat(folder, "/", kVocabularyFile);
  CISTERN_ASSIGN_OR_RETURN(recipe_->vocabulary_xxh3, vocabulary_->Write(files_, path));
  CISTERN_RETURN_IF_ERROR(WriteRecipe(files_, *recipe_, folder));
  own_encoder_ = std::make_unique<RowEncoder>(*recipe_, vocabulary_.get());
  encoder_ = own_encoder_.get();
  work_ = encoder_->NewWork();
  return absl::OkStatus();
}

void Conversion::NoteEncoding(const TextRow& row) {
  if (!not_utf8_.empty()) return;
  for (const std::vector<size_t>& slot : places_.slots) {
    for (const size_t place : slot) {
      if (IsUtf8(row.fields[place])) continue;
      not_utf8_ = absl::StrCat(*path_, ": line ", row.line);
      return;
    }
  }
}

absl::Status Conversion::Write(const std::string& folder, ConvertSummary* summary) {
  SampleBlock block;
  block.Reset(1);
  std::unique_ptr<NormSetWriter> writer;
  std::unique_ptr<ConversionCounts> counts;
  const auto flush = [&]() -> absl::Status {
    if (writer == nullptr) {
      const NormWriterOptions options = {options_.check, recipe_->key_bits == 64,
                                         encoder_->shape()};
      writer = std::make_unique<NormSetWriter>(files_, folder, options, options_.samples_per_file);
      counts = std::make_unique<ConversionCounts>(encoder_->recipe());
    }
    counts->Add(block);
    CISTERN_RETURN_IF_ERROR(writer->Append(block));
    block.Reset(1);
    return absl::OkStatus();
  };
  const auto on_row = [&](const TextRow& row) -> absl::Status {
    NoteEncoding(row);
    if (spelling_) spelling_->Add(row.fields, places_);
    if (rows_ < kRowsForNumbers) numbers_.Add(recipe_->slots, row.fields, places_.slots);
    const uint32_t slots = static_cast<uint32_t>(recipe_->slots.size());
    CISTERN_RETURN_IF_ERROR(
        encoder_->Encode(row.fields, places_, Labels::kNeeded, {&slots, 1}, &work_, &block));
    return block.size < kRowsPerBlock ? absl::OkStatus() : flush();
  };
  CISTERN_RETURN_IF_ERROR(ForEachRow("writing", options_.max_rows, on_row));
  CISTERN_RETURN_IF_ERROR(flush());
  CISTERN_RETURN_IF_ERROR(writer->Close());
  summary->samples = rows_;
  summary->left_out = left_out_;
  summary->files = writer->files();
  summary->bytes = writer->bytes();
  summary->shape = encoder_->shape();
  summary->not_utf8 = not_utf8_;
  summary->odd_fields = odd_fields_;
  summary->written_numbers = written_numbers_;
  summary->number_slots = numbers_.Columns(recipe_->slots);
  counts->Summarize(work_, summary);
  if (spelling_) spellings_ = spelling_->Sentences();
  for (size_t s = 0; s < spellings_.size(); ++s) summary->slots[s].spelling = spellings_[s];
  return given_ != nullptr ? absl::OkStatus() : WriteRecipe(files_, *recipe_, folder);
}

absl::Status Conversion::Fit(const std::string& folder) {
  if (WantsVocabulary(options_)) {
    Recipe kind;
    kind.keys = options_.keys;
    kind.key_bits = options_.key_bits;
    vocabulary_ = std::make_unique<Vocabulary>(VocabularyKind(kind));
  }
  if (!options_.vocab_in.empty()) {
    CISTERN_RETURN_IF_ERROR(vocabulary_->Read(options_.vocab_in).status());
  }
  CISTERN_RETURN_IF_ERROR(CountInput());
  if (vocabulary_ == nullptr) return absl::OkStatus();
  CISTERN_ASSIGN_OR_RETURN(vocabulary_xxh3_,
                           vocabulary_->Write(files_, absl::StrCat(folder, "/", kVocabularyFile)));
  return absl::OkStatus();
}

absl::StatusOr<Recipe> Conversion::RunFit() {
  CISTERN_RETURN_IF_ERROR(Fit(options_.out));
  encoder_ = nullptr;  // now with the vocabulary
  CISTERN_RETURN_IF_ERROR(OpenPlanned(options_.input[0]).status());
  CISTERN_RETURN_IF_ERROR(WriteRecipe(files_, *recipe_, options_.out));
  return *recipe_;
}

absl::StatusOr<Recipe> Conversion::RunExtend(std::vector<GrownColumn>* grown) {
  CISTERN_RETURN_IF_ERROR(ReadGivenRecipe(options_.out));
  *grown = std::move(grown_);
  return *recipe_;
}

absl::StatusOr<ConvertSummary> Conversion::Run() {
  for (const std::string& path : options_.input) {
    std::error_code error;
    const auto size = std::filesystem::file_size(path, error);
    if (!error) bytes_total_ += size;
  }
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<OutputFolder> out,
                           OutputFolder::Create(files_, options_.out, options_.overwrite));
  CISTERN_ASSIGN_OR_RETURN(const std::string folder, out->Subfolder(""));
  if (!options_.recipe.empty()) {
    CISTERN_RETURN_IF_ERROR(ReadGivenRecipe(folder));
  } else {
    CISTERN_RETURN_IF_ERROR(Fit(folder));
  }
  ConvertSummary summary;
  CISTERN_RETURN_IF_ERROR(Write(folder, &summary));
  if (summary.samples == 0) {
    return WithOptions(absl::DataLossError(absl::StrCat(
                           absl::StrJoin(options_.input, ", "), ": no row to convert: ",
                           options_.skip_rows > 0 ? "all of them are skipped"
                           : options_.columns.empty()
                               ? "no line follows the header line (lines end in LF or CR LF)"
                               : "the input has no lines")),
                       {"skip_rows"});
  }
  if (vocabulary_ != nullptr) summary.vocabulary = vocabulary_->size();
  summary.added = added_;
  if (!options_.vocab_out.empty()) {
    CISTERN_RETURN_IF_ERROR(vocabulary_->Write(files_, options_.vocab_out).status());
  }
  CISTERN_RETURN_IF_ERROR(out->Publish());
  summary.file_list = options_.out + "/file_list.txt";
  summary.recipe = absl::StrCat(options_.out, "/", kRecipeFile);
  summary.key_bits = recipe_->key_bits;
  return summary;
}

}  // namespace

absl::StatusOr<ConvertSummary> Convert(const ConvertOptions& options,
                                       const ConvertProgressCallback& progress) {
  CISTERN_RETURN_IF_ERROR(CheckConversion(options));
  // The delimiter of a given recipe is that of the recipe, unless an option says otherwise.
  const bool given = !options.recipe.empty();
  CISTERN_ASSIGN_OR_RETURN(ConvertOptions resolved, ResolveConversion(options));
  CISTERN_RETURN_IF_ERROR(ExpandInput(&resolved));
  if (given) resolved.delimiter = options.delimiter;
  return Conversion(resolved, progress).Run();
}

absl::StatusOr<Recipe> FitRecipe(const ConvertOptions& options,
                                 const ConvertProgressCallback& progress) {
  // Only these files are written: the input may be in the same folder.
  ConvertOptions written = options;
  written.out = absl::StrCat(options.out, "/", kRecipeFile);
  CISTERN_RETURN_IF_ERROR(CheckConversion(written));
  CISTERN_ASSIGN_OR_RETURN(ConvertOptions resolved, ResolveConversion(options));
  CISTERN_RETURN_IF_ERROR(ExpandInput(&resolved));
  return Conversion(resolved, progress).RunFit();
}

absl::StatusOr<Recipe> ExtendRecipe(const ConvertOptions& options, std::vector<GrownColumn>* grown,
                                    const ConvertProgressCallback& progress) {
  ConvertOptions extending = options;
  extending.extend = true;
  CISTERN_RETURN_IF_ERROR(ExpandInput(&extending));
  return Conversion(extending, progress).RunExtend(grown);
}

}  // namespace cistern::data
