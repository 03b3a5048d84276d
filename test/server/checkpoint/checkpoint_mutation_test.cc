// Reads 200000 mutated row files and manifests: none stops the process, none is read as something
// else. Half of them have bytes changed at random. The others are changed inside and get matching
// hashes, as an attacker would do it, so that they reach the checks after the hashes.
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <iterator>

#include "test/server/checkpoint/manifest_sample.h"
#include "test/support/disk_log.h"
#include "test/support/memory_file_system.h"

namespace cistern::server {
namespace {

// Changes 1 to 4 places: bytes are flipped, set, inserted, removed, or copied from elsewhere.
void Mutate(SeededNumbers& numbers, std::string* bytes) {
  const uint64_t places = 1 + numbers.Below(4);
  for (uint64_t i = 0; i < places; ++i) {
    const size_t size = bytes->size();
    if (size == 0) return;
    const size_t at = numbers.Below(size), length = 1 + numbers.Below(16);
    switch (numbers.Below(6)) {
      case 0:
        (*bytes)[at] = static_cast<char>((*bytes)[at] ^ (1 << numbers.Below(8)));
        break;
      case 1: {
        constexpr uint8_t kValues[] = {0, 1, 0x7f, 0x80, 0xff, '"'};
        (*bytes)[at] = static_cast<char>(kValues[numbers.Below(std::size(kValues))]);
        break;
      }
      case 2:
        bytes->insert(at, length, static_cast<char>(numbers.Below(256)));
        break;
      case 3:
        bytes->erase(at, length);
        break;
      case 4:
        bytes->replace(at, length, bytes->substr(numbers.Below(size), length));
        break;
      case 5: {
        const uint64_t number = numbers.Below(3) == 0 ? ~uint64_t{0} : numbers.Below(300);
        bytes->replace(at, 8, reinterpret_cast<const char*>(&number), 8);
        break;
      }
    }
  }
}

class Mutations : public testing::Test {
 protected:
  Mutations() {
    MemoryFileSystem files;
    EXPECT_TRUE(files.MakeFolders("data").ok());
    file_ = WriteSample(files, "data", "x").value();
    bytes_ = ReadWhole(files, "data/x", 1 << 20).value();
  }

  static absl::Status Read(const std::string& bytes, const v1::RowFile& expected) {
    MemoryFileSystem files;
    files.Put("data/x", bytes);
    const absl::Status status = ReadEverything(files, "data", expected);
    EXPECT_TRUE(status.ok() || absl::IsDataLoss(status)) << status;
    return status;
  }

  v1::RowFile file_;
  std::string bytes_;
};

TEST_F(Mutations, OfARowFileAreRefused) {
  v1::RowFile unnamed;
  unnamed.set_name("x");
  int read = 0;
  for (uint64_t seed = 0; seed < 80000; ++seed) {
    SeededNumbers numbers(seed * 1000);
    std::string bytes = bytes_;
    Mutate(numbers, &bytes);
    if (bytes == bytes_) continue;
    read += Read(bytes, seed % 2 == 0 ? file_ : unnamed).ok();
  }
  EXPECT_EQ(read, 0);
}

TEST_F(Mutations, OfARowFileWithMatchingHashesNeverCrash) {
  v1::RowFile unnamed;
  unnamed.set_name("x");
  const RowFileParts whole = TakeApart(bytes_);
  int read = 0, refused = 0;
  for (uint64_t seed = 0; seed < 80000; ++seed) {
    SeededNumbers numbers(seed * 1000);
    RowFileParts parts = whole;
    std::string bytes;
    if (seed % 2 == 0) {
      Mutate(numbers, &parts.blocks[numbers.Below(parts.blocks.size())]);
      bytes = PutTogether(std::move(parts));
    } else {
      std::string footer = EncodeRowFileFooter(parts.footer);
      Mutate(numbers, &footer);
      bytes = PutTogether(parts, footer);
      bytes.replace(0, kRowFileHeaderBytes, footer, 0, kRowFileHeaderBytes);
    }
    const bool ok = Read(bytes, unnamed).ok();
    (ok ? read : refused) += 1;
    // A manifest records the hash of the file that it names.
    EXPECT_TRUE(bytes == bytes_ || !Read(bytes, file_).ok());
  }
  EXPECT_GT(read, 1000);  // e.g. cells with other numbers
  EXPECT_GT(refused, 10000);
}

TEST_F(Mutations, OfAManifestAreRefused) {
  const std::string text = FormatManifest(SampleManifest());
  int read = 0;
  for (uint64_t seed = 0; seed < 30000; ++seed) {
    SeededNumbers numbers(seed * 1000);
    std::string changed = text;
    Mutate(numbers, &changed);
    if (changed == text) continue;
    read += ParseManifest(changed).ok();
  }
  EXPECT_EQ(read, 0);
}

TEST_F(Mutations, OfAManifestWithAMatchingHashAreReadCorrectlyOrRefused) {
  const std::string text = FormatManifest(SampleManifest());
  const std::string body = text.substr(0, text.find(",\n \"self_xxh3\""));
  int read = 0, refused = 0;
  for (uint64_t seed = 0; seed < 10000; ++seed) {
    SeededNumbers numbers(seed * 1000);
    std::string changed = body;
    Mutate(numbers, &changed);
    changed += ",\n ";
    const uint64_t hash = HashBytes(changed);
    absl::StrAppend(&changed, "\"self_xxh3\": \"", absl::Hex(hash, absl::kZeroPad16), "\"\n}\n");
    const absl::StatusOr<ParsedManifest> parsed = ParseManifest(changed);
    (parsed.ok() ? read : refused) += 1;
    if (!parsed.ok()) {
      EXPECT_TRUE(absl::IsDataLoss(parsed.status())) << parsed.status();
      continue;
    }
    const auto again = ParseManifest(FormatManifest(parsed->manifest));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(
        google::protobuf::util::MessageDifferencer::Equals(again->manifest, parsed->manifest));
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace cistern::server
