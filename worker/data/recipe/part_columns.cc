#include "worker/data/recipe/part_columns.h"

#include <algorithm>
#include <map>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/shown_text.h"
#include "worker/data/recipe/cell_members.h"
#include "worker/data/recipe/field_values.h"
#include "worker/data/recipe/json_table.h"

namespace cistern::data {
namespace {

constexpr size_t kMaxPlaces = 4096;
constexpr char kBetweenNumbers[] = " ,|;:\t\n";
// So many fields without the parts of the training data, and none with them, are no accident: lists
// of a whole file, objects of one, and either at its begin.
constexpr uint64_t kOddLists = 20, kOddObjects = 1, kOddAtBegin = 1000;
// Objects and records: so many fields may be none.
constexpr uint64_t kMaxOdd = 2, kOddOneIn = 100;

// Those of "[np.float64(0.5), np.float64(1.5)]", too, which is how NumPy 2 prints lists of numbers.
std::vector<absl::string_view> NumbersOf(absl::string_view field) {
  std::vector<absl::string_view> numbers =
      absl::StrSplit(InsideBrackets(field), absl::ByAnyChar(kBetweenNumbers), absl::SkipEmpty());
  for (absl::string_view& number : numbers) {
    const bool is_call = absl::StartsWith(number, "np.") && absl::ConsumeSuffix(&number, ")");
    if (is_call) number.remove_prefix(std::min(number.find('(') + 1, number.size()));
  }
  return numbers;
}

// The values of a record; none of other texts. A comma separates them in brackets only, because
// outside of them it is one of a number, a date or a sentence.
std::vector<absl::string_view> ValuesOfRecord(absl::string_view field) {
  field = absl::StripAsciiWhitespace(field);
  const absl::string_view inside = InsideBrackets(field);
  const bool is_bracketed = inside.size() < field.size();
  std::vector<absl::string_view> values;
  for (const char separator : absl::string_view(is_bracketed ? ",|;\t" : "|;\t")) {
    if (!absl::StrContains(inside, separator)) continue;
    for (absl::string_view rest = inside; !rest.empty();) {
      values.push_back(WithoutQuotes(TakeValue(separator, /*list=*/true, &rest)));
    }
    break;
  }
  return values;
}

// Whether any is in quotes or begins as no number does.
bool HoldWords(const std::vector<absl::string_view>& values) {
  return std::any_of(values.begin(), values.end(), [](absl::string_view value) {
    return value.empty() || !absl::StrContains("+-.0123456789", value.front());
  });
}

// What a column of a list is: the number at a place, or one of all.
struct ListPart {
  enum class Kind { kPlace, kMean, kSize };
  Kind kind = Kind::kPlace;
  size_t place = 0;
};

std::optional<ListPart> ListPartOf(absl::string_view suffix) {
  if (suffix == "mean") return ListPart{ListPart::Kind::kMean};
  if (suffix == "size") return ListPart{ListPart::Kind::kSize};
  ListPart part;
  if (!absl::SimpleAtoi(suffix, &part.place) || part.place >= kMaxPlaces) return std::nullopt;
  return part;
}

// A missing list has a missing mean and missing places; its size is 0. Text that is no number
// stays: the encoder, which reads it as a number, reports it.
std::string TextOf(const ListPart& part, const std::vector<absl::string_view>& numbers) {
  if (part.kind == ListPart::Kind::kSize) return absl::StrCat(numbers.size());
  if (part.kind == ListPart::Kind::kPlace) {
    return part.place < numbers.size() ? std::string(numbers[part.place]) : "";
  }
  double sum = 0;
  size_t count = 0;
  for (const absl::string_view text : numbers) {
    double value = 0;
    if (StandsForNoNumber(text)) continue;
    if (ReadNumber(text, &value) != NumberKind::kFinite) return std::string(text);
    sum += value;
    ++count;
  }
  return count == 0 ? "" : absl::StrFormat("%.9g", sum / static_cast<double>(count));
}

// The name of a part without that of its column.
std::string SuffixOf(const std::string& name, const std::string& whole) {
  return name.substr(whole.size() + 1);
}

// The length of the lists in columns[whole], which follows from the names of its parts among
// `known`; 0: it varies, or the column holds no lists.
size_t ListLength(size_t whole, const std::vector<std::string>& columns, const Wholes& wholes,
                  const std::vector<std::string>& known) {
  size_t length = 0;
  for (const std::string& name : known) {
    if (wholes.Of(name) != whole) continue;
    const std::optional<ListPart> part = ListPartOf(SuffixOf(name, columns[whole]));
    if (!part || part->kind != ListPart::Kind::kPlace) return 0;
    length = std::max(length, part->place + 1);
  }
  return length;
}

class PartTable : public ChangedTable {
 public:
  // A column that parts are made of.
  struct Whole {
    size_t place = 0;
    std::vector<std::string> parts;  // their names without its name
    size_t length = 0;               // of its lists; 0: any
    uint64_t seen = 0, odd = 0, first_odd = 0;
  };
  PartTable(std::unique_ptr<TextTable> table, std::string path, bool is_known,
            std::vector<std::string> columns, std::vector<Whole> wholes)
      : ChangedTable(std::move(table)),
        path_(std::move(path)),
        is_known_(is_known),
        columns_(std::move(columns)),
        wholes_(std::move(wholes)) {}

