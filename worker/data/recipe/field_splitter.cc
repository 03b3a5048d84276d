#include "worker/data/recipe/field_splitter.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace cistern::data {
namespace {

absl::string_view Trimmed(absl::string_view field) {
  while (!field.empty() && field.front() == ' ') field.remove_prefix(1);
  while (!field.empty() && field.back() == ' ') field.remove_suffix(1);
  return field;
}

}  // namespace

absl::Status FieldSplitter::Split(absl::string_view line, const Extend& extend,
                                  std::vector<absl::string_view>* fields) {
  fields->clear();
  if (!quotes_ || std::memchr(line.data(), '"', line.size()) == nullptr) {
    SplitPlain(line, fields);
  } else {
    CISTERN_RETURN_IF_ERROR(SplitQuoted(line, extend, fields));
  }
  if (!trim_) return absl::OkStatus();
  for (absl::string_view& field : *fields) field = Trimmed(field);
  return absl::OkStatus();
}

void FieldSplitter::SplitPlain(absl::string_view line,
                               std::vector<absl::string_view>* fields) const {
  const char* begin = line.data();
  const char* const end = begin + line.size();
  while (true) {
    const void* found = std::memchr(begin, delimiter_, static_cast<size_t>(end - begin));
    const char* stop = found == nullptr ? end : static_cast<const char*>(found);
    fields->emplace_back(begin, static_cast<size_t>(stop - begin));
    if (found == nullptr) return;
    begin = stop + 1;
  }
}

size_t FieldSplitter::SkipSpaces(absl::string_view line, size_t place) const {
  while (trim_ && place < line.size() && line[place] == ' ') ++place;
  return place;
}

absl::Status FieldSplitter::SplitQuoted(absl::string_view line, const Extend& extend,
                                        std::vector<absl::string_view>* fields) {
  text_.clear();
  ends_.clear();
  for (size_t place = 0; true; ++place) {
    const size_t first = SkipSpaces(line, place);
    if (first < line.size() && line[first] == '"') {
      place = first;
      CISTERN_RETURN_IF_ERROR(TakeQuoted(&line, &place, extend));
    } else {
      const size_t end = std::min(line.find(delimiter_, place), line.size());
      text_.append(line.data() + place, end - place);
      place = end;
    }
    ends_.push_back(text_.size());
    if (place == line.size()) break;
  }
  for (size_t i = 0, begin = 0; i < ends_.size(); begin = ends_[i++]) {
    fields->push_back(absl::string_view(text_).substr(begin, ends_[i] - begin));
  }
  return absl::OkStatus();
}

// Reads the field with its opening quote at `place`, and sets `place` to the byte after it. A
// quoted field can contain line ends, so `line` can grow.
absl::Status FieldSplitter::TakeQuoted(absl::string_view* line, size_t* place,
                                       const Extend& extend) {
  ++*place;
  while (true) {
    const size_t quote = line->find('"', *place);
    if (quote == absl::string_view::npos) {
      const size_t size = line->size();
      CISTERN_ASSIGN_OR_RETURN(const bool longer, extend(line));
      if (!longer) return absl::InvalidArgumentError("opens a quote that is never closed");
      text_.append(line->data() + *place, size - *place);
      *place = size;
      continue;
    }
    text_.append(line->data() + *place, quote - *place);
    *place = SkipSpaces(*line, quote + 1);
    const bool ends = *place == line->size() || (*line)[*place] == delimiter_;
    if (ends) return absl::OkStatus();
    if ((*line)[*place] != '"' || *place != quote + 1) {
      return absl::InvalidArgumentError(absl::StrCat("has text after the closing quote of field ",
                                                     ends_.size() + 1,
                                                     ": write a quote inside quotes twice"));
    }
    text_ += '"';
    ++*place;
  }
}

}  // namespace cistern::data
