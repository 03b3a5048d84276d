// A look at standard input before it is read: what it holds decides what reads it.
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/io/byte_source.h"

namespace cistern::data {

// The first line of standard input, unpacked if it is compressed and without its end, or as much of
// it as `most` bytes hold. OpenSource("-") (storage.h) reads these bytes again, once.
//
// Threads: one at a time, as standard input itself.
absl::StatusOr<std::string> FirstLineOfStandardInput(size_t most);

// Standard input, unpacked, from its first byte on.
absl::StatusOr<std::unique_ptr<ByteSource>> OpenStandardInput();

}  // namespace cistern::data
