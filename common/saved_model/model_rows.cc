#include "common/saved_model/model_rows.h"

#include <algorithm>
#include <memory>

#include "common/value/value_binary.h"
#include "common/value/value_text.h"
#include "common/value/value_upgrade.h"

namespace cistern {
namespace {

constexpr size_t kAverageColumn = 1;  // of ADAM_D2SUM

bool IsText(v1::SaveFormat::Kind kind) {
  return kind != v1::SaveFormat::BINARY;
}

bool ForgetsAverage(v1::SaveFormat::Kind kind, const v1::DenseTableSpec& table) {
  return IsText(kind) && table.rule().kind() == v1::DenseRule::ADAM_D2SUM;
}

bool IsSame(const google::protobuf::Message& a, const google::protobuf::Message& b) {
  return a.SerializeAsString() == b.SerializeAsString();
}

Digits DigitsOf(const v1::SaveFormat& format) {
  return format.six_digits() ? Digits::kSix : Digits::kShortest;
}

}  // namespace

absl::Status CheckFormat(const v1::SaveFormat& format) {
  if (!v1::SaveFormat::Kind_IsValid(format.kind())) {
    return absl::InvalidArgumentError(
        absl::StrCat("save format ", static_cast<int>(format.kind()), " does not exist"));
  }
  if (IsText(format.kind()) || !format.six_digits()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "six_digits requires the text format; a binary save holds every bit: drop one of the two");
}

bool IsExact(const v1::SaveFormat& format) {
  return !IsText(format.kind()) || !format.six_digits();
}

bool IsExact(const v1::SaveFormat& format, const v1::DenseTableSpec& table) {
  return IsExact(format) && !ForgetsAverage(format.kind(), table);
}

void AppendRow(const v1::SaveFormat& format, const ValueLayout& layout, Key key, const float* value,
               bool has_embedx, std::string* out) {
  if (IsText(format.kind())) {
    AppendValueLine(layout, key, value, has_embedx, out, DigitsOf(format));
  } else {
    AppendValueRecord(layout, key, value, has_embedx, out);
  }
}

void AppendDenseRow(const v1::SaveFormat& format, const v1::DenseTableSpec& table, uint64_t row,
                    absl::Span<const float> values, std::string* out) {
  if (!IsText(format.kind())) return AppendDenseRecord(row, values, out);
  if (!ForgetsAverage(format.kind(), table)) return AppendDenseLine(values, out, DigitsOf(format));
  std::vector<float> cells(values.begin(), values.end());
  cells[kAverageColumn] = 0.0f;
  AppendDenseLine(cells, out, DigitsOf(format));
}

RowParser ParserOf(v1::SaveFormat::Kind kind, const ValueLayout& layout) {
  if (IsText(kind)) {
    return [layout](absl::string_view row, Key* key, float* value, bool* has_embedx) {
      return ParseValueLine(layout, row, key, value, has_embedx);
    };
  }
  return [layout](absl::string_view row, Key* key, float* value, bool* has_embedx) {
    return ParseValueRecord(layout, row, key, value, has_embedx);
  };
}

absl::StatusOr<RowParser> UpgradingParser(v1::SaveFormat::Kind kind, const ValueLayout& from,
                                          const ValueLayout& to) {
  CISTERN_ASSIGN_OR_RETURN(const ValueUpgrade upgrade, ValueUpgrade::Create(from, to));
  return RowParser(
      [parse = ParserOf(kind, from), upgrade, old = std::vector<float>(from.full_floats())](
          absl::string_view row, Key* key, float* value, bool* has_embedx) mutable {
        bool old_has_embedx = false;
        CISTERN_RETURN_IF_ERROR(parse(row, key, old.data(), &old_has_embedx));
        *has_embedx = upgrade.Convert(*key, old.data(), old_has_embedx, value);
        return absl::OkStatus();
      });
}

absl::StatusOr<RowParser> ParserFor(v1::SaveFormat::Kind kind, const v1::TableSpec& saved,
                                    const v1::TableSpec& table) {
  CISTERN_ASSIGN_OR_RETURN(const ValueLayout to, ValueLayout::CreateStored(table));
  if (IsSame(saved, table)) return ParserOf(kind, to);
  CISTERN_ASSIGN_OR_RETURN(const ValueLayout from, ValueLayout::CreateStored(saved));
  return UpgradingParser(kind, from, to);
}

RowParser LegacyParser(v1::SaveFormat::Kind kind, const v1::TableSpec& table, CtrFields fields) {
  const auto rows = std::make_shared<LegacyRows>(table, fields);
  if (IsText(kind)) {
    return [rows](absl::string_view row, Key* key, float* value, bool* has_embedx) {
      return rows->ParseLine(row, key, value, has_embedx);
    };
  }
  return [rows](absl::string_view row, Key* key, float* value, bool* has_embedx) {
    return rows->ParseRecord(row, key, value, has_embedx);
  };
}

absl::Status RepeatedKey(v1::SaveFormat::Kind kind, uint64_t number, Key key) {
  return absl::DataLossError(
      absl::StrCat(IsText(kind) ? "line " : "record ", number, ": key ", key,
                   " occurs for the second time; restore the file from a copy"));
}

DenseRowParser DenseParserOf(v1::SaveFormat::Kind kind, const v1::DenseTableSpec& table) {
  const size_t columns = static_cast<size_t>(table.columns_size());
  if (!IsText(kind)) {
    return [columns](absl::string_view text, uint64_t row, std::vector<float>* values) {
      return ParseDenseRecord(text, row, columns, values);
    };
  }
  const bool forgets = ForgetsAverage(kind, table);
  return [columns, forgets](absl::string_view text, uint64_t, std::vector<float>* values) {
    CISTERN_RETURN_IF_ERROR(ParseDenseLine(text, columns, values));
    if (forgets) (*values)[values->size() - columns + kAverageColumn] = 0.0f;
    return absl::OkStatus();
  };
}

DenseRowParser UpgradingDenseParser(v1::SaveFormat::Kind kind, const v1::DenseTableSpec& from,
                                    const v1::DenseTableSpec& to) {
  std::vector<int> places;  // the index in `from` of each column of `to`; -1: not in `from`
  for (const std::string& column : to.columns()) {
    const auto found = std::find(from.columns().begin(), from.columns().end(), column);
    places.push_back(
        found == from.columns().end() ? -1 : static_cast<int>(found - from.columns().begin()));
  }
  return [parse = DenseParserOf(kind, from), places, old = std::vector<float>()](
             absl::string_view text, uint64_t row, std::vector<float>* values) mutable {
    old.clear();
    CISTERN_RETURN_IF_ERROR(parse(text, row, &old));
    for (const int place : places) {
      values->push_back(place < 0 ? 0.0f : old[static_cast<size_t>(place)]);
    }
    return absl::OkStatus();
  };
}

DenseRowParser DenseParserFor(v1::SaveFormat::Kind kind, const v1::DenseTableSpec& saved,
                              const v1::DenseTableSpec& table) {
  return IsSame(saved, table) ? DenseParserOf(kind, table)
                              : UpgradingDenseParser(kind, saved, table);
}

}  // namespace cistern
