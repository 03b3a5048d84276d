#include "server/table/pulled_digests.h"

#include <gtest/gtest.h>

#include <utility>

namespace cistern::server {
namespace {

using Digests = std::vector<std::pair<Key, uint64_t>>;

Digests FoundIn(const PulledDigests& pulled, std::vector<Key> keys) {
  Digests found;
  for (const ColdDigest& row : pulled.Find(keys)) found.emplace_back(row.key, row.digest);
  return found;
}

TEST(PulledDigests, AreKeptForACommitAndTheNext) {
  PulledDigests pulled;
  pulled.Add(pulled.commits(), {{9, 90}, {3, 30}, {5, 50}});
  EXPECT_EQ(FoundIn(pulled, {1, 3, 4, 9}), (Digests{{3, 30}, {9, 90}}));
  pulled.EndCommit({5, 100});  // row 5 has another hash now
  EXPECT_EQ(FoundIn(pulled, {3, 5, 9}), (Digests{{3, 30}, {9, 90}}));
  pulled.Add(pulled.commits(), {{5, 51}});
  EXPECT_EQ(FoundIn(pulled, {3, 5, 9}), (Digests{{3, 30}, {5, 51}, {9, 90}}));
  pulled.EndCommit({});
  EXPECT_EQ(FoundIn(pulled, {3, 5, 9}), (Digests{{5, 51}}));
}

TEST(PulledDigests, OfAPullThatACommitOvertookAreLeftOut) {
  PulledDigests pulled;
  const uint64_t begun = pulled.commits();
  pulled.EndCommit({});
  pulled.Add(begun, {{3, 30}});
  EXPECT_EQ(FoundIn(pulled, {3}), Digests());
  const uint64_t again = pulled.commits();
  pulled.Clear();
  pulled.Add(again, {{3, 30}});
  EXPECT_EQ(FoundIn(pulled, {3}), Digests());
}

TEST(PulledDigests, AreForgottenWithTheirFiles) {
  PulledDigests pulled;
  pulled.Add(pulled.commits(), {{3, 30}});
  pulled.EndCommit({});
  pulled.Add(pulled.commits(), {{4, 40}});
  pulled.Clear();
  EXPECT_EQ(FoundIn(pulled, {3, 4}), Digests());
}

}  // namespace
}  // namespace cistern::server
