// The files of a saved model: lines across blocks, refused files, and what an error leaves behind.
#include "common/saved_model/model_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xxhash.h>

#include <functional>

#include "common/io/gzip.h"
#include "common/value/value_binary.h"
#include "test/common/saved_model/model_file_text.h"
#include "test/support/temp_folder.h"

namespace cistern {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

TEST(ModelFile, LinesMayCrossBlocks) {
  TempFolder folder;
  // 5 MB in lines of 1 to 200000 bytes: many of them cross a block boundary.
  std::unique_ptr<ModelFileWriter> writer =
      ModelFileWriter::Create(Disk(), folder.path(), "t/part-000").value();
  std::vector<std::string> written;
  std::string all, pending;
  for (size_t i = 0; all.size() < 5000000; ++i) {
    written.push_back(std::string(i * 7919 % 200000, static_cast<char>('a' + i % 26)));
    pending += written.back() + "\n";
    all += written.back() + "\n";
    if (i % 3 == 2) {
      ASSERT_TRUE(writer->Append(pending, 3).ok());
      pending.clear();
    }
  }
  ASSERT_TRUE(writer->Append(pending, written.size() % 3).ok());
  const ModelFile file = writer->Close().value();
  EXPECT_EQ(file.rows, written.size());
  EXPECT_EQ(file.bytes, all.size());
  EXPECT_EQ(file.xxh3, XXH3_64bits(all.data(), all.size()));
  EXPECT_EQ(ReadBytes(folder / "t/part-000"), all);
  std::vector<std::string> read;
  ASSERT_TRUE(ReadWhole(folder.path(), file, &read).ok());
  EXPECT_EQ(read, written);
}

TEST(ModelFile, MayBeEmpty) {
  TempFolder folder;
  const ModelFile file = WriteFile(folder.path(), "t/part-000", {});
  EXPECT_EQ(file.rows, 0u);
  EXPECT_EQ(file.bytes, 0u);
  EXPECT_EQ(file.xxh3, 0x2d06800538d394c2ull);  // XXH3 of nothing, as published with xxHash
  EXPECT_TRUE(ReadWhole(folder.path(), file).ok());
}

TEST(ModelFile, GetsItsNameOnlyWhenComplete) {
  TempFolder folder;
  {
    std::unique_ptr<ModelFileWriter> writer =
        ModelFileWriter::Create(Disk(), folder.path(), "t/part-000").value();
    ASSERT_TRUE(writer->Append("1\n", 1).ok());
    EXPECT_FALSE(fs::exists(folder / "t/part-000"));
  }
  EXPECT_TRUE(fs::is_empty(folder / "t"));  // a writer without Close leaves nothing
}

TEST(ModelFile, NameCannotLeadOutOfTheFolder) {
  TempFolder folder;
  for (const char* name : {"../x", "t/../../x", "/etc/x", "t", "t/", "/t", "a/b/c", "..", "t/..",
                           "t/.hidden", "t/a b", ""}) {
    EXPECT_EQ(ModelFileWriter::Create(Disk(), folder.path(), name).status().code(),
              absl::StatusCode::kInvalidArgument)
        << name;
    EXPECT_FALSE(ReadWhole(folder.path(), ModelFile{name, 0, 0, 0, {}}).ok()) << name;
  }
}

TEST(ModelFile, LinksAreNotFollowed) {
  TempFolder folder, outside;
  const ModelFile file = WriteFile(outside.path(), "t/part-000", {"1"});
  fs::create_directory_symlink(outside / "t", folder / "t");
  EXPECT_EQ(ReadWhole(folder.path(), file).code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(ModelFileWriter::Create(Disk(), folder.path(), "t/part-001").ok());
  fs::remove(folder / "t");
  fs::create_directory(folder / "t");
  fs::create_symlink(outside / "t/part-000", folder / "t/part-000");
  EXPECT_THAT(Message(ReadWhole(folder.path(), file)), HasSubstr("symbolic link"));
}

TEST(ModelFile, RefusesAPipeOrFolder) {
  TempFolder folder;
  fs::create_directories(folder / "t/part-000");
  ASSERT_EQ(mkfifo((folder / "t/part-001").c_str(), 0600), 0);
  for (const char* name : {"t/part-000", "t/part-001"}) {
    const absl::Status status = ReadWhole(folder.path(), ModelFile{name, 0, 0, 0, {}});
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(Message(status), HasSubstr("not a regular file"));
  }
}

TEST(ModelFile, EveryFlippedByteIsDetected) {
  TempFolder folder;
  const ModelFile file = WriteFile(folder.path(), "t/part-000", {"1 0.5", "2 0.25"});
  const std::string bytes = ReadBytes(folder / "t/part-000");
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    WriteBytes(folder / "t/part-000", flipped);
    const absl::Status status = ReadWhole(folder.path(), file);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << i;
    EXPECT_THAT(Message(status), HasSubstr("t/part-000"));
  }
  WriteBytes(folder / "t/part-000", bytes);
  EXPECT_TRUE(ReadWhole(folder.path(), file).ok());
}

TEST(ModelFile, RefusesTruncatedLongerMissingOrMiscountedFiles) {
  TempFolder folder;
  const ModelFile file = WriteFile(folder.path(), "t/part-000", {"1 0.5", "2 0.25"});
  const std::string bytes = ReadBytes(folder / "t/part-000");
  const auto message_for = [&](const std::string& content, const ModelFile& record) {
    WriteBytes(folder / "t/part-000", content);
    const absl::Status status = ReadWhole(folder.path(), record);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    return Message(status);
  };
  EXPECT_THAT(message_for(bytes.substr(0, 6), file), HasSubstr("its size is 6, not 13"));
  EXPECT_THAT(message_for(bytes + "3 1\n", file), HasSubstr("its size is 17, not 13"));
  EXPECT_THAT(message_for(bytes.substr(0, 12) + "x", file),
              HasSubstr("line 2 does not end with a newline"));
  ModelFile miscounted = file;
  miscounted.rows = 3;
  EXPECT_THAT(message_for(bytes, miscounted), HasSubstr("its number of rows is 2, not 3"));
  fs::remove(folder / "t/part-000");
  const absl::Status status = ReadWhole(folder.path(), file);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Message(status), HasSubstr(folder / "t/part-000"));
}

