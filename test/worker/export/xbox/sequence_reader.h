// Reads SequenceFiles in Cube's form, for tests. (Another reader of all forms, in Python:
// test/integration/sequence_files.py.)
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "common/base/types.h"
#include "common/io/file_system.h"
#include "test/worker/export/xbox/last_done.h"

namespace cistern {

// Key -> value bytes.
using XboxRows = std::map<Key, std::string>;

// Adds the rows of a file; a row replaces an older one with its key.
inline void ReadCubeFile(FileSystem& files, const std::string& path, XboxRows* rows) {
  constexpr size_t kHeader = 4 + 2 * 35 + 2 + 4 + 16;
  const std::string bytes = ReadWhole(files, path, uint64_t{1} << 30).value();
  ASSERT_GE(bytes.size(), kHeader);
  const auto number = [&bytes](size_t at) {
    uint32_t x = 0;
    for (size_t i = 0; i < 4; ++i) x = x << 8 | static_cast<uint8_t>(bytes[at + i]);
    return x;
  };
  for (size_t at = kHeader; at < bytes.size();) {
    if (number(at) == 0xFFFFFFFF) {
      ASSERT_EQ(bytes.substr(at + 4, 16), bytes.substr(kHeader - 16, 16));
      at += 20;
    }
    const size_t record = number(at);
    ASSERT_EQ(number(at + 4), sizeof(Key));
    Key key;
    std::memcpy(&key, &bytes[at + 8], sizeof(key));
    (*rows)[key] = bytes.substr(at + 16, record - sizeof(Key));
    at += 8 + record;
  }
}

// Applies the version that a donefile names last, e.g. "out/donefile/base.txt".
inline void ApplyLast(FileSystem& files, const std::string& donefile, XboxRows* rows) {
  const auto line = LastDone(files, donefile);
  ASSERT_TRUE(line.ok() && line->has_value()) << line.status();
  const std::string folder = (*line)->input + "/feature";
  const auto names = files.List(folder);
  ASSERT_TRUE(names.ok()) << names.status();
  for (const std::string& name : *names) ReadCubeFile(files, folder + "/" + name, rows);
}

}  // namespace cistern
