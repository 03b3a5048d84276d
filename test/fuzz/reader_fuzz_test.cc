// The kept corpus of every reader, as it is and changed at random: no crash, no hang, no sample
// that a format forbids. CISTERN_FUZZ_RUNS=1000000 changes each reader's corpus so often (default
// 20000, a tenth of it for Parquet), CISTERN_FUZZ_FIRST=3000000 with other seeds than the first so
// many; what is found goes into the corpus.
#include <gtest/gtest.h>

#include "test/fuzz/reader_targets.h"

namespace cistern {
namespace {

class ReaderFuzz : public testing::TestWithParam<FuzzTarget> {};
INSTANTIATE_TEST_SUITE_P(Readers, ReaderFuzz, testing::ValuesIn(ReaderTargets()),
                         [](const auto& target) { return target.param.name; });

TEST_P(ReaderFuzz, TheKeptCorpusIsRead) {
  RunCorpus(GetParam());
}

TEST_P(ReaderFuzz, ChangedBytesAreReadOrRefused) {
  // Parquet files are opened through much more code, and the others' files are small.
  const bool is_slow = std::string(GetParam().name) == "parquet";
  RunChangedCorpus(GetParam(), is_slow ? 2000 : 20000);
}

}  // namespace
}  // namespace cistern
