// Functions for tests that write and read files of a saved model.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/saved_model/model_folder.h"
#include "test/support/temp_folder.h"

namespace cistern {

inline std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

// Writes a file with one line per row and returns its record.
inline ModelFile WriteFile(const std::string& folder, const std::string& name,
                           const std::vector<std::string>& lines) {
  std::unique_ptr<ModelFileWriter> writer = ModelFileWriter::Create(Disk(), folder, name).value();
  for (const std::string& line : lines) EXPECT_TRUE(writer->Append(line + "\n", 1).ok());
  return writer->Close().value();
}

// Reads a whole file into `lines`.
inline absl::Status ReadWhole(const std::string& folder, const ModelFile& file,
                              std::vector<std::string>* lines = nullptr) {
  return ReadModelFile(Disk(), folder, file, [&](absl::string_view line) {
    if (lines != nullptr) lines->emplace_back(line);
    return absl::OkStatus();
  });
}

}  // namespace cistern