TEST(ModelFile, RefusesAnEndlessLineBeforeItFillsTheMemory) {
  TempFolder folder;
  const ModelFile file = WriteFile(folder.path(), "t/part-000", {std::string(3 << 20, '1')});
  EXPECT_THAT(Message(ReadWhole(folder.path(), file)), HasSubstr("line 1 is longer than"));
}

// 3 MB of records that cross blocks, with and without compression.
TEST(ModelFile, RecordsSurviveARoundTripInEveryForm) {
  TempFolder folder;
  for (const char* name : {"t/part-000.bin", "t/part-001.bin.gz"}) {
    auto writer = ModelFileWriter::Create(Disk(), folder.path(), name).value();
    std::vector<std::string> written;
    std::string all;
    for (size_t i = 0; all.size() < 3000000; ++i) {
      std::string record;
      AppendDenseRecord(i, std::vector<float>(i * 7919 % 9000, 0.5f), &record);
      ASSERT_TRUE(writer->Append(record, 1).ok());
      all += record;
      written.push_back(std::move(record));
    }
    const ModelFile file = writer->Close().value();
    const std::string stored = ReadBytes(folder / name);
    EXPECT_EQ(file.rows, written.size());
    EXPECT_EQ(file.bytes, stored.size());  // size and hash are those of the stored bytes
    EXPECT_EQ(file.xxh3, XXH3_64bits(stored.data(), stored.size()));
    const bool compressed = FormOfName(name).gzip();
    EXPECT_EQ(stored == all, !compressed);
    EXPECT_EQ(stored.size() < all.size() / 10, compressed);
    std::vector<std::string> read;
    ASSERT_TRUE(ReadWhole(folder.path(), file, &read).ok());
    EXPECT_EQ(read, written);
  }
}

TEST(ModelFile, CompressedLinesSurviveARoundTrip) {
  TempFolder folder;
  const ModelFile file = WriteFile(folder.path(), "t/part-000.gz", {"1 0.5", "", "2 0.25"});
  EXPECT_EQ(ReadBytes(folder / "t/part-000.gz").substr(0, 2), "\x1f\x8b");
  std::vector<std::string> lines;
  ASSERT_TRUE(ReadWhole(folder.path(), file, &lines).ok());
  EXPECT_THAT(lines, ElementsAre("1 0.5", "", "2 0.25"));
}

TEST(ModelFile, ErrorsOfDamagedRecordsAndStreamsNameTheFile) {
  TempFolder folder;
  std::string record;
  AppendDenseRecord(1, {1, 2}, &record);
  const auto message_of = [&](const std::string& name, const std::string& bytes, uint64_t rows) {
    WriteBytes(folder / name, bytes);
    const ModelFile file{name, rows, bytes.size(), XXH3_64bits(bytes.data(), bytes.size()), {}};
    const absl::Status status = ReadWhole(folder.path(), file);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(Message(status), HasSubstr(name));
    return Message(status);
  };
  fs::create_directory(folder / "t");
  EXPECT_THAT(message_of("t/a.bin", record + record.substr(0, 9), 2),
              HasSubstr("record 2 is truncated"));
  EXPECT_THAT(message_of("t/a.bin", record + record.substr(0, 2), 2),
              HasSubstr("record 2 is truncated"));
  EXPECT_THAT(message_of("t/a.bin", std::string("\x05\0\0\0\0", 5), 1),
              HasSubstr("record 1 states a length of 5 bytes"));
  EXPECT_THAT(message_of("t/a.bin", std::string("\xff\xff\xff\x7f", 4), 1),
              HasSubstr("record 1 states a length of 2147483647 bytes"));
  EXPECT_THAT(message_of("t/a.bin", record + record, 1), HasSubstr("more than the 1 rows"));
  EXPECT_THAT(message_of("t/a.gz", "1 2\n", 1), HasSubstr("not a gzip stream"));
  std::string stream;
  GzipWriter gzip;
  gzip.Append("1 2\n", &stream);
  gzip.Finish(&stream);
  EXPECT_THAT(message_of("t/a.gz", stream.substr(0, stream.size() - 3), 1), HasSubstr("truncated"));
}