  const std::vector<std::string>& columns() const override { return columns_; }
  absl::StatusOr<bool> Next(TextRow* row) override;
  std::vector<std::string> odd_fields() const override;

 private:
  std::string Why(const Whole& whole) const {
    return whole.length > 0
               ? absl::StrCat(" do not hold ", whole.length, " values, as in the training data")
               : absl::StrCat(" hold no object with members such as '",
                              ShownText(whole.parts.front(), 40), "'");
  }

  // kDataLoss if so many fields have been read of a column, and none has its parts.
  absl::Status CheckFields(uint64_t lists, uint64_t objects) const;

  const std::string path_;
  const bool is_known_;  // from the training data, what parts there are
  const std::vector<std::string> columns_;
  std::vector<Whole> wholes_;
  PartReader reader_;
  std::deque<std::string> texts_;  // of the row
};

absl::StatusOr<bool> PartTable::Next(TextRow* row) {
  CISTERN_ASSIGN_OR_RETURN(const bool found, table_->Next(row));
  if (!found) {
    CISTERN_RETURN_IF_ERROR(CheckFields(kOddLists, kOddObjects));
    return false;
  }
  texts_.clear();
  for (Whole& whole : wholes_) {
    const absl::string_view field = row->fields[whole.place];
    bool is_odd = false;
    for (const std::string& text : reader_.Read(field, whole.parts, whole.length, &is_odd)) {
      texts_.push_back(text);
    }
    whole.seen += !IsUsuallyMissing(field);
    whole.odd += is_odd;
    if (is_odd && whole.odd == 1) whole.first_odd = row->line;
  }
  CISTERN_RETURN_IF_ERROR(CheckFields(kOddAtBegin, kOddAtBegin));
  row->fields.insert(row->fields.end(), texts_.begin(), texts_.end());
  return true;
}

absl::Status PartTable::CheckFields(uint64_t lists, uint64_t objects) const {
  for (const Whole& whole : wholes_) {
    const uint64_t fields = whole.length > 0 ? lists : objects;
    if (!is_known_ || whole.odd < fields || whole.odd < whole.seen) continue;
    return absl::DataLossError(
        absl::StrCat(path_, ": column '", ShownText(columns_[whole.place], 40), "': all ",
                     whole.odd, " fields, the first in line ", whole.first_odd, ",", Why(whole),
                     ": write them as in the training data, or train a new model"));
  }
  return absl::OkStatus();
}

std::vector<std::string> PartTable::odd_fields() const {
  std::vector<std::string> odd = table_->odd_fields();
  for (const Whole& whole : wholes_) {
    if (whole.odd == 0) continue;
    odd.push_back(absl::StrCat(path_, ": column '", ShownText(columns_[whole.place], 40),
                               "': ", whole.odd, " of ", whole.seen, " fields, the first in line ",
                               whole.first_odd, ",", Why(whole),
                               ": what they lack counts as missing"));
  }
  return odd;
}

}  // namespace

Wholes::Wholes(const std::vector<std::string>& columns) : column_num_(columns.size()) {
  for (size_t i = 0; i < columns.size(); ++i) places_.emplace(columns[i], i);
}

size_t Wholes::Of(absl::string_view name) const {
  // A part has a name of its own behind the point.
  if (!name.empty()) name.remove_suffix(1);
  for (size_t point = name.rfind('.'); point != absl::string_view::npos; point = name.rfind('.')) {
    name = name.substr(0, point);
    const auto found = places_.find(name);
    if (found != places_.end()) return found->second;
  }
  return column_num_;
}

std::vector<std::string> WithoutParts(const std::vector<std::string>& columns) {
  const Wholes wholes(columns);
  std::vector<std::string> own;
  for (const std::string& name : columns) {
    if (wholes.Of(name) == columns.size()) own.push_back(name);
  }
  return own;
}

std::vector<std::string> WholesOf(const std::vector<std::string>& names,
                                  const std::vector<std::string>& columns) {
  const Wholes of(columns);
  std::set<size_t> places;
  for (const std::string& name : names) {
    const size_t whole = of.Of(name);
    const auto place = std::find(columns.begin(), columns.end(), name) - columns.begin();
    places.insert(whole < columns.size() ? whole : static_cast<size_t>(place));
  }
  std::vector<std::string> wholes;
  for (const size_t place : places) {
    if (place == columns.size()) return names;  // without a layout
    wholes.push_back(columns[place]);
  }
  return wholes;
}

std::unique_ptr<TextTable> WithParts(std::unique_ptr<TextTable> table, const std::string& path,
                                     const std::vector<std::string>& columns,
                                     const std::vector<std::string>& known) {
  const std::vector<std::string>& own = table->columns();
  const Wholes of(own);
  const absl::flat_hash_set<absl::string_view> owned(own.begin(), own.end());
  absl::flat_hash_set<absl::string_view> added;
  std::map<size_t, PartTable::Whole> found;
  for (const std::string& name : columns) {
    const size_t place = of.Of(name);
    if (place == own.size() || owned.contains(name) || !added.insert(name).second) continue;
    found[place].parts.push_back(SuffixOf(name, own[place]));
  }
  std::vector<std::string> all = own;
  std::vector<PartTable::Whole> wholes;
  for (auto& [place, whole] : found) {
    for (const std::string& part : whole.parts) all.push_back(absl::StrCat(own[place], ".", part));
    whole.place = place;
    whole.length = ListLength(place, own, of, known.empty() ? columns : known);
    wholes.push_back(std::move(whole));
  }
  if (wholes.empty()) return table;
  return std::make_unique<PartTable>(std::move(table), path, !known.empty(), std::move(all),
                                     std::move(wholes));
}

const std::vector<std::string>& PartReader::Read(absl::string_view field,
                                                 const std::vector<std::string>& parts,
                                                 size_t length, bool* is_odd) {
  texts_.clear();
  *is_odd = false;
  const bool is_missing = IsUsuallyMissing(field);
  const bool is_object = !is_missing && ReadCellMembers(field, &members_);
  std::vector<absl::string_view> numbers;
  if (!is_missing && !is_object) numbers = NumbersOf(field);
  if (length > 0 && HoldWords(numbers)) {
    std::vector<absl::string_view> values = ValuesOfRecord(field);
    if (values.size() == length) numbers = std::move(values);
  }
  bool has_member = false;
  for (const std::string& part : parts) {
    const std::optional<ListPart> list_part = ListPartOf(part);
    if (is_object) {
      const auto member = std::find_if(members_.begin(), members_.end(),
                                       [&](const JsonMember& one) { return one.name == part; });
      has_member = has_member || member != members_.end();
      texts_.push_back(member == members_.end() ? "" : member->text);
    } else {
      texts_.push_back(list_part ? TextOf(*list_part, numbers) : "");
      *is_odd = *is_odd || (!is_missing && !list_part);
    }
  }
  // Members may be called as places are: 0:0.5 1:0.7.
  const bool has_length = is_object ? has_member : numbers.empty() || numbers.size() == length;
  *is_odd = *is_odd || (length > 0 && !has_length);
  return texts_;
}

RowParts::RowParts(std::vector<std::string> own, const std::vector<std::string>& columns,
                   const std::vector<std::string>& known)
    : own_(std::move(own)) {
  const Wholes of(own_);
  std::vector<Whole> wholes(own_.size());
  for (size_t c = 0; c < columns.size(); ++c) {
    const auto same = std::find(own_.begin(), own_.end(), columns[c]);
    if (same != own_.end()) {
      same_.emplace_back(same - own_.begin(), c);
      continue;
    }
    const size_t place = of.Of(columns[c]);
    if (place == own_.size()) continue;
    wholes[place].parts.push_back(SuffixOf(columns[c], own_[place]));
    wholes[place].places.push_back(c);
  }
  for (size_t place = 0; place < own_.size(); ++place) {
    if (wholes[place].parts.empty()) continue;
    wholes[place].place = place;
    wholes[place].length = ListLength(place, own_, of, known);
    wholes_.push_back(std::move(wholes[place]));
  }
}

absl::Status RowParts::Fill(absl::Span<const absl::string_view> row,
                            std::vector<absl::string_view>* wanted) {
  texts_.clear();
  for (const auto& [from, to] : same_) {
    if (row[from].data() != nullptr) (*wanted)[to] = row[from];
  }
  for (const Whole& whole : wholes_) {
    const absl::string_view field = row[whole.place];
    if (field.data() == nullptr) continue;
    bool is_odd = false;
    const std::vector<std::string>& texts = reader_.Read(field, whole.parts, whole.length, &is_odd);
    if (is_odd) {
      return absl::InvalidArgumentError(absl::StrCat(
          "column '", ShownText(own_[whole.place], 40), "': '", ShownText(field, 40), "' is ",
          whole.length > 0 ? absl::StrCat("no list of ", whole.length, " values")
                           : absl::StrCat("no object with members such as '",
                                          ShownText(whole.parts.front(), 40), "'")));
    }
    for (size_t i = 0; i < texts.size(); ++i) {
      (*wanted)[whole.places[i]] = texts_.emplace_back(texts[i]);
    }
  }
  return absl::OkStatus();
}

void PartFinder::Add(const std::vector<absl::string_view>& fields) {
  ++rows_;
  for (size_t i = 0; i < columns_.size() && i < fields.size(); ++i) {
    Column& column = columns_[i];
    const bool is_plain = column.lists.others && column.objects.others && column.records.others;
    if (is_plain || IsUsuallyMissing(fields[i])) continue;
    if (!column.lists.others) AddList(fields[i], &column.lists);
    if (!column.objects.others) AddObject(fields[i], &column.objects);
    if (!column.records.others) AddRecord(fields[i], &column.records);
  }
}

void PartFinder::AddList(absl::string_view field, Lists* lists) const {
  // Most columns hold single values: a few of them are read, to know which are no numbers.
  constexpr uint64_t kSinglesRead = 1000;
  const bool is_single = field.find_first_of(" ,|;:\t\n[({") == absl::string_view::npos;
  if (is_single && ++lists->singles > kSinglesRead && lists->lengths.size() <= 1) return;
  const std::vector<absl::string_view> numbers = NumbersOf(field);
  for (const absl::string_view text : numbers) {
    if (StandsForNoNumber(text)) continue;
    ++lists->values;
    double number = 0;
    const bool is_truth = IsTruth(text);
    lists->others = lists->others || (!is_truth && !IsFiniteNumber(text));
    lists->fractions += !is_truth && !IsInteger(text);
    lists->truths += is_truth || text == "0" || text == "1";
    lists->negatives +=
        text[0] == '-' && ReadNumber(text, &number) == NumberKind::kFinite && number < -1;
  }
  if (numbers.empty()) return;
  lists->in_brackets += field[0] == '[' || OpensCall(field) > 0;
  Lengths& length = lists->lengths[numbers.size()];
  if (length.rows++ == 0) length.first = rows_;
}

void PartFinder::AddRecord(absl::string_view field, Records* records) const {
  constexpr size_t kMaxRecords = 64;
  ++records->fields;
  const std::vector<absl::string_view> values = ValuesOfRecord(field);
  if (records->places.empty() && values.size() > 1 && values.size() <= kMaxRecords) {
    records->places.resize(values.size());
  }
  if (values.empty() || values.size() != records->places.size()) {
    if (records->odd++ == 0) records->first_odd = rows_;
    records->others = records->odd > kMaxOdd && kOddOneIn * records->odd > records->fields;
    return;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (StandsForNoNumber(values[i])) continue;
    Place& place = records->places[i];
    const bool is_number = IsFiniteNumber(values[i]);
    ++place.known;
    place.numbers += is_number;
    place.fractions += is_number && !IsInteger(values[i]);
  }
}

void PartFinder::AddObject(absl::string_view field, Objects* objects) {
  ++objects->fields;
  bool is_object = ReadCellMembers(field, &members_);
  if (!is_object) {
    if (objects->odd++ == 0) objects->first_odd = rows_;
    objects->others = objects->odd > kMaxOdd && kOddOneIn * objects->odd > objects->fields;
    return;
  }
  objects->are_pairs = objects->are_pairs || IsPairs(field);
  bool is_worded = false;
  for (const JsonMember& member : members_) {
    if (member.is_nested_list) continue;
    ++objects->members;
    is_worded = is_worded || (!IsUsuallyMissing(member.text) && !IsFiniteNumber(member.text) &&
                              !IsTruth(member.text));
    if (!objects->known.insert(member.name).second) continue;
    objects->names.push_back(member.name);
    if (objects->names.size() > kMaxMembers) objects->others = true;
  }
  objects->worded += is_worded;
}

PartFinder::Parts PartFinder::PartsOf(size_t place, const std::string& name) const {
  constexpr uint64_t kUsualLengthOf = 20;  // all but one in so many
  constexpr size_t kMaxWordedNames = 200;
  Parts parts;
  const Objects& objects = columns_[place].objects;
  const size_t names = objects.names.size();
  const bool are_objects =
      !objects.others && names > (objects.are_pairs ? 1 : 0) && 100 * objects.odd <= objects.fields;
  const uint64_t possible = names * (objects.fields - objects.odd);
  const bool are_common = 2 * objects.members >= possible;
  const bool are_words = 2 * objects.worded >= objects.fields && names <= kMaxWordedNames &&
                         20 * objects.members >= possible;
  if (are_objects && (are_common || are_words)) {
    parts.are_members = true;
    parts.odd = objects.odd;
    parts.first_odd = objects.first_odd;
    for (const std::string& member : objects.names) {
      parts.columns.push_back(absl::StrCat(name, ".", member));
    }
    return parts;
  }
  const Records& records = columns_[place].records;
  const auto is_amount = [](const Place& one) {
    return one.known > 0 && one.numbers == one.known && 2 * one.fractions > one.known;
  };
  const auto is_text = [](const Place& one) { return one.known > 0 && one.numbers == 0; };
  if (!records.others && kOddOneIn * records.odd <= records.fields &&
      std::any_of(records.places.begin(), records.places.end(), is_amount) &&
      std::any_of(records.places.begin(), records.places.end(), is_text)) {
    parts.odd = records.odd;
    parts.first_odd = records.first_odd;
    for (size_t i = 0; i < records.places.size(); ++i) {
      parts.columns.push_back(absl::StrCat(name, ".", i));
    }
    return parts;
  }
  const Lists& lists = columns_[place].lists;
  if (lists.others || lists.values == 0) return parts;
  const auto usual =
      std::max_element(lists.lengths.begin(), lists.lengths.end(),
                       [](const auto& a, const auto& b) { return a.second.rows < b.second.rows; });
  const size_t longest = lists.lengths.rbegin()->first;
  if (longest > kMaxPlaces) return parts;
  uint64_t rows = 0;
  for (const auto& [length, seen] : lists.lengths) {
    rows += seen.rows;
    if (length == usual->first) continue;
    parts.odd += seen.rows;
    parts.first_odd = parts.first_odd == 0 ? seen.first : std::min(parts.first_odd, seen.first);
  }
  const bool holds_fractions = 10 * lists.fractions > 9 * lists.values;
  // A score of one class is one number in brackets.
  const bool are_lists = longest > 1 || lists.in_brackets == rows;
  if (!are_lists) return Parts();
  const bool is_vector = (usual->first > 1 || longest == 1) && kUsualLengthOf * parts.odd <= rows;
  const bool are_truths = lists.truths == lists.values;
  const bool are_signed = 10 * lists.negatives > lists.values;  // ids are not
  if (!holds_fractions && !(is_vector && (are_truths || are_signed))) return Parts();
  if (!is_vector) return {{name + ".mean", name + ".size"}};
  for (size_t i = 0; i < usual->first; ++i) parts.columns.push_back(absl::StrCat(name, ".", i));
  return parts;
}

std::vector<std::string> NewParts(const PartFinder& finder,
                                  const std::vector<std::string>& columns) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < columns.size(); ++i) {
    for (std::string& name : finder.PartsOf(i, columns[i]).columns) {
      if (std::count(columns.begin(), columns.end(), name) == 0) parts.push_back(std::move(name));
    }
  }
  return parts;
}

}  // namespace cistern::data
