// Record batches in memory as a table of text: an Arrow IPC stream, as a message of a topic has it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "worker/data/recipe/text_table.h"

namespace cistern::data {

// How streams begin, and files of record batches, which are no streams. No text in UTF-8 does.
inline constexpr absl::string_view kArrowStreamBegin("\xff\xff\xff\xff", 4);
inline constexpr absl::string_view kArrowFileBegin("ARROW1\0\0", 8);

// A whole stream: the schema, dictionaries, record batches and the mark of the end. The types of
// columns and their texts are those of OpenParquetTable. Bodies may be compressed.
//
// bytes: copied; any bytes at all. wanted: the columns that are read; the fields of others are
// empty.
//
// The errors of this and of Next have no place. kDataLoss: the bytes are a file, corrupt, cut short
// or have more after their end; they need more memory than a stream of its size can; none of the
// wanted columns is there, or one is there twice; a list has a value with the separator.
// kUnimplemented: a feature that this build of Arrow does not have. kInvalidArgument: built without
// Arrow, which is not the stream's fault.
absl::StatusOr<std::unique_ptr<TextTable>> OpenArrowStream(absl::string_view bytes,
                                                           const std::vector<std::string>& wanted,
                                                           const ListSeparators& separators);

}  // namespace cistern::data
