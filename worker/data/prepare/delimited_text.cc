// Reads CSV and TSV.
#include <algorithm>
#include <cstring>
#include <set>

#include "worker/data/prepare/line_reader.h"
#include "worker/data/prepare/text_table.h"

namespace cistern {
namespace {

class DelimitedText : public TextTable {
 public:
  DelimitedText(std::unique_ptr<LineReader> lines, const DelimitedOptions& options)
      : lines_(std::move(lines)), options_(options), columns_(options.columns) {}

  absl::Status ReadHeader();
  const std::vector<std::string>& columns() const override { return columns_; }
  absl::StatusOr<bool> Next(TextRow* row) override;
  uint64_t bytes_read() const override { return lines_->bytes_read(); }

 private:
  // Splits the next line that is not empty; false at the end.
  absl::StatusOr<bool> NextFields(std::vector<absl::string_view>* fields);
  void SplitPlain(absl::string_view line, std::vector<absl::string_view>* fields) const;
  absl::Status SplitQuoted(absl::string_view line, std::vector<absl::string_view>* fields);
  absl::Status TakeQuoted(absl::string_view* line, size_t* place);

  std::unique_ptr<LineReader> lines_;
  const DelimitedOptions options_;
  std::vector<std::string> columns_;
  // For a line with quotes: the text of its fields, back to back, and the end offset of each.
  std::string text_;
  std::vector<size_t> ends_;
};

absl::Status DelimitedText::ReadHeader() {
  if (columns_.empty()) {
    std::vector<absl::string_view> fields;
    CISTERN_ASSIGN_OR_RETURN(const bool found, NextFields(&fields));
    if (!found)
      return absl::DataLossError(absl::StrCat(lines_->path(), " is empty: no header line"));
    for (absl::string_view field : fields) columns_.emplace_back(field);
  }
  std::set<absl::string_view> names;
  for (const std::string& name : columns_) {
    if (!names.insert(name).second) {
      const std::string twice = absl::StrCat("column '", name, "' is named twice");
      return options_.columns.empty() ? lines_->DataLoss(twice)
                                      : absl::InvalidArgumentError("--columns: " + twice);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> DelimitedText::Next(TextRow* row) {
  CISTERN_ASSIGN_OR_RETURN(const bool found, NextFields(&row->fields));
  row->line = lines_->line();
  if (!found || row->fields.size() == columns_.size()) return found;
  return lines_->DataLoss(
      absl::StrCat("has ", row->fields.size(), " fields, but there are ", columns_.size(),
                   " columns: check --delimiter, and that the line is complete"));
}

absl::StatusOr<bool> DelimitedText::NextFields(std::vector<absl::string_view>* fields) {
  absl::string_view line;
  do {
    CISTERN_ASSIGN_OR_RETURN(const bool found, lines_->Next(&line));
    if (!found) return false;
  } while (line.empty());
  fields->clear();
  if (!options_.quotes || std::memchr(line.data(), '"', line.size()) == nullptr) {
    SplitPlain(line, fields);
  } else {
    CISTERN_RETURN_IF_ERROR(SplitQuoted(line, fields));
  }
  return true;
}

void DelimitedText::SplitPlain(absl::string_view line,
                               std::vector<absl::string_view>* fields) const {
  const char* begin = line.data();
  const char* const end = begin + line.size();
  while (true) {
    const void* found = std::memchr(begin, options_.delimiter, static_cast<size_t>(end - begin));
    const char* stop = found == nullptr ? end : static_cast<const char*>(found);
    fields->emplace_back(begin, static_cast<size_t>(stop - begin));
    if (found == nullptr) return;
    begin = stop + 1;
  }
}

absl::Status DelimitedText::SplitQuoted(absl::string_view line,
                                        std::vector<absl::string_view>* fields) {
  text_.clear();
  ends_.clear();
  for (size_t place = 0; true; ++place) {
    if (place < line.size() && line[place] == '"') {
      CISTERN_RETURN_IF_ERROR(TakeQuoted(&line, &place));
    } else {
      const size_t end = std::min(line.find(options_.delimiter, place), line.size());
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

// Reads the field with its opening quote at `place`, and sets `place` to the byte after its closing
// quote. A quoted field can contain line ends, so `line` can grow.
absl::Status DelimitedText::TakeQuoted(absl::string_view* line, size_t* place) {
  ++*place;
  while (true) {
    const size_t quote = line->find('"', *place);
    if (quote == absl::string_view::npos) {
      const size_t size = line->size();
      CISTERN_ASSIGN_OR_RETURN(const bool longer, lines_->Extend(line));
      if (!longer) return lines_->DataLoss("opens a quote that is never closed");
      text_.append(line->data() + *place, size - *place);
      *place = size;
      continue;
    }
    text_.append(line->data() + *place, quote - *place);
    *place = quote + 1;
    const bool ends = *place == line->size() || (*line)[*place] == options_.delimiter;
    if (ends) return absl::OkStatus();
    if ((*line)[*place] != '"') {
      return lines_->DataLoss(absl::StrCat("has text after the closing quote of field ",
                                           ends_.size() + 1,
                                           ": write a quote inside quotes twice"));
    }
    text_ += '"';
    ++*place;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<TextTable>> OpenDelimited(const std::string& path,
                                                         const DelimitedOptions& options) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<LineReader> lines, LineReader::Open(path));
  auto text = std::make_unique<DelimitedText>(std::move(lines), options);
  CISTERN_RETURN_IF_ERROR(text->ReadHeader());
  return text;
}

}  // namespace cistern
