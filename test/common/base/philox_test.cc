// Compares the random generator with its authors' test vectors, and the distributions with their
// moments.
#include "common/base/philox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace cistern {
namespace {

using ::testing::ElementsAre;

// Random123, kat_vectors: philox4x32-10.
TEST(Philox, GivesThePublishedVectors) {
  EXPECT_THAT(Philox(0, 0, 0).word, ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(Philox(~0ull, ~0ull, ~0ull).word,
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  // Digits of pi; word 0 of the counter and of the key is the low half.
  EXPECT_THAT(Philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e).word,
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(Philox, UniformIsAnExactFloatBelowOne) {
  EXPECT_EQ(UniformFromBits(0), 0.0f);
  EXPECT_EQ(UniformFromBits(255), 0.0f);  // the low 8 bits do not count
  EXPECT_EQ(UniformFromBits(256), std::ldexp(1.0f, -24));
  EXPECT_EQ(UniformFromBits(0x80000000u), 0.5f);
  EXPECT_EQ(UniformFromBits(~0u), 1.0f - std::ldexp(1.0f, -24));
}

TEST(Philox, NormalIsFiniteAtItsEnds) {
  // sqrt(-2 log 2^-32) = 6.6604
  EXPECT_NEAR(NormalFromBits(0, 0), 6.660435f, 1e-5);
  EXPECT_NEAR(NormalFromBits(0, 0x80000000u), -6.660435f, 1e-5);
  EXPECT_EQ(NormalFromBits(~0u, 0), 0.0f);
}

// The sample moments of 4 million numbers are within 5 standard errors of the true ones.
TEST(Philox, MomentsAreThoseOfTheDistributions) {
  constexpr int kBlocks = 1000000;
  double uniform[3] = {}, normal[5] = {};
  for (uint64_t i = 0; i < kBlocks; ++i) {
    const PhiloxBlock bits = Philox(7, i, 3);
    for (uint32_t word : bits.word) {
      const double u = UniformFromBits(word);
      uniform[1] += u;
      uniform[2] += u * u;
    }
    for (int j = 0; j < 4; j += 2) {
      const double z = NormalFromBits(bits.word[j], bits.word[j + 1]);
      for (int power = 1; power <= 4; ++power) normal[power] += std::pow(z, power);
    }
  }
  const double uniforms = 4.0 * kBlocks, normals = 2.0 * kBlocks;
  EXPECT_NEAR(uniform[1] / uniforms, 1.0 / 2, 5 * std::sqrt(1.0 / 12 / uniforms));
  EXPECT_NEAR(uniform[2] / uniforms, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / uniforms));
  EXPECT_NEAR(normal[1] / normals, 0.0, 5 * std::sqrt(1 / normals));
  EXPECT_NEAR(normal[2] / normals, 1.0, 5 * std::sqrt(2 / normals));
  EXPECT_NEAR(normal[3] / normals, 0.0, 5 * std::sqrt(15 / normals));
  EXPECT_NEAR(normal[4] / normals, 3.0, 5 * std::sqrt(96 / normals));
}

}  // namespace
}  // namespace cistern
