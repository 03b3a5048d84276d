// Remote files for Arrow's readers. Include only where Arrow is available.
#pragma once

#include <arrow/io/interfaces.h>
#include <arrow/status.h>

#include <memory>
#include <string>

#include "common/base/status.h"

namespace cistern::data {

// Opens a remote file (storage.h) that is read at any place.
absl::StatusOr<std::shared_ptr<arrow::io::RandomAccessFile>> OpenRemoteFile(
    const std::string& path);

// The error of an operation on a remote path, with the codes of storage.h and without credentials.
absl::Status RemoteError(const std::string& path, const arrow::Status& status);

}  // namespace cistern::data
