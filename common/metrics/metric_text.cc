#include "common/metrics/metric_text.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "common/base/check.h"

namespace cistern {
namespace {

const char* NameOf(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return "counter";
    case MetricType::kGauge:
      return "gauge";
    case MetricType::kHistogram:
      return "histogram";
  }
  return "untyped";
}

bool IsName(absl::string_view name) {
  return !name.empty() && name[0] >= 'a' && name[0] <= 'z' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

std::string NumberText(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return absl::StrFormat("%.15g", value);
}

// The bytes of the character at the start of `text`, 0 if it is not UTF-8 (RFC 3629).
size_t CharacterBytes(absl::string_view text) {
  const auto byte = [text](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  size_t bytes = 0;
  if (first >= 0xC2 && first <= 0xDF) bytes = 2;
  if (first >= 0xE0 && first <= 0xEF) bytes = 3;
  if (first >= 0xF0 && first <= 0xF4) bytes = 4;
  if (bytes == 0) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool surrogate = first == 0xED && second >= 0xA0;
  const bool too_large = first == 0xF4 && second >= 0x90;
  return overlong || surrogate || too_large ? 0 : bytes;
}

// Appends a label's value: UTF-8, with the escapes of the format.
void AppendValue(absl::string_view value, std::string* text) {
  const size_t end = text->size() + MetricText::kMaxLabelBytes;
  while (!value.empty() && text->size() < end) {
    const size_t bytes = CharacterBytes(value);
    const char c = value[0];
    if (bytes == 0) {
      *text += '?';
    } else if (c == '\n') {
      *text += "\\n";
    } else if (c == '\\' || c == '"') {
      *text += '\\';
      *text += c;
    } else {
      text->append(value.data(), bytes);
    }
    value.remove_prefix(std::max<size_t>(1, bytes));
  }
  if (!value.empty()) *text += "...";
}

}  // namespace

void MetricText::Family(absl::string_view name, MetricType type, absl::string_view help) {
  family_ = absl::StrCat(prefix_, name);
  type_ = type;
  CISTERN_CHECK(IsName(family_));
  CISTERN_CHECK(absl::EndsWith(name, "_total") == (type == MetricType::kCounter));
  CISTERN_CHECK(!absl::StrContains(help, '\n') && !absl::StrContains(help, '\\'));
  absl::StrAppend(&text_, "# HELP ", family_, " ", help, "\n# TYPE ", family_, " ", NameOf(type),
                  "\n");
}

void MetricText::Append(absl::string_view suffix, Labels labels, absl::string_view bound,
                        absl::string_view value) {
  absl::StrAppend(&text_, family_, suffix);
  char separator = '{';
  const auto add = [&](absl::string_view name, absl::string_view text) {
    text_ += separator;
    absl::StrAppend(&text_, name, "=\"");
    AppendValue(text, &text_);
    text_ += '"';
    separator = ',';
  };
  for (const auto& [name, text] : labels) add(name, text);
  if (!bound.empty()) add("le", bound);
  if (separator == ',') text_ += '}';
  absl::StrAppend(&text_, " ", value, "\n");
}

void MetricText::Sample(Labels labels, double value) {
  CISTERN_CHECK(type_ != MetricType::kHistogram);
  Append("", labels, {}, NumberText(value));
}

void MetricText::Sample(Labels labels, const DurationHistogram& histogram) {
  CISTERN_CHECK(type_ == MetricType::kHistogram);
  const DurationHistogram::Reading reading = histogram.Read();
  for (size_t i = 0; i < reading.bounds.size(); ++i) {
    Append("_bucket", labels, absl::StrCat(reading.bounds[i]), absl::StrCat(reading.up_to[i]));
  }
  Append("_bucket", labels, "+Inf", absl::StrCat(reading.count()));
  Append("_sum", labels, {}, NumberText(reading.sum_seconds));
  Append("_count", labels, {}, absl::StrCat(reading.count()));
}

void MetricText::Counter(absl::string_view name, absl::string_view help, uint64_t value) {
  Family(name, MetricType::kCounter, help);
  Sample({}, value);
}

void MetricText::Counter(absl::string_view name, absl::string_view help, double value) {
  Family(name, MetricType::kCounter, help);
  Sample({}, value);
}

void MetricText::Gauge(absl::string_view name, absl::string_view help, double value) {
  Family(name, MetricType::kGauge, help);
  Sample({}, value);
}

}  // namespace cistern
