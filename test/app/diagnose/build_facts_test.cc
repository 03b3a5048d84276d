#include "app/diagnose/build_facts.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace cistern::app {
namespace {

TEST(BuildFacts, NameTheGpusOrSayWhyThereAreNone) {
  BuildFacts facts;
  facts.version = "1.2.3";
  facts.cores = 8;
  facts.gpus.reason = "no driver";
  EXPECT_EQ(JsonOf(facts)["no_gpu"], "no driver");
  EXPECT_TRUE(JsonOf(facts)["gpus"].empty());
  facts.gpus = {{{0, "H200", uint64_t{1} << 37, 9, 0, 132}}, ""};
  EXPECT_EQ(
      JsonOf(facts).dump(),
      R"({"version":"1.2.3","compiler":"","cuda":"","parquet":"","cores":8,"gpus":[{"index":0,)"
      R"("name":"H200","memory_bytes":137438953472,"compute_capability":"9.0",)"
      R"("multiprocessors":132}]})");
  EXPECT_FALSE(ReadBuildFacts().version.empty());
}

}  // namespace
}  // namespace cistern::app
