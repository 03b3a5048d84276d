// Splits a line of delimited text into fields.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "common/base/status.h"

namespace cistern::data {

// Threads: one at a time.
class FieldSplitter {
 public:
  // quotes: fields can be in double quotes (RFC 4180). trim: spaces around a field do not count.
  FieldSplitter(char delimiter, bool quotes, bool trim)
      : delimiter_(delimiter), quotes_(quotes), trim_(trim) {}

  // Extends the line by the next one, with the line end between them; false at the end.
  using Extend = absl::FunctionRef<absl::StatusOr<bool>(absl::string_view* line)>;

  // Replaces `fields`, which are valid until the next call and as long as the line is. extend: for
  // a quoted field that holds a line end. kInvalidArgument, without a place: a quote that is never
  // closed, or text after one.
  absl::Status Split(absl::string_view line, const Extend& extend,
                     std::vector<absl::string_view>* fields);

 private:
  void SplitPlain(absl::string_view line, std::vector<absl::string_view>* fields) const;
  absl::Status SplitQuoted(absl::string_view line, const Extend& extend,
                           std::vector<absl::string_view>* fields);
  absl::Status TakeQuoted(absl::string_view* line, size_t* place, const Extend& extend);
  // The first byte from `place` on that is not a space to trim.
  size_t SkipSpaces(absl::string_view line, size_t place) const;

  const char delimiter_;
  const bool quotes_, trim_;
  // For a line with quotes: the text of its fields, back to back, and the end offset of each.
  std::string text_;
  std::vector<size_t> ends_;
};

}  // namespace cistern::data
