#include "worker/data/feed/payload_reader.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "common/io/byte_source.h"
#include "worker/data/format/norm_file.h"
#include "worker/data/recipe/arrow_stream.h"
#include "worker/data/recipe/field_splitter.h"
#include "worker/data/recipe/object_row.h"
#include "worker/data/recipe/part_columns.h"

namespace cistern::data {
namespace {

class TextPayload : public PayloadReader {
 public:
  TextPayload(std::shared_ptr<const OwnedEncoder> encoder, std::vector<uint32_t> slot_nums)
      : owned_(std::move(encoder)),
        recipe_(owned_->recipe()),
        slot_nums_(std::move(slot_nums)),
        json_columns_(ReadColumns(recipe_)),
        line_parts_(WithoutParts(recipe_.layout.columns), recipe_.layout.columns,
                    recipe_.layout.columns),
        object_(recipe_, json_columns_),
        splitter_(recipe_.layout.delimiter, EntryOf(recipe_.layout.format).quotes, recipe_.trim),
        work_(owned_->encoder().NewWork()) {}

  // The places of the columns in both kinds of rows.
  absl::Status FindColumns() {
    CISTERN_ASSIGN_OR_RETURN(line_, FindPlaces(recipe_, recipe_.layout.columns, Labels::kNeeded));
    CISTERN_ASSIGN_OR_RETURN(json_, FindPlaces(recipe_, json_columns_, Labels::kNeeded));
    return absl::OkStatus();
  }

  void Begin(absl::string_view message, const std::string& place) override {
    left_ = message;
    place_ = place;
    row_ = 0;
  }

  absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) override {
    size_t got = 0;
    while (got < max_samples) {
      if (left_.empty()) break;
      const absl::string_view text = absl::StripAsciiWhitespace(left_.substr(0, left_.find('\n')));
      if (text.empty()) {
        NextLine();
        continue;
      }
      const bool is_object = text.front() == '{' && text.back() == '}';
      const absl::Status read = is_object ? ReadObject(block) : ReadLine(block);
      if (!read.ok()) return AddContext(read, absl::StrCat(place_, ": row ", row_));
      ++row_;
      ++got;
    }
    return got;
  }

  // A caller that reads one row at a time gets the place of that row.
  std::string PlaceOf(uint64_t) const override {
    return absl::StrCat(place_, ": row ", row_ == 0 ? 0 : row_ - 1);
  }
  bool at_end() const override { return absl::StripLeadingAsciiWhitespace(left_).empty(); }

 private:
  absl::string_view NextLine() {
    const size_t end = left_.find('\n');
    absl::string_view line = left_.substr(0, end);
    left_ = end == absl::string_view::npos ? absl::string_view() : left_.substr(end + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    return line;
  }

  absl::Status ReadLine(SampleBlock* block) {
    const char* const begin = left_.data();
    const auto extend = [&](absl::string_view* line) -> absl::StatusOr<bool> {
      if (left_.empty()) return false;
      const absl::string_view next = NextLine();
      *line = absl::string_view(begin, static_cast<size_t>(next.data() + next.size() - begin));
      return true;
    };
    CISTERN_RETURN_IF_ERROR(
        WithCode(splitter_.Split(NextLine(), extend, &fields_), absl::StatusCode::kDataLoss));
    const std::vector<std::string>& columns = recipe_.layout.columns;
    const std::vector<std::string>& own = line_parts_.own();
    if (fields_.size() != columns.size() && fields_.size() != own.size()) {
      return absl::DataLossError(absl::StrCat("has ", fields_.size(), " fields; send ", own.size(),
                                              ": ", absl::StrJoin(own, ", "),
                                              "; or a JSON object"));
    }
    if (fields_.size() != columns.size()) {
      wholes_ = fields_;
      fields_.assign(columns.size(), absl::string_view());
      CISTERN_RETURN_IF_ERROR(
          WithCode(line_parts_.Fill(wholes_, &fields_), absl::StatusCode::kDataLoss));
    }
    return owned_->encoder().Encode(fields_, line_, Labels::kNeeded, slot_nums_, &work_, block);
  }

  absl::Status ReadObject(SampleBlock* block) {
    CISTERN_RETURN_IF_ERROR(object_.Read(NextLine(), &fields_));
    return owned_->encoder().Encode(fields_, json_, Labels::kNeeded, slot_nums_, &work_, block);
  }

  const std::shared_ptr<const OwnedEncoder> owned_;
  const Recipe& recipe_;
  const std::vector<uint32_t> slot_nums_;
  const std::vector<std::string> json_columns_;
  RowParts line_parts_;
  ObjectRow object_;
  FieldSplitter splitter_;
  EncoderWork work_;
  RowPlaces line_, json_;
  std::vector<absl::string_view> fields_;
  std::vector<absl::string_view> wholes_;  // with lists and objects instead of their parts
  absl::string_view left_;                 // of the message
  std::string place_;
  uint64_t row_ = 0;
};

// The columns, and those whose parts they are.
std::vector<std::string> WithWholes(std::vector<std::string> columns,
                                    const std::vector<std::string>& layout) {
  for (std::string& whole : WholesOf(columns, layout)) {
    if (std::find(columns.begin(), columns.end(), whole) == columns.end()) {
      columns.push_back(std::move(whole));
    }
  }
  return columns;
}

class ArrowPayload : public PayloadReader {
 public:
  ArrowPayload(std::shared_ptr<const OwnedEncoder> encoder, std::vector<uint32_t> slot_nums)
      : owned_(std::move(encoder)),
        slot_nums_(std::move(slot_nums)),
        read_(ReadColumns(owned_->recipe())),
        wanted_(WithWholes(read_, owned_->recipe().layout.columns)),
        separators_(SeparatorsOf(owned_->recipe())),
        work_(owned_->encoder().NewWork()) {}

