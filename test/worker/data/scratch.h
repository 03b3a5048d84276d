// A temporary folder for one test, and functions that build the bytes of Norm files without the
// code under test.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace cistern::data {

// A temporary folder; the destructor removes it.
class Scratch {
 public:
  Scratch() {
    std::string name = testing::TempDir() + "cistern_data_XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~Scratch() { std::filesystem::remove_all(folder_); }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  std::string Write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    // Creates a new file, because ext4 waits for the disk when a file is overwritten.
    std::filesystem::remove(Path(name));
    std::ofstream(Path(name), std::ios::binary) << bytes;
    return Path(name);
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(Path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::filesystem::path folder_;
};

template <typename T>
std::string Bytes(T value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

inline std::string NormHeaderBytes(bool sum, int64_t records, int64_t labels, int64_t dense,
                                   int64_t slots) {
  std::string bytes = Bytes<int64_t>(sum ? 1 : 0);
  for (int64_t x : {records, labels, dense, slots, int64_t{0}, int64_t{0}, int64_t{0}}) {
    bytes += Bytes(x);
  }
  return bytes;
}

// One sample: labels and dense features in one list, then the keys of each slot.
inline std::string NormSampleBytes(bool wide, const std::vector<float>& floats,
                                   const std::vector<std::vector<uint64_t>>& slots) {
  std::string bytes;
  for (float x : floats) bytes += Bytes(x);
  for (const std::vector<uint64_t>& keys : slots) {
    bytes += Bytes(static_cast<int32_t>(keys.size()));
    for (uint64_t key : keys) bytes += wide ? Bytes(key) : Bytes(static_cast<uint32_t>(key));
  }
  return bytes;
}

// The record of `payload` in a file.
inline std::string NormRecordBytes(bool sum, const std::string& payload) {
  if (!sum) return payload;
  int total = 0;
  for (char c : payload) total += static_cast<unsigned char>(c);
  return Bytes(static_cast<int32_t>(payload.size())) + payload +
         static_cast<char>(static_cast<unsigned char>(total % 256));
}

}  // namespace cistern::data
