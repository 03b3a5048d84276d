#include "worker/data/prepare/sample_json.h"

#include <charconv>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "worker/data/format/key_weights.h"

namespace cistern::data {
namespace {

// The bytes of the UTF-8 character at `at`; 0 if it is malformed, overlong, a surrogate or beyond
// U+10FFFF.
size_t CharacterBytes(absl::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return 1;
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() - at < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = byte(at + 1);
  const bool is_bad = (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
                      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
  return is_bad ? 0 : size;
}

// Whether `text` is a whole number as JSON writes it.
bool IsWholeNumber(absl::string_view text) {
  if (text.empty() || text.size() > 19 || (text[0] == '0' && text.size() > 1)) return false;
  for (const char c : text) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) return false;
  }
  return true;
}

void AppendFloat(float x, std::string* json) {
  char text[32];
  // As a double, whose shortest text reads back as exactly this float.
  const auto end = std::to_chars(text, text + sizeof(text), static_cast<double>(x)).ptr;
  json->append(text, end);
}

void AppendFloats(const float* x, size_t count, std::string* json) {
  *json += '[';
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) *json += ',';
    AppendFloat(x[i], json);
  }
  *json += ']';
}

bool AppendField(absl::string_view text, bool numbers, std::string* json) {
  if (!numbers || !IsWholeNumber(text)) return AppendJsonText(text, json);
  absl::StrAppend(json, text);
  return true;
}

bool AppendValues(absl::string_view field, const RowJsonOptions& options, std::string* json) {
  *json += '[';
  bool first = true;
  while (!field.empty()) {
    const size_t end = std::min(field.find(options.separator), field.size());
    if (end > 0) {
      if (!first) *json += ',';
      first = false;
      if (!AppendField(field.substr(0, end), options.numbers, json)) return false;
    }
    field.remove_prefix(std::min(end + 1, field.size()));
  }
  *json += ']';
  return true;
}

}  // namespace

bool AppendJsonText(absl::string_view text, std::string* json) {
  const size_t before = json->size();
  *json += '"';
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = CharacterBytes(text, at);
    if (bytes == 0) {
      json->resize(before);
      return false;
    }
    const char c = text[at];
    if (c == '"' || c == '\\') {
      *json += '\\';
      *json += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(json, "\\u%04x", static_cast<unsigned>(c));
    } else {
      json->append(text.data() + at, bytes);
    }
    at += bytes;
  }
  *json += '"';
  return true;
}

absl::Status RowJson(const RowJsonOptions& options, const std::vector<absl::string_view>& fields,
                     std::string* json) {
  json->assign(1, '{');
  for (size_t i = 0; i < options.columns.size(); ++i) {
    if (i > 0) *json += ',';
    AppendJsonText(options.columns[i], json);
    *json += ':';
    const bool is_text = options.multi[i] ? AppendValues(fields[i], options, json)
                                          : AppendField(fields[i], options.numbers, json);
    if (is_text) continue;
    return absl::DataLossError(absl::StrCat("column '", options.columns[i],
                                            "' is not UTF-8, which JSON cannot hold: convert it"));
  }
  *json += '}';
  return absl::OkStatus();
}

// The field "weights": an array for each slot whose keys have weights.
void AppendSlotWeights(const SampleShape& shape, const SampleBlock& block, size_t sample,
                       std::string* json) {
  *json += ",\"weights\":[";
  for (size_t input = 0; input < block.sparse.size(); ++input) {
    if (!shape.key_weights[input]) continue;
    const SparseColumn& column = block.sparse[input];
    const uint32_t* offsets = column.offsets.data() + sample * shape.slot_nums[input];
    for (uint32_t slot = 0; slot < shape.slot_nums[input]; ++slot) {
      if (json->back() != '[') *json += ',';
      AppendFloats(column.weights.data() + offsets[slot], offsets[slot + 1] - offsets[slot], json);
    }
  }
  *json += ']';
}

void SampleJson(const SampleShape& shape, const SampleBlock& block, size_t sample,
                std::string* json) {
  json->clear();
  *json += "{\"label\":";
  AppendFloats(block.label.data() + sample * shape.label_dim, shape.label_dim, json);
  *json += ",\"dense\":";
  AppendFloats(block.dense.data() + sample * shape.dense_dim, shape.dense_dim, json);
  *json += ",\"slots\":[";
  for (size_t input = 0; input < block.sparse.size(); ++input) {
    const SparseColumn& column = block.sparse[input];
    const uint32_t* offsets = column.offsets.data() + sample * shape.slot_nums[input];
    for (uint32_t slot = 0; slot < shape.slot_nums[input]; ++slot) {
      *json += json->back() == '[' ? "[" : ",[";
      for (uint32_t k = offsets[slot]; k < offsets[slot + 1]; ++k) {
        absl::StrAppend(json, k > offsets[slot] ? "," : "", column.keys[k]);
      }
      *json += ']';
    }
  }
  *json += ']';
  if (HasKeyWeights(shape)) AppendSlotWeights(shape, block, sample, json);
  *json += '}';
}

}  // namespace cistern::data