  void Begin(absl::string_view message, const std::string& place) override {
    message_ = message;
    place_ = place;
    row_ = 0;
    table_ = nullptr;
    has_next_ = true;
    next_error_ = absl::OkStatus();
  }

  absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) override {
    if (table_ == nullptr && has_next_) {
      const absl::Status opened = Open();
      if (!opened.ok()) table_ = nullptr;
      CISTERN_RETURN_IF_ERROR(Named(opened));
    }
    size_t got = 0;
    for (; got < max_samples && has_next_; ++got) {
      CISTERN_RETURN_IF_ERROR(Named(next_error_));
      CISTERN_RETURN_IF_ERROR(Named(owned_->encoder().Encode(next_.fields, places_, Labels::kNeeded,
                                                             slot_nums_, &work_, block)));
      ++row_;
      FindNext();
    }
    return got;
  }

  std::string PlaceOf(uint64_t) const override {
    return absl::StrCat(place_, ": row ", row_ == 0 ? 0 : row_ - 1);
  }
  bool at_end() const override { return !has_next_; }

 private:
  absl::Status Named(const absl::Status& status) const {
    return AddContext(status, absl::StrCat(place_, ": row ", row_));
  }

  absl::Status Open() {
    CISTERN_ASSIGN_OR_RETURN(table_, OpenArrowStream(message_, wanted_, separators_));
    table_ = WithParts(std::move(table_), place_, read_, owned_->recipe().layout.columns);
    if (table_->columns() != columns_) {
      absl::StatusOr<RowPlaces> places =
          FindPlaces(owned_->recipe(), table_->columns(), Labels::kNeeded);
      if (!places.ok()) return WithCode(places.status(), absl::StatusCode::kDataLoss);
      columns_ = table_->columns();
      places_ = *std::move(places);
    }
    for (const std::string& column : wanted_) {
      const std::string why = table_->WhyUnreadable(column);
      if (why.empty()) continue;
      return absl::DataLossError(absl::StrCat("column '", column, "' ", why,
                                              ": send text, numbers, times, or lists of them"));
    }
    FindNext();
    return absl::OkStatus();
  }

  // Reads one row ahead, which shows the end of the message with its last row.
  void FindNext() {
    const absl::StatusOr<bool> found = table_->Next(&next_);
    next_error_ = found.status();
    has_next_ = !found.ok() || *found;
    if (!has_next_) table_ = nullptr;
  }

