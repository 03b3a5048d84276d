#include "common/value/value_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "absl/strings/charconv.h"
#include "common/value/bfloat16_cells.h"

namespace cistern {
namespace {

// Appends numbers, each preceded by a space, to a text; reserves room for `max_fields` of them.
class FieldWriter {
 public:
  FieldWriter(size_t max_fields, Digits digits, std::string* out)
      : six_(digits == Digits::kSix), out_(out) {
    const size_t begin = out->size();
    out->resize(begin + max_fields * kFieldBytes);
    next_ = out->data() + begin;
  }

  void Add(uint64_t number) {
    *next_++ = ' ';
    AddBare(number);
  }
  void Add(float number) {
    *next_++ = ' ';
    AddBare(number);
  }
  void Add(double number) {
    if (six_) return Add(static_cast<float>(number));
    *next_++ = ' ';
    Put(std::to_chars(next_, next_ + kNumberBytes, number));
  }
  void AddCells(const float* value, uint32_t begin, uint32_t end) {
    for (uint32_t i = begin; i < end; ++i) Add(value[i]);
  }

  // Without the space.
  void AddBare(uint64_t number) { Put(std::to_chars(next_, next_ + kNumberBytes, number)); }
  void AddBare(float number) {
    Put(six_ ? std::to_chars(next_, next_ + kNumberBytes, number, std::chars_format::general, 6)
             : std::to_chars(next_, next_ + kNumberBytes, number));
  }

  // Ends the line.
  void Finish() {
    out_->resize(static_cast<size_t>(next_ - out_->data()));
    out_->push_back('\n');
  }

 private:
  static constexpr size_t kNumberBytes = 24;  // the longest: -1.7976931348623157e+308
  static constexpr size_t kFieldBytes = 1 + kNumberBytes;

  void Put(std::to_chars_result written) { next_ = written.ptr; }

  const bool six_;
  std::string* const out_;
  char* next_ = nullptr;
};

bool IsBlank(char c) {
  return c == ' ' || c == '\t';
}

// Splits a line into fields and parses them as numbers. The first error is kept; every later field
// reads as zero, so callers check once, at the end.
class FieldReader {
 public:
  explicit FieldReader(absl::string_view line) : next_(line.begin()), end_(line.end()) {
    SkipBlanks();
  }

  bool at_end() const { return next_ == end_; }

  uint64_t ReadU64() {
    const absl::string_view field = NextField();
    uint64_t number = 0;
    const auto read = std::from_chars(field.begin(), field.end(), number);
    if (read.ptr != field.end() || read.ec != std::errc()) {
      number = 0;
      Fail(field, "is not a whole number from 0 to 2^64 - 1");
    }
    return number;
  }

  // Number: float or double. A number that underflows reads as the nearest zero or subnormal.
  template <typename Number>
  Number ReadReal() {
    const absl::string_view field = NextField();
    Number number = 0;
    // std::from_chars is twice as fast as absl's, but only absl's handles underflow.
    const auto usual = std::from_chars(field.begin(), field.end(), number);
    if (usual.ptr == field.end() && usual.ec == std::errc() && std::isfinite(number)) return number;
    const auto read = absl::from_chars(field.begin(), field.end(), number);
    const bool is_number = read.ptr == field.end() && read.ec != std::errc::invalid_argument;
    const bool too_large = read.ec == std::errc::result_out_of_range && std::fabs(number) > 1;
    if (is_number && !too_large && std::isfinite(number)) return number;
    Fail(field, is_number ? "is not a finite number of this type" : "is not a number");
    return 0;
  }

  void ReadCells(float* begin, float* end) {
    for (float* cell = begin; cell != end; ++cell) *cell = ReadReal<float>();
  }

  // OK if every field was parsed and none is left. name(i): the name of field i of the line.
  template <typename NameOfField>
  absl::Status Finish(const NameOfField& name) const {
    if (fault_ != nullptr) {
      const std::string quoted =
          fault_field_.empty() ? "" : absl::StrCat("'", fault_field_.substr(0, 40), "' ");
      return absl::DataLossError(
          absl::StrCat("field ", fault_index_ + 1, " (", name(fault_index_), ") ", quoted, fault_));
    }
    if (at_end()) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("more fields than the expected ", index_));
  }

 private:
  void SkipBlanks() {
    while (next_ != end_ && IsBlank(*next_)) ++next_;
  }

  // The next field; empty, with an error recorded, at the end of the line.
  absl::string_view NextField() {
    const char* begin = next_;
    while (next_ != end_ && !IsBlank(*next_)) ++next_;
    const absl::string_view field(begin, static_cast<size_t>(next_ - begin));
    SkipBlanks();
    ++index_;
    if (field.empty()) Fail(field, "is missing");
    return field;
  }

