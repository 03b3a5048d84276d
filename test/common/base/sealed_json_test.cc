// JSON with its own hash: the bytes, and every change noticed.
#include "common/base/sealed_json.h"

#include <gtest/gtest.h>

#include <xxhash.h>

#include "common/base/hash_text.h"

namespace cistern {
namespace {

constexpr char kJson[] = "{\n \"commit\": 12\n}\n";

TEST(SealedJson, EndsWithTheHashOfWhatIsBeforeItsName) {
  const std::string before = "{\n \"commit\": 12,\n ";
  const std::string hash = HashText(XXH3_64bits(before.data(), before.size()));
  EXPECT_EQ(SealJson(kJson), before + "\"self_xxh3\": \"" + hash + "\"\n}\n");
}

TEST(SealedJson, IsUnsealed) {
  uint64_t hash = 0;
  const std::string sealed = SealJson(kJson);
  EXPECT_EQ(UnsealJson(sealed, &hash).value(), kJson);
  EXPECT_NE(sealed.find(HashText(hash)), std::string::npos);
}

TEST(SealedJson, NoticesEveryFlippedBitAndEveryCut) {
  const std::string sealed = SealJson(kJson);
  uint64_t hash = 0;
  for (size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_TRUE(absl::IsDataLoss(UnsealJson(changed, &hash).status())) << i;
    EXPECT_TRUE(absl::IsDataLoss(UnsealJson(sealed.substr(0, i), &hash).status())) << i;
  }
}

}  // namespace
}  // namespace cistern