  const std::shared_ptr<const OwnedEncoder> owned_;
  const std::vector<uint32_t> slot_nums_;
  const std::vector<std::string> read_, wanted_;  // by the recipe; of a message
  const ListSeparators separators_;
  EncoderWork work_;
  std::vector<std::string> columns_;  // of the last message
  RowPlaces places_;                  // in columns_
  std::unique_ptr<TextTable> table_;  // null: not open yet, or at the end
  TextRow next_;
  absl::Status next_error_;  // in place of next_
  bool has_next_ = false;
  absl::string_view message_;
  std::string place_;
  uint64_t row_ = 0;
};

// Messages of any form that a recipe reads.
class RecipePayload : public PayloadReader {
 public:
  RecipePayload(std::unique_ptr<TextPayload> text, std::unique_ptr<ArrowPayload> arrow)
      : text_(std::move(text)), arrow_(std::move(arrow)), now_(text_.get()) {}
  void Begin(absl::string_view message, const std::string& place) override {
    const bool is_arrow =
        absl::StartsWith(message, kArrowStreamBegin) || absl::StartsWith(message, kArrowFileBegin);
    now_ = is_arrow ? arrow_.get() : static_cast<PayloadReader*>(text_.get());
    now_->Begin(message, place);
  }
  absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) override {
    return now_->Read(max_samples, block);
  }
  std::string PlaceOf(uint64_t sample) const override { return now_->PlaceOf(sample); }
  bool at_end() const override { return now_->at_end(); }

 private:
  const std::unique_ptr<TextPayload> text_;
  const std::unique_ptr<ArrowPayload> arrow_;
  PayloadReader* now_;
};

// The bytes of a message as a file.
class MessageBytes : public ByteSource {
 public:
  MessageBytes(absl::string_view bytes, std::string place)
      : bytes_(bytes), place_(std::move(place)) {}
  absl::StatusOr<size_t> Read(char* out, size_t size) override {
    const size_t count = std::min(size, bytes_.size() - at_);
    std::memcpy(out, bytes_.data() + at_, count);
    at_ += count;
    return count;
  }
  uint64_t file_bytes_read() const override { return at_; }
  const std::string& path() const override { return place_; }

 private:
  const absl::string_view bytes_;
  const std::string place_;
  size_t at_ = 0;
};

class NormPayload : public PayloadReader {
 public:
  explicit NormPayload(const NormOptions& options) : options_(options) {}
  void Begin(absl::string_view message, const std::string& place) override {
    message_ = message;
    place_ = place;
    row_ = 0;
    file_ = nullptr;
    done_ = false;
  }
  absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) override {
    if (done_) return 0;
    if (file_ == nullptr) {
      absl::StatusOr<std::unique_ptr<NormFile>> file = NormFile::Over(
          ByteStream::Over(std::make_unique<MessageBytes>(message_, place_)), options_);
      if (!file.ok()) return WithCode(file.status(), absl::StatusCode::kDataLoss);
      file_ = *std::move(file);
    }
    CISTERN_ASSIGN_OR_RETURN(const size_t got, file_->Read(max_samples, block));
    row_ += got;
    done_ = got == 0;
    return got;
  }
  bool at_end() const override {
    return done_ ||
           (file_ != nullptr && row_ == static_cast<uint64_t>(file_->header().number_of_records));
  }
  std::string PlaceOf(uint64_t) const override {
    return absl::StrCat(place_, ": row ", row_ == 0 ? 0 : row_ - 1);
  }

 private:
  const NormOptions options_;
  absl::string_view message_;
  std::string place_;
  uint64_t row_ = 0;
  bool done_ = true;
  std::unique_ptr<NormFile> file_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PayloadReader>> ReadRecipePayload(
    std::shared_ptr<const OwnedEncoder> encoder, const std::vector<uint32_t>& slot_nums) {
  const TextFormatEntry& format = EntryOf(encoder->recipe().layout.format);
  if (format.has_features()) {
    return absl::InvalidArgumentError(
        absl::StrCat("messages cannot be lines of ", format.word,
                     ", which name no columns; train the first model on a table with columns"));
  }
  auto text = std::make_unique<TextPayload>(encoder, slot_nums);
  CISTERN_RETURN_IF_ERROR(text->FindColumns());
  return std::make_unique<RecipePayload>(
      std::move(text), std::make_unique<ArrowPayload>(std::move(encoder), slot_nums));
}

std::unique_ptr<PayloadReader> ReadNormPayload(const NormOptions& options) {
  return std::make_unique<NormPayload>(options);
}

}  // namespace cistern::data
