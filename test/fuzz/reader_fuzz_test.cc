// Runs every reader on its kept corpus, unchanged and with random mutations: no crash, no hang, no
// sample that a format forbids. CISTERN_FUZZ_RUNS=1000000 sets the number of mutations per reader
// (default 20000, for Parquet 2000), CISTERN_FUZZ_FIRST=3000000 the first seed. Add files that fail
// to the corpus.
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "test/fuzz/reader_targets.h"
#include "worker/data/format/format_list.h"
#include "worker/data/format/parquet_reader.h"

namespace cistern {
namespace {

class ReaderFuzz : public testing::TestWithParam<FuzzTarget> {};
INSTANTIATE_TEST_SUITE_P(Readers, ReaderFuzz, testing::ValuesIn(ReaderTargets()),
                         [](const auto& target) { return target.param.name; });

TEST(ReaderTargets, HaveEveryDataFormat) {
  for (const data::DataFormatEntry& entry : data::DataFormats()) {
    const std::string name = absl::AsciiStrToLower(entry.name);
    if (name == "parquet" && data::ParquetLibrary().empty()) continue;
    const auto is_of_format = [&](const FuzzTarget& target) { return target.name == name; };
    EXPECT_TRUE(std::any_of(ReaderTargets().begin(), ReaderTargets().end(), is_of_format))
        << name << ": add a target to test/fuzz/reader_targets.cc";
  }
}

TEST_P(ReaderFuzz, ReadsOrRefusesTheCorpus) {
  RunCorpus(GetParam());
}

TEST_P(ReaderFuzz, ReadsOrRefusesChangedBytes) {
  // Opening a Parquet file runs far more code, and the files of the other readers are small.
  const bool is_slow = std::string(GetParam().name) == "parquet";
  RunChangedCorpus(GetParam(), is_slow ? 2000 : 20000);
}

}  // namespace
}  // namespace cistern
