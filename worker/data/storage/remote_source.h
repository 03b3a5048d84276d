// Reads a remote file forward. Include only where Arrow is available.
#pragma once

#include <arrow/io/interfaces.h>

#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/io/byte_source.h"

namespace cistern::data {

// Reads `file` in pieces of 256 KiB at first, later of 4 MiB: each is a request. While one piece is
// used, the next one is read, so that reading overlaps the caller's work. A piece that fails is
// read again, three times in all, if the server may recover.
absl::StatusOr<std::unique_ptr<ByteSource>> MakeRemoteSource(
    const std::string& path, std::shared_ptr<arrow::io::RandomAccessFile> file);

}  // namespace cistern::data
