#include "worker/report/run_record.h"

#include <gtest/gtest.h>

namespace cistern::report {
namespace {

TEST(RunRecord, ReadsBackWhatWasWritten) {
  RunRecord record;
  record.version = "1.2.3";
  record.model = "m\xff.json";  // not UTF-8: the byte becomes U+FFFD
  record.set = {"solver.seed=2"};
  record.started = "2026-11-23T15:34:30Z";
  record.workers = 4;
  record.samples = UINT64_MAX;
  record.commit = 7;
  record.tables = {{"embedding", 12, "00ff00ff00ff00ff"}};
  record.values = {{"solver.batchsize", "4096"}, {"a", "\"x\""}};
  const auto back = ParseRunRecord(FormatRunRecord(record));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->model, "m\xEF\xBF\xBD.json");
  EXPECT_EQ(back->samples, UINT64_MAX);
  EXPECT_EQ(back->commit, 7u);
  EXPECT_EQ(back->values, record.values);
  EXPECT_EQ(back->tables[0].digest, "00ff00ff00ff00ff");
  EXPECT_EQ(back->set, record.set);
}

TEST(RunRecord, AFieldOfAnotherTypeIsAbsent) {
  const auto record = ParseRunRecord(
      R"({"format": 1, "model": 3, "samples": -1, "tables": [1, {"name": "t"}], "set": [2],
          "configuration": {"a": 1, "b": "2"}})");
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->model, "");
  EXPECT_EQ(record->samples, 0u);
  EXPECT_TRUE(record->set.empty());
  ASSERT_EQ(record->values.size(), 1u);
  EXPECT_EQ(record->values[0].first, "b");
}

TEST(RunRecord, RefusesOtherText) {
  EXPECT_FALSE(ParseRunRecord("{\"format\": 2}").ok());
  EXPECT_FALSE(ParseRunRecord("{").ok());
}

}  // namespace
}  // namespace cistern::report
