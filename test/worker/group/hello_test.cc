#include "worker/group/hello.h"

#include <gtest/gtest.h>

namespace cistern::group {
namespace {

// Written by hand, from the layout in hello.h.
constexpr absl::string_view kBytes(
    "CISTPEE2"
    "\x08\x07\x06\x05\x04\x03\x02\x01"
    "\x05\x00\x00\x00"
    "\x00\x01\x00\x00"
    "\x16\x1e\x00\x00",
    28);

TEST(Hello, HasTheDocumentedBytes) {
  EXPECT_EQ(FormatHello({0x0102030405060708, 5, 256, 7702}), kBytes);
  const absl::StatusOr<Hello> hello = ParseHello(kBytes);
  ASSERT_TRUE(hello.ok()) << hello.status();
  EXPECT_EQ(hello->secret, 0x0102030405060708u);
  EXPECT_EQ(hello->rank, 5u);
  EXPECT_EQ(hello->size, 256u);
  EXPECT_EQ(hello->port, 7702);
}

TEST(Hello, WithAnotherLengthMagicOrPortIsRefused) {
  for (size_t length = 0; length < kBytes.size(); ++length) {
    EXPECT_EQ(ParseHello(kBytes.substr(0, length)).status().code(),
              absl::StatusCode::kInvalidArgument)
        << length;
  }
  EXPECT_FALSE(ParseHello(std::string(kBytes) + "x").ok());
  for (size_t i = 0; i < 8; ++i) {
    std::string other(kBytes);
    other[i] ^= 1;
    EXPECT_FALSE(ParseHello(other).ok()) << i;
  }
  for (const absl::string_view port :
       {absl::string_view("\0\0\0\0", 4), absl::string_view("\0\0\1\0", 4),
        absl::string_view("\xff\xff\xff\xff", 4)}) {
    EXPECT_FALSE(ParseHello(std::string(kBytes.substr(0, 24)) + std::string(port)).ok());
  }
}

TEST(Hello, MayHaveAnyRankAndSize) {
  const absl::StatusOr<Hello> hello = ParseHello(FormatHello({1, ~0u, ~0u, 1}));
  ASSERT_TRUE(hello.ok()) << hello.status();
  EXPECT_EQ(hello->rank, ~0u);
}

TEST(Hello, SecretsMatchOnlyInAllBits) {
  constexpr uint64_t kSecret = 0x0123456789abcdef;
  EXPECT_TRUE(SameSecret(kSecret, kSecret));
  for (int bit = 0; bit < 64; ++bit) {
    EXPECT_FALSE(SameSecret(kSecret, kSecret ^ (uint64_t{1} << bit)));
  }
}

}  // namespace
}  // namespace cistern::group
