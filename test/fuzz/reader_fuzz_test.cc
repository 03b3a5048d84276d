// The kept corpus of every reader, as it is and changed at random: no crash, no hang, no sample
// that a format forbids. CISTERN_FUZZ_RUNS=1000000 changes each reader's corpus so often (default
// 20000); what is found goes into the corpus.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/numbers.h"
#include "test/fuzz/reader_targets.h"

namespace cistern {
namespace {

uint64_t Runs() {
  const char* text = std::getenv("CISTERN_FUZZ_RUNS");
  uint64_t runs = 0;
  return text != nullptr && absl::SimpleAtoi(text, &runs) ? runs : 20000;
}

std::vector<std::string> CorpusOf(const std::string& name) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(CISTERN_SOURCE_DIR "/test/fuzz/corpus/" + name)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

class ReaderFuzz : public testing::TestWithParam<ReaderTarget> {};
INSTANTIATE_TEST_SUITE_P(Readers, ReaderFuzz, testing::ValuesIn(ReaderTargets()),
                         [](const auto& target) { return target.param.name; });

TEST_P(ReaderFuzz, TheKeptCorpusIsRead) {
  const std::vector<std::string> corpus = CorpusOf(GetParam().name);
  EXPECT_FALSE(corpus.empty());
  for (const std::string& bytes : corpus) GetParam().read(bytes);
}

TEST_P(ReaderFuzz, ChangedBytesAreReadOrRefused) {
  const std::vector<std::string> corpus = CorpusOf(GetParam().name);
  ASSERT_FALSE(corpus.empty());
  // Parquet files are opened through much more code, and the others' files are small.
  const uint64_t share =
      std::string(GetParam().name) == "parquet" || std::string(GetParam().name) == "metadata" ? 10
                                                                                              : 1;
  for (uint64_t run = 0; run < Runs() / share; ++run) {
    std::string bytes = corpus[run % corpus.size()];
    MutateBytes(run, &bytes);
    GetParam().read(bytes);
  }
}

}  // namespace
}  // namespace cistern
