#include "common/base/stream_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "common/base/hash.h"

namespace cistern {
namespace {

TEST(StreamHash, IsTheHashOfAllPieces) {
  std::string bytes(3000, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 + i / 256);
  // The hash has other formulas for short inputs: up to 16, 128 and 240 bytes.
  for (const size_t size : {0, 1, 16, 17, 128, 129, 240, 241, 1024, 3000}) {
    StreamHash whole, pieces;
    whole.Add(bytes.data(), size);
    for (size_t at = 0; at < size; at += 37) {
      pieces.Add(absl::string_view(bytes).substr(at, std::min<size_t>(37, size - at)));
    }
    EXPECT_EQ(whole.value(), HashBytes(bytes.data(), size)) << size;
    EXPECT_EQ(pieces.value(), whole.value()) << size;
  }
}

// Expected value: Python's xxhash.xxh3_64_intdigest(b"1\n2\n", seed=42).
TEST(StreamHash, HasASeed) {
  StreamHash hash(42);
  hash.Add("1\n2\n");
  EXPECT_EQ(hash.value(), 0x901e6ff5c5e7f1c1ull);
}

}  // namespace
}  // namespace cistern
