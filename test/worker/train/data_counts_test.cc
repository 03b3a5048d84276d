#include "worker/train/data_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/worker/group/group_threads.h"

namespace cistern {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(DataCounts, ASingleWorkerHasItsOwn) {
  DataCounts counts;
  counts.read()->decoded_bytes = 7;
  counts.bad_data()->Add("a.norm", absl::NotFoundError("no such file"));
  EXPECT_TRUE(counts.decoded_bytes().empty());
  ASSERT_EQ(counts.Gather(nullptr, /*own_data=*/true), absl::OkStatus());
  EXPECT_THAT(counts.decoded_bytes(), ElementsAre(7));
  EXPECT_THAT(counts.skipped(), ElementsAre(Pair("missing", 1)));
}

// Worker r has left out r + 1 missing files, and worker 1 also one that is corrupt.
TEST(DataCounts, WorkersAddUpWhatEachHasLeftOutOfItsOwnData) {
  for (const bool own_data : {false, true}) {
    std::vector<data::BadData::Counts> skipped(3);
    group::ExpectAllWell(group::RunGroup(3, [&](group::ProcessGroup& group) -> absl::Status {
      const uint32_t rank = group.rank();
      DataCounts counts;
      counts.read()->decoded_bytes = 10 + rank;
      for (uint32_t i = 0; i <= rank; ++i) {
        counts.bad_data()->Add(absl::StrCat(i, ".norm"), absl::NotFoundError("no such file"));
      }
      if (rank == 1) counts.bad_data()->Add("x.norm", absl::DataLossError("checksum mismatch"));
      CISTERN_RETURN_IF_ERROR(counts.Gather(&group, own_data));
      EXPECT_THAT(counts.decoded_bytes(), ElementsAre(10, 11, 12));
      skipped[rank] = counts.skipped();
      return absl::OkStatus();
    }));
    if (own_data) {
      for (const data::BadData::Counts& counts : skipped) {
        EXPECT_THAT(counts, ElementsAre(Pair("corrupt", 1), Pair("missing", 6)));
      }
    } else {
      EXPECT_THAT(skipped[0], ElementsAre(Pair("missing", 1)));
      EXPECT_THAT(skipped[1], ElementsAre(Pair("corrupt", 1), Pair("missing", 2)));
    }
  }
}

}  // namespace
}  // namespace cistern
