// Decompresses gzip (RFC 1952) and zstd (RFC 8878) while reading, in bounded memory: one buffer of
// compressed bytes and the window of the format (gzip 32 KiB, zstd up to 128 MiB). The unpacked
// contents are never held as a whole, so a small file that unpacks to a huge one costs time, not
// memory.
#pragma once

#include <memory>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/io/byte_source.h"

namespace cistern {

// The compression that a file with these first bytes has: "gzip", "zstd", or "" for none. The name
// of a file does not matter. 4 bytes are enough.
const char* CompressionOf(absl::string_view begin);

// Returns the contents of `source`: unpacked if it begins with the magic bytes of gzip or zstd,
// unchanged otherwise. Several streams or frames back to back are one file, as for gzip and zstd.
//
// Read returns kDataLoss, with the file and the byte in it, if the data is corrupt, ends inside a
// stream, or needs a window above 128 MiB (zstd --long=28 and above).
absl::StatusOr<std::unique_ptr<ByteSource>> Decompressed(std::unique_ptr<ByteSource> source);

}  // namespace cistern
