// Increments on disk: the round trip, and the lies that their files may tell.
#include "common/saved_model/increment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/sealed_json.h"
#include "test/common/saved_model/model_file_text.h"

namespace cistern {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class IncrementTest : public testing::Test {
 protected:
  IncrementTest() {
    v1::TableSpec* deep = increment_.mutable_schema()->add_tables();
    deep->set_name("deep");
    deep->set_dim(2);
    deep->mutable_rule()->set_kind(v1::UpdateRule::SGD);
    v1::DenseTableSpec* dense = increment_.mutable_schema()->add_dense_tables();
    dense->set_name("dense");
    dense->set_rows(2);
    dense->add_columns("w");
    increment_.set_shard_num(4);
    for (v1::IncrementState* state : {increment_.mutable_from(), increment_.mutable_to()}) {
      state->add_tables()->set_name("deep");
      state->add_dense_tables()->set_name("dense");
    }
    increment_.mutable_to()->set_commit(7);
  }
  void AddFile(const std::string& name, const std::vector<std::string>& lines) {
    const ModelFile written = WriteFile(folder_.path(), name, lines);
    v1::IncrementFile& file = *increment_.add_files();
    file.set_name(name);
    file.set_rows(written.rows);
    file.set_bytes(written.bytes);
    file.set_xxh3(written.xxh3);
  }
  void WriteAll(const std::vector<std::string>& rows, const std::vector<std::string>& removed) {
    AddFile("deep/rows", rows);
    AddFile("deep/removed", removed);
    AddFile("dense/rows", {"1", "2"});
    ASSERT_EQ(WriteIncrement(Disk(), folder_.path(), increment_), absl::OkStatus());
  }
  absl::Status ReadRows() {
    keys_.clear();
    CISTERN_ASSIGN_OR_RETURN(const v1::Increment read, ReadIncrement(Disk(), folder_.path()));
    return ReadIncrementRows(Disk(), folder_.path(), read, 0,
                             [&](Key key, const float* value, bool) {
                               keys_.push_back(key);
                               last_ = value[1];
                               return absl::OkStatus();
                             });
  }
  absl::Status ReadRemoved() {
    keys_.clear();
    CISTERN_ASSIGN_OR_RETURN(const v1::Increment read, ReadIncrement(Disk(), folder_.path()));
    return ReadIncrementRemoved(Disk(), folder_.path(), read, 0, [&](Key key) {
      keys_.push_back(key);
      return absl::OkStatus();
    });
  }
  // Replaces `from` by `to` in increment.json, which then has the right hash again.
  absl::Status ReadWith(const std::string& from, const std::string& to) {
    const std::string path = folder_ / kIncrementName;
    uint64_t hash = 0;
    std::string json = UnsealJson(ReadBytes(path), &hash).value();
    const size_t at = json.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    json.replace(at, from.size(), to);
    WriteBytes(path, SealJson(json));
    return ReadIncrement(Disk(), folder_.path()).status();
  }

  TempFolder folder_;
  v1::Increment increment_;
  std::vector<Key> keys_;
  float last_ = 0;
};

TEST_F(IncrementTest, IsReadAsItWasWritten) {
  WriteAll({"5 0.5 1", "9 0.25 3"}, {"2", "18446744073709551615"});
  EXPECT_EQ(ReadRows(), absl::OkStatus());
  EXPECT_THAT(keys_, ElementsAre(5, 9));
  EXPECT_EQ(last_, 3);
  EXPECT_EQ(ReadRemoved(), absl::OkStatus());
  EXPECT_THAT(keys_, ElementsAre(2, ~Key{0}));
  const v1::Increment read = ReadIncrement(Disk(), folder_.path()).value();
  EXPECT_THAT(ReadIncrementDense(Disk(), folder_.path(), read, 0).value(), ElementsAre(1, 2));
  EXPECT_EQ(read.to().commit(), 7);
  EXPECT_TRUE(absl::IsAlreadyExists(WriteIncrement(Disk(), folder_.path(), increment_)));
}

TEST_F(IncrementTest, AFolderWithoutOneIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(ReadIncrement(Disk(), folder_.path()).status()));
}

TEST_F(IncrementTest, RowsThatNoTableCanHoldAreRefused) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> lies = {
      {{"5 0.5 1", "5 0.5 1"}, "key 5 occurs for the second time"},
      {{"9223372036854775807 0.5 1"}, "is reserved"},
      {{"5 0.5 nan"}, "rows"},
      {{"5 0.5"}, "rows"}};
  for (const auto& [rows, message] : lies) {
    const TempFolder folder;
    increment_.clear_files();
    const ModelFile written = WriteFile(folder.path(), "deep/rows", rows);
    v1::IncrementFile& file = *increment_.add_files();
    file.set_name(written.name);
    file.set_rows(written.rows);
    file.set_bytes(written.bytes);
    file.set_xxh3(written.xxh3);
    const absl::Status read =
        ReadIncrementRows(Disk(), folder.path(), increment_, 0,
                          [](Key, const float*, bool) { return absl::OkStatus(); });
    EXPECT_TRUE(absl::IsDataLoss(read)) << read;
    EXPECT_THAT(read.message(), HasSubstr(message));
  }
}

TEST_F(IncrementTest, TextsThatAreNoKeysAreRefused) {
  WriteAll({}, {"007"});
  EXPECT_TRUE(absl::IsDataLoss(ReadRemoved()));
}

TEST_F(IncrementTest, FilesThatAreNotThoseOfItsTablesAreRefused) {
  WriteAll({"5 0.5 1"}, {"2"});
  for (const char* const name : {"../rows", "deep/part-000", "other/rows", "deep/removed"}) {
    const std::string path = folder_ / kIncrementName, whole = ReadBytes(path);
    const absl::Status read = ReadWith("\"deep/rows\"", absl::StrCat("\"", name, "\""));
    EXPECT_TRUE(absl::IsDataLoss(read)) << name << ": " << read;
    EXPECT_THAT(read.message(), HasSubstr(kIncrementName));
    WriteBytes(path, whole);
  }
}

TEST_F(IncrementTest, NumbersThatCannotBeAreRefused) {
  WriteAll({"5 0.5 1"}, {"2"});
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"\"format\": 1", "\"format\": 2"},
           {"\"shard_num\": 4", "\"shard_num\": 4000000000"},
           {"\"dim\": 2", "\"dim\": 0"}}) {
    const std::string path = folder_ / kIncrementName, whole = ReadBytes(path);
    const absl::Status read = ReadWith(from, to);
    EXPECT_TRUE(absl::IsDataLoss(read)) << from << ": " << read;
    WriteBytes(path, whole);
  }
}

TEST_F(IncrementTest, AFileWithOtherNumbersThanRecordedIsRefused) {
  WriteAll({"5 0.5 1"}, {"2"});
  const std::string path = folder_ / "deep/rows";
  WriteBytes(path, ReadBytes(path) + "6 1 1\n");
  EXPECT_TRUE(absl::IsDataLoss(ReadRows()));
}

}  // namespace
}  // namespace cistern
