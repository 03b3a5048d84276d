// The names of remote paths, and the order of a copy. Copies themselves:
// object_store_write_test.py.
#include "worker/data/storage/remote_tree.h"

#include <gtest/gtest.h>

namespace cistern::data {
namespace {

TEST(RemoteTree, OptionsStayAtTheEndOfAPath) {
  EXPECT_EQ(RemoteChild("s3://b/set", "x"), "s3://b/set/x");
  EXPECT_EQ(RemoteChild("s3://b/set/?region=a/b", "x/y"), "s3://b/set/x/y?region=a/b");
  EXPECT_EQ(RemoteChild("hdfs://node:1/", "x"), "hdfs://node:1/x");
  EXPECT_EQ(RemoteParent("s3://b/set/x?region=a/b"), "s3://b/set?region=a/b");
  EXPECT_EQ(RemoteName("s3://b/set/?region=a/b"), "set");
  EXPECT_EQ(RemoteName("s3://b/set/x.json"), "x.json");
}

TEST(RemoteTree, FilesThatNameOthersAreCopiedAfterThem) {
  for (const char* name : {"part-00000.norm", "model/deep/part-000-00003", "a/data-00001.tar",
                           "model.json", "overhead"}) {
    EXPECT_EQ(UploadRank(name), 0) << name;
  }
  for (const char* name :
       {"file_list.txt", "train/file_list.txt", "model/part-000-of-001.json",
        "10_500/manifest.json", "donefile/base.txt", "12/serving.json", "state/manifest/7"}) {
    EXPECT_EQ(UploadRank(name), 1) << name;
  }
  EXPECT_EQ(UploadRank("HEAD"), 2);
}

TEST(RemoteTree, PathsWithCredentialsAreRefused) {
  const absl::Status refused = CheckRemoteIsNew("s3://key:secret@b/set");
  EXPECT_FALSE(refused.ok());
  EXPECT_EQ(refused.message().find("secret@"), std::string::npos);
}

}  // namespace
}  // namespace cistern::data
