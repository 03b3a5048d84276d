#include "server/checkpoint/term_claim.h"

#include <gtest/gtest.h>

namespace cistern::server {
namespace {

TEST(TermClaim, ReadsBackWhatWasFormatted) {
  TermClaim claim = ParseClaim(7, "");
  claim.commit = 41;
  claim.secret = 0x0f3a5c7e9b1d2f40;
  claim.writer = "cistern train, process 4711 on host-3";
  const std::string text = FormatClaim(claim);
  EXPECT_EQ(text,
            "commit 41\nsecret 0f3a5c7e9b1d2f40\nwriter cistern train, process 4711 on host-3\n");
  const TermClaim read = ParseClaim(7, text);
  EXPECT_EQ(read.term, 7u);
  EXPECT_EQ(read.commit, claim.commit);
  EXPECT_EQ(read.secret, claim.secret);
  EXPECT_EQ(read.writer, claim.writer);
}

// A crash may truncate a claim anywhere: a secret is read whole or not at all.
TEST(TermClaim, HasNoSecretIfTheFileEndsBeforeIt) {
  TermClaim claim = ParseClaim(7, "");
  claim.secret = 0x1111111111111111;
  const std::string text = FormatClaim(claim);
  const size_t whole = text.find("1111111111111111\n") + 17;
  for (size_t bytes = 0; bytes <= text.size(); ++bytes) {
    EXPECT_EQ(ParseClaim(7, text.substr(0, bytes)).secret.has_value(), bytes >= whole) << bytes;
  }
}

TEST(TermClaim, SkipsUnknownLines) {
  const TermClaim read =
      ParseClaim(7, "commit x\nsecret 12\nsecret zzzzzzzzzzzzzzzz\n\nmood good\n");
  EXPECT_EQ(read.commit, 0u);
  EXPECT_FALSE(read.secret.has_value());
  EXPECT_EQ(read.writer, "");
}

}  // namespace
}  // namespace cistern::server