  void Fail(absl::string_view field, const char* fault) {
    if (fault_ != nullptr) return;
    fault_ = fault;
    fault_field_ = field;
    fault_index_ = index_ - 1;
  }

  const char* next_;
  const char* const end_;
  size_t index_ = 0;  // fields read
  const char* fault_ = nullptr;
  absl::string_view fault_field_;
  size_t fault_index_ = 0;
};

// Calls visit(field) for each field of a line, in order; the key comes first.
template <typename Visit>
void VisitTextFields(const ValueLayout& layout, bool head, bool embedx, Visit visit) {
  for (const bool leads : {true, false}) {
    for (const ValueField& field : layout.fields()) {
      if (field.leads_text == leads && (field.in_embedx ? embedx : head)) visit(field);
    }
  }
}

// The name of field `index` of a line.
std::string NameOfField(const ValueLayout& layout, CtrFields present, size_t index) {
  std::vector<std::string> names = {"key"};
  VisitTextFields(layout, true, true, [&](const ValueField& field) {
    if (!present.Has(field.name)) return;
    for (uint32_t i = 0; i < field.count; ++i) {
      names.push_back(field.count == 1 ? field.name : absl::StrCat(field.name, "[", i, "]"));
    }
  });
  return names[index];
}

void AddField(const ValueField& field, const float* value, FieldWriter* out) {
  switch (field.type) {
    case CellType::kFloat:
      return out->AddCells(value, field.first, field.end());
    case CellType::kDouble:
      return out->Add(LoadDouble(value + field.first));
    case CellType::kU64:
      return out->Add(LoadU64(value + field.first));
    case CellType::kBfloat16: {
      std::vector<float> numbers(field.count);
      LoadBfloat16(value + field.first, field.count, numbers.data());
      return out->AddCells(numbers.data(), 0, field.count);
    }
  }
}

void ReadField(const ValueField& field, FieldReader* in, float* value) {
  switch (field.type) {
    case CellType::kFloat:
      return in->ReadCells(value + field.first, value + field.end());
    case CellType::kDouble:
      return StoreDouble(value + field.first, in->ReadReal<double>());
    case CellType::kU64:
      return StoreU64(value + field.first, in->ReadU64());
    case CellType::kBfloat16: {
      std::vector<float> numbers(field.count);
      in->ReadCells(numbers.data(), numbers.data() + field.count);
      return StoreBfloat16(numbers.data(), field.count, value + field.first);
    }
  }
}

// The value of a field that a line lacks is that of a new row.
void FillField(const ValueField& field, float* value) {
  std::fill_n(value + field.first, field.cells(), field.initial);
}

}  // namespace

void AppendValueLine(const ValueLayout& layout, Key key, const float* value, bool has_embedx,
                     std::string* out, Digits digits) {
  FieldWriter fields(1 + layout.unpacked().full_floats(), digits, out);
  fields.AddBare(key);
  VisitTextFields(layout, true, has_embedx || !layout.embedx_is_optional(),
                  [&](const ValueField& field) { AddField(field, value, &fields); });
  fields.Finish();
}

absl::Status ParseValueLine(const ValueLayout& layout, absl::string_view line, Key* key,
                            float* value, bool* has_embedx, CtrFields present) {
  FieldReader fields(line);
  *key = fields.ReadU64();
  VisitTextFields(layout, true, false, [&](const ValueField& field) {
    if (present.Has(field.name)) return ReadField(field, &fields, value);
    FillField(field, value);
  });
  *has_embedx = !layout.embedx_is_optional() ||
                (!fields.at_end() && layout.full_floats() > layout.short_floats());
  VisitTextFields(layout, false, true, [&](const ValueField& field) {
    if (*has_embedx) return ReadField(field, &fields, value);
    FillField(field, value);
  });
  return fields.Finish([&](size_t index) { return NameOfField(layout, present, index); });
}

size_t CountFields(absl::string_view line) {
  size_t count = 0;
  bool blank = true;  // whether the previous character is a blank
  for (const char c : line) {
    count += blank && !IsBlank(c);
    blank = IsBlank(c);
  }
  return count;
}

void AppendDenseLine(absl::Span<const float> values, std::string* out, Digits digits) {
  FieldWriter fields(values.size(), digits, out);
  for (size_t i = 0; i < values.size(); ++i) {
    if (i == 0) {
      fields.AddBare(values[i]);
    } else {
      fields.Add(values[i]);
    }
  }
  fields.Finish();
}

absl::Status ParseDenseLine(absl::string_view line, size_t columns, std::vector<float>* values) {
  FieldReader fields(line);
  const size_t begin = values->size();
  values->resize(begin + columns);
  fields.ReadCells(values->data() + begin, values->data() + begin + columns);
  const absl::Status status =
      fields.Finish([](size_t index) { return absl::StrCat("column ", index); });
  if (!status.ok()) values->resize(begin);
  return status;
}

}  // namespace cistern
