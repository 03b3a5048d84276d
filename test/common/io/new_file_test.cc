#include "common/io/new_file.h"

#include <gtest/gtest.h>

#include "common/base/hash.h"
#include "test/support/memory_file_system.h"

namespace cistern {
namespace {

TEST(NewFile, HasItsNameOnlyOnceItIsComplete) {
  MemoryFileSystem files;
  auto file = NewFile::Create(files, "a/b/c").value();
  ASSERT_TRUE(file->Append("one").ok());
  ASSERT_TRUE(file->Append("two").ok());
  EXPECT_FALSE(*files.Exists("a/b/c"));
  ASSERT_TRUE(file->Close().ok());
  EXPECT_EQ(*ReadWhole(files, "a/b/c", 100), "onetwo");
  EXPECT_EQ(file->bytes(), 6u);
  EXPECT_EQ(file->xxh3(), HashBytes("onetwo"));
}

TEST(NewFile, WithoutCloseNothingIsLeftAndTheOldFileStays) {
  MemoryFileSystem files;
  auto old = NewFile::Create(files, "a/b").value();
  ASSERT_TRUE(old->Append("old").ok() && old->Close().ok());
  auto file = NewFile::Create(files, "a/b").value();
  ASSERT_TRUE(file->Append("new").ok());
  file.reset();
  EXPECT_EQ(*ReadWhole(files, "a/b", 100), "old");
  EXPECT_EQ(files.List("a")->size(), 1u);
}

}  // namespace
}  // namespace cistern
