// Local files through the interface that also serves remote ones.
#include "worker/data/storage/storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/worker/data/scratch.h"

namespace cistern::data {
namespace {

using ::testing::ElementsAre;

TEST(Storage, PatternsMatchFilesSortedByName) {
  const Scratch scratch;
  for (const char* name : {"b-10.tar", "b-9.tar", "B.tar", "a/b-1.tar", "c.txt"}) {
    scratch.Write(name, "x");
  }
  EXPECT_THAT(
      *MatchingFiles(scratch.Path("*.tar")),
      ElementsAre(scratch.Path("B.tar"), scratch.Path("b-10.tar"), scratch.Path("b-9.tar")));
  EXPECT_THAT(*MatchingFiles(scratch.Path("*")),  // without the folder a
              ElementsAre(scratch.Path("B.tar"), scratch.Path("b-10.tar"), scratch.Path("b-9.tar"),
                          scratch.Path("c.txt")));
  EXPECT_THAT(*MatchingFiles("file://" + scratch.Path("?/b-[0-9].tar")),
              ElementsAre(scratch.Path("a/b-1.tar")));
  EXPECT_EQ(MatchingFiles(scratch.Path("*.bin")).status().code(), absl::StatusCode::kNotFound);
}

TEST(Storage, SchemesTellRemoteFiles) {
  for (const char* path : {"s3://b/k", "gs://b/k", "hdfs://n:8020/k"}) EXPECT_TRUE(IsRemote(path));
  for (const char* path : {"/a", "a", "file:///a", "s3:/b", "x/s3://b", "-"}) {
    EXPECT_FALSE(IsRemote(path)) << path;
  }
  EXPECT_EQ(WithoutFileScheme("file:///a/b"), "/a/b");
}

}  // namespace
}  // namespace cistern::data
