#include "worker/data/recipe/text_rows.h"

#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "worker/data/recipe/feature_line.h"
#include "worker/data/recipe/field_splitter.h"
#include "worker/data/recipe/object_row.h"
#include "worker/data/recipe/part_columns.h"

namespace cistern::data {
namespace {

absl::Status InRow(const absl::Status& status, size_t row) {
  return AddContext(WithCode(status, absl::StatusCode::kInvalidArgument),
                    absl::StrCat("row ", row));
}

// Encodes row after row into one block.
//
// Threads: one at a time.
class BlockEncoder {
 public:
  BlockEncoder(const OwnedEncoder& encoder, absl::Span<const uint32_t> slot_nums,
               SampleBlock* block)
      : encoder_(encoder.encoder()),
        columns_(FeatureColumns(encoder.recipe())),
        wholes_(WholeColumns(encoder.recipe()), columns_, encoder.recipe().layout.columns),
        slot_nums_(slot_nums),
        work_(encoder_.NewWork()),
        block_(*block) {
    block_.Reset(slot_nums.size());
  }

  absl::Status FindPlaces() {
    CISTERN_ASSIGN_OR_RETURN(places_,
                             data::FindPlaces(encoder_.recipe(), columns_, Labels::kOptional));
    return absl::OkStatus();
  }
  // A row that is an object; false: none of its members is a column.
  absl::StatusOr<bool> AddObject(absl::string_view line) {
    if (!object_) object_.emplace(encoder_.recipe(), columns_);
    CISTERN_RETURN_IF_ERROR(object_->Read(line, &texts_));
    if (!object_->found_any()) return false;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (texts_[i].data() != nullptr) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("the object has no member '", columns_[i],
                       "': name it so, or send null where its value is missing"));
    }
    CISTERN_RETURN_IF_ERROR(Encode(texts_));
    return true;
  }
  absl::Status Add(absl::Span<const absl::string_view> fields) {
    if (IsHeader(fields)) {
      return absl::InvalidArgumentError("it holds the names of the columns: send rows only");
    }
    if (fields.size() == columns_.size()) return Encode(fields);
    if (fields.size() == wholes_.own().size()) return AddWhole(fields);
    return absl::InvalidArgumentError(
        absl::StrCat("it has ", fields.size(), " fields; send ", columns_.size(), ": ",
                     absl::StrJoin(columns_, ", "),
                     wholes_.own().size() == columns_.size()
                         ? ""
                         : absl::StrCat(", or ", wholes_.own().size(), ": ",
                                        absl::StrJoin(wholes_.own(), ", "))));
  }

 private:
  bool IsHeader(absl::Span<const absl::string_view> fields) const {
    constexpr size_t kFewest = 2;  // one field could be a value
    const auto are = [&](const std::vector<std::string>& names) {
      return fields.size() >= kFewest &&
             std::equal(fields.begin(), fields.end(), names.begin(), names.end());
    };
    return are(columns_) || are(wholes_.own());
  }
  absl::Status Encode(absl::Span<const absl::string_view> fields) {
    return encoder_.Encode(fields, places_, Labels::kOptional, slot_nums_, &work_, &block_);
  }
  // A row of whole lists and objects.
  absl::Status AddWhole(absl::Span<const absl::string_view> fields) {
    texts_.assign(columns_.size(), absl::string_view());
    CISTERN_RETURN_IF_ERROR(wholes_.Fill(fields, &texts_));
    return Encode(texts_);
  }

  const RowEncoder& encoder_;
  const std::vector<std::string> columns_;
  RowParts wholes_;
  std::optional<ObjectRow> object_;       // once a row is one
  std::vector<absl::string_view> texts_;  // of columns_
  const absl::Span<const uint32_t> slot_nums_;
  EncoderWork work_;
  SampleBlock& block_;
  RowPlaces places_;
};

// Lines of features, with a label or without.
absl::Status AddFeatureLines(const Recipe& recipe, absl::Span<const absl::string_view> lines,
                             BlockEncoder* rows) {
  const Recipe::Layout& layout = recipe.layout;
  const std::unique_ptr<FeatureLine> features =
      EntryOf(layout.format).features(FeatureValuesOf(recipe), layout.columns, layout.single_slot);
  std::vector<absl::string_view> fields;
  for (size_t row = 0; row < lines.size(); ++row) {
    const absl::string_view line = absl::StripTrailingAsciiWhitespace(lines[row]);
    const std::vector<absl::string_view> tokens = LineTokens(line, layout.format);
    fields.clear();
    CISTERN_RETURN_IF_ERROR(InRow(
        features->Split(absl::MakeSpan(tokens).subspan(HasLabel(tokens) ? 1 : 0), &fields), row));
    CISTERN_RETURN_IF_ERROR(InRow(rows->Add(fields), row));
  }
  return absl::OkStatus();
}

// A line that is no object can only begin so if it has quotes inside a field without quotes.
bool MayBeObject(absl::string_view line) {
  line = absl::StripAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, "{") || !absl::EndsWith(line, "}")) return false;
  return absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), "\"");
}

}  // namespace

std::vector<std::string> WholeColumns(const Recipe& recipe) {
  return WholesOf(FeatureColumns(recipe), recipe.layout.columns);
}

absl::Status EncodeFields(const OwnedEncoder& encoder, absl::Span<const absl::string_view> fields,
                          absl::Span<const uint32_t> slot_nums, SampleBlock* block,
                          size_t columns) {
  if (columns == 0) columns = FeatureColumns(encoder.recipe()).size();
  BlockEncoder rows(encoder, slot_nums, block);
  CISTERN_RETURN_IF_ERROR(rows.FindPlaces());
  if (columns == 0 || fields.size() % columns != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(fields.size(), " fields are not whole rows of ", columns, " columns"));
  }
  for (size_t row = 0; row * columns < fields.size(); ++row) {
    CISTERN_RETURN_IF_ERROR(InRow(rows.Add(fields.subspan(row * columns, columns)), row));
  }
  return absl::OkStatus();
}

absl::Status EncodeLines(const OwnedEncoder& encoder, absl::Span<const absl::string_view> lines,
                         absl::Span<const uint32_t> slot_nums, SampleBlock* block) {
  const Recipe::Layout& layout = encoder.recipe().layout;
  BlockEncoder rows(encoder, slot_nums, block);
  CISTERN_RETURN_IF_ERROR(rows.FindPlaces());
  const TextFormatEntry& format = EntryOf(layout.format);
  if (format.has_features()) return AddFeatureLines(encoder.recipe(), lines, &rows);
  FieldSplitter splitter(layout.delimiter, format.quotes, encoder.recipe().trim);
  const auto ends_here = [](absl::string_view*) -> absl::StatusOr<bool> { return false; };
  std::vector<absl::string_view> fields;
  for (size_t row = 0; row < lines.size(); ++row) {
    absl::string_view line = lines[row];
    // A caller that splits a CRLF file at "\n" leaves "\r".
    absl::ConsumeSuffix(&line, "\n");
    absl::ConsumeSuffix(&line, "\r");
    absl::StatusOr<bool> added = false;
    if (MayBeObject(line)) added = rows.AddObject(line);
    if (added.ok() && *added) continue;
    absl::Status done = splitter.Split(line, ends_here, &fields);
    if (done.ok()) done = rows.Add(fields);
    // Of a line that is neither, the object is probably meant.
    if (!done.ok()) return InRow(added.ok() ? done : added.status(), row);
  }
  return absl::OkStatus();
}

}  // namespace cistern::data