// A few KB that decompress to 100 million lines: reading stops at the first line beyond the
// recorded row count.
TEST(ModelFile, ReadingADecompressionBombStopsAtTheRecordedRowCount) {
  TempFolder folder;
  std::string stream;
  GzipWriter gzip;
  const std::string lines(10000000, '\n');
  for (int i = 0; i < 10; ++i) gzip.Append(lines, &stream);
  gzip.Finish(&stream);
  fs::create_directory(folder / "t");
  WriteBytes(folder / "t/a.gz", stream);
  const ModelFile file{"t/a.gz", 5, stream.size(), XXH3_64bits(stream.data(), stream.size()), {}};
  uint64_t rows = 0;
  const absl::Status status = ReadModelFile(Disk(), folder.path(), file, [&](absl::string_view) {
    ++rows;
    return absl::OkStatus();
  });
  EXPECT_THAT(Message(status), HasSubstr("more than the 5 rows"));
  EXPECT_EQ(rows, 5u);
}

TEST(ModelFile, ForeignFileIsReadWithoutARecord) {
  TempFolder folder;
  WriteFile(folder.path(), "000/part-000-00001", {"1", "2"});
  std::vector<std::string> lines;
  const auto take = [&](absl::string_view line) {
    lines.emplace_back(line);
    return line == "3" ? absl::DataLossError("bad") : absl::OkStatus();
  };
  ASSERT_TRUE(ReadForeignFile(Disk(), folder.path(), "000/part-000-00001", take).ok());
  EXPECT_THAT(lines, ElementsAre("1", "2"));
  WriteFile(folder.path(), "000/part-000-00001.gz", {"3"});
  EXPECT_THAT(Message(ReadForeignFile(Disk(), folder.path(), "000/part-000-00001.gz", take)),
              HasSubstr("000/part-000-00001.gz: line 1: bad"));
  EXPECT_EQ(ReadForeignFile(Disk(), folder.path(), "000/part-000-00002", take).code(),
            absl::StatusCode::kDataLoss);
}

TEST(ModelFile, ErrorOfALineNamesFileAndLine) {
  TempFolder folder;
  const ModelFile file = WriteFile(folder.path(), "t/part-000", {"1", "2", "3"});
  int seen = 0;
  const absl::Status status = ReadModelFile(Disk(), folder.path(), file, [&](absl::string_view) {
    return ++seen == 2 ? absl::DataLossError("bad") : absl::OkStatus();
  });
  EXPECT_EQ(Message(status), (folder / "t/part-000") + ": line 2: bad");
  EXPECT_EQ(seen, 2);
}

// Runs `body` in a child process, because it changes settings of the whole process; returns the
// exit code.
int RunInChild(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Appends until an error; returns 0 if it is the error for a full disk and no file is left behind.
int FillUntilRefused(const std::string& folder, const char* fix) {
  absl::StatusOr<std::unique_ptr<ModelFileWriter>> writer =
      ModelFileWriter::Create(Disk(), folder, "t/part-000");
  if (!writer.ok()) return 2;
  const std::string line = std::string(99999, '1') + "\n";
  absl::Status status;
  for (int i = 0; status.ok() && i < 100; ++i) status = (*writer)->Append(line, 1);
  if (!absl::IsResourceExhausted(status)) return 3;
  const std::string message = Message(status);
  if (message.find(folder + "/t/part-000") == std::string::npos) return 4;
  if (message.find(fix) == std::string::npos) return 5;
  if ((*writer)->Append("1\n", 1) != status || (*writer)->Close().status() != status) return 6;
  writer->reset();
  return fs::is_empty(folder + "/t") ? 0 : 7;
}

TEST(ModelFile, ReachedSizeLimitLeavesNothingBehind) {
  TempFolder folder;
  EXPECT_EQ(RunInChild([&] {
              signal(SIGXFSZ, SIG_IGN);
              const rlimit limit = {3 << 20, 3 << 20};
              if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
              return FillUntilRefused(folder.path(), "ulimit -f");
            }),
            0);
}

TEST(ModelFile, FullDiskLeavesNothingBehind) {
  TempFolder folder;
  const int result = RunInChild([&] {
    // A disk of 2 MiB, visible only to this process.
    if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0) return 77;
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 77;
    if (mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=2m") != 0) return 77;
    return FillUntilRefused(folder.path(), "free space");
  });
  if (result == 77) GTEST_SKIP() << "this process is not permitted to mount";
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace cistern
