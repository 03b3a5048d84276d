#include "common/base/hash.h"

#include <gtest/gtest.h>

#include <random>

namespace cistern {
namespace {

// The first outputs of splitmix64 with the seeds 0 and 1234567 (java.util.SplittableRandom; Rosetta
// Code).
TEST(Hash, MixKeyIsSplitmix64) {
  EXPECT_EQ(MixKey(0), 0xe220a8397b1dcdafull);
  EXPECT_EQ(MixKey(1234567), 6457827717110365317ull);
}

// Expected values: xxhsum -H3 0.8.1.
TEST(Hash, BytesAreXxh3) {
  EXPECT_EQ(HashBytes(""), 0x2d06800538d394c2ull);
  EXPECT_EQ(HashBytes("1\n2\n"), 0x9dc5cef91ba42b84ull);
}

TEST(Hash, APairIsItsBytes) {
  const uint64_t pair[2] = {1, 0x0123456789abcdefull};
  EXPECT_EQ(HashPair(pair[0], pair[1]), HashBytes(pair, sizeof(pair)));
  // Python's xxhash.xxh3_64_intdigest of the bytes 00 .. 0f.
  EXPECT_EQ(HashPair(0x0706050403020100ull, 0x0f0e0d0c0b0a0908ull), 0x8355e3a6f61770dbull);
}

TEST(Hash, UnmixKeyUndoesMixKey) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 10000; ++i) {
    const Key key = random() >> (i % 64);
    ASSERT_EQ(UnmixKey(MixKey(key)), key);
    ASSERT_EQ(MixKey(UnmixKey(key)), key);
  }
  for (const Key key : {Key{0}, Key{1}, kReservedKey32, kReservedKey64, ~Key{0}}) {
    EXPECT_EQ(UnmixKey(MixKey(key)), key);
    EXPECT_EQ(MixKey(UnmixKey(key)), key);
  }
}

}  // namespace
}  // namespace cistern
