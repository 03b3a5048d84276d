// A saved model: its golden json, its way there and back, and everything that is refused.
#include "common/model_folder.h"

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

#include "common/model_part_json.h"
#include "common/schema.h"
#include "test/common/temp_folder.h"

namespace cistern {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

v1::Schema TestSchema() {
  v1::Schema schema;
  v1::TableSpec* table = schema.add_tables();
  table->set_name("deep");
  table->set_dim(2);
  table->mutable_rule()->set_kind(v1::UpdateRule::ADAM);
  table->mutable_rule()->set_beta1(0.9f);
  table->mutable_rule()->set_beta2(0.999f);
  table->mutable_rule()->set_epsilon(1e-7f);
  table->mutable_initializer()->set_kind(v1::Initializer::UNIFORM);
  table->mutable_initializer()->set_range(0.05f);
  table->set_seed(18446744073709551615ull);
  v1::DenseTableSpec* dense = schema.add_dense_tables();
  dense->set_name("dense");
  dense->set_rows(3);
  dense->add_columns("w");
  return schema;
}

// Writes one file of one line a row and returns its record.
ModelFile WriteFile(const std::string& folder, const std::string& name,
                    const std::vector<std::string>& lines) {
  std::unique_ptr<ModelFileWriter> writer = ModelFileWriter::Create(folder, name).value();
  for (const std::string& line : lines) EXPECT_TRUE(writer->Append(line + "\n", 1).ok());
  return writer->Close().value();
}

// Server `server` of 2 with 3 shards: shards 0 and 2 on server 0, shard 1 on server 1.
ModelPart WriteServer(const std::string& folder, uint32_t server) {
  ModelPart part;
  part.server = server;
  part.server_num = 2;
  part.shard_num = 3;
  part.pass = 7;
  part.schema = TestSchema();
  for (uint32_t shard = server; shard < 3; shard += 2) {
    part.files.push_back(WriteFile(folder, SparsePartName("deep", server, shard),
                                   {absl::StrCat(shard, " 0.5 0 0 0 0 0")}));
  }
  // 3 rows on 2 servers: 2 and 1 (3 / 2 + 1 = 2 a server).
  part.files.push_back(
      WriteFile(folder, DensePartName("dense", server),
                server == 0 ? std::vector<std::string>{"1", "2"} : std::vector<std::string>{"3"}));
  return part;
}

absl::Status ReadWhole(const std::string& folder, const ModelFile& file,
                       std::vector<std::string>* lines = nullptr) {
  return ReadModelFile(folder, file, [&](absl::string_view line) {
    if (lines != nullptr) lines->emplace_back(line);
    return absl::OkStatus();
  });
}

TEST(ModelFolder, NamesAreThoseOfTheFormat) {
  EXPECT_EQ(SparsePartName("deep", 7, 1942), "deep/part-007-01942");
  EXPECT_EQ(DensePartName("dense", 12), "dense/part-012");
  EXPECT_EQ(PartJsonName(0, 15), "part-000-of-015.json");
}

// Golden: these bytes are the file format. Its hashes agree with xxhsum -H3 0.8.1.
TEST(ModelFolder, JsonIsThatOfTheFormat) {
  TempFolder folder;
  ModelPart part = WriteServer(folder.path(), 1);
  ASSERT_TRUE(WritePart(folder.path(), part).ok());
  EXPECT_EQ(ReadBytes(folder / "deep/part-001-00001"), "1 0.5 0 0 0 0 0\n");
  EXPECT_EQ(ReadBytes(folder / "dense/part-001"), "3\n");
  EXPECT_EQ(
      ReadBytes(folder / "part-001-of-002.json"),
      R"json({"format": 1, "server": 1, "server_num": 2, "shard_num": 3, "pass": 7,
 "schema": {"tables":[{"name":"deep","dim":2,)json"
      R"json("rule":{"kind":"ADAM","beta1":0.9,"beta2":0.999,"epsilon":1e-07},)json"
      R"json("initializer":{"kind":"UNIFORM","range":0.05},"seed":"18446744073709551615"}],)json"
      R"json("dense_tables":[{"name":"dense","rows":"3","columns":["w"]}]},
 "files": [
  {"name": "deep/part-001-00001", "rows": 1, "bytes": 16, "xxh3": "f2c1f13541ba953e"},
  {"name": "dense/part-001", "rows": 1, "bytes": 2, "xxh3": "2add78c0c5b25d62"}],
 "self_xxh3": "270f0859f912d59d"}
)json");
}

TEST(ModelFolder, ReadsBackWhatWasWritten) {
  TempFolder folder;
  const std::vector<ModelPart> written = {WriteServer(folder.path(), 0),
                                          WriteServer(folder.path(), 1)};
  for (const ModelPart& part : written) ASSERT_TRUE(WritePart(folder.path(), part).ok());
  const absl::StatusOr<std::vector<ModelPart>> read = ReadParts(folder.path());
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 2u);
  for (uint32_t server = 0; server < 2; ++server) {
    const ModelPart& part = (*read)[server];
    EXPECT_EQ(part.server, server);
    EXPECT_EQ(part.server_num, 2u);
    EXPECT_EQ(part.shard_num, 3u);
    EXPECT_EQ(part.pass, 7u);
    EXPECT_EQ(SchemaHash(part.schema), SchemaHash(TestSchema()));
    ASSERT_EQ(part.files.size(), written[server].files.size());
    for (size_t i = 0; i < part.files.size(); ++i) {
      EXPECT_EQ(part.files[i].name, written[server].files[i].name);
      EXPECT_TRUE(ReadWhole(folder.path(), part.files[i]).ok());
    }
  }
  std::vector<std::string> lines;
  ASSERT_TRUE(ReadWhole(folder.path(), (*read)[0].files[1], &lines).ok());
  EXPECT_THAT(lines, ElementsAre("2 0.5 0 0 0 0 0"));
}

TEST(ModelFolder, SchemaSurvivesForEveryFloat) {
  uint32_t bits = 1;
  for (int i = 0; i < 3000; ++i, bits = bits * 1664525 + 1013904223) {
    ModelPart part;
    part.schema = TestSchema();
    float range;
    std::memcpy(&range, &bits, sizeof(range));
    if (!std::isfinite(range)) continue;
    part.schema.mutable_tables(0)->mutable_initializer()->set_range(range);
    const absl::StatusOr<ModelPart> read = ParsePart(FormatPart(part));
    ASSERT_TRUE(read.ok()) << read.status() << " " << range;
    ASSERT_EQ(SchemaHash(read->schema), SchemaHash(part.schema)) << range;
  }
}

TEST(ModelFile, LinesCrossBlocksOfAnySize) {
  TempFolder folder;
  // 5 MB in lines of 1 to 200000 bytes: some longer than a block's rest, the writer's blocks cut.
  std::unique_ptr<ModelFileWriter> writer =
      ModelFileWriter::Create(folder.path(), "t/part-000").value();
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

TEST(ModelFile, EmptyIsAFileToo) {
  TempFolder folder;
  const ModelFile file = WriteFile(folder.path(), "t/part-000", {});
  EXPECT_EQ(file.rows, 0u);
  EXPECT_EQ(file.bytes, 0u);
  EXPECT_EQ(file.xxh3, 0x2d06800538d394c2ull);  // XXH3 of nothing, as published with xxHash
  EXPECT_TRUE(ReadWhole(folder.path(), file).ok());
}

TEST(ModelFile, HasItsNameOnlyWhenItIsWhole) {
  TempFolder folder;
  {
    std::unique_ptr<ModelFileWriter> writer =
        ModelFileWriter::Create(folder.path(), "t/part-000").value();
    ASSERT_TRUE(writer->Append("1\n", 1).ok());
    EXPECT_FALSE(fs::exists(folder / "t/part-000"));
  }
  EXPECT_TRUE(fs::is_empty(folder / "t"));  // a writer that is dropped leaves nothing
}

TEST(ModelFile, NameCannotLeadOutOfTheFolder) {
  TempFolder folder;
  for (const char* name : {"../x", "t/../../x", "/etc/x", "t", "t/", "/t", "a/b/c", "..", "t/..",
                           "t/.hidden", "t/a b", ""}) {
    EXPECT_EQ(ModelFileWriter::Create(folder.path(), name).status().code(),
              absl::StatusCode::kInvalidArgument)
        << name;
    EXPECT_FALSE(ReadWhole(folder.path(), ModelFile{name, 0, 0, 0}).ok()) << name;
  }
}

TEST(ModelFile, LinksAreNotFollowed) {
  TempFolder folder, outside;
  const ModelFile file = WriteFile(outside.path(), "t/part-000", {"1"});
  fs::create_directory_symlink(outside / "t", folder / "t");
  EXPECT_EQ(ReadWhole(folder.path(), file).code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(ModelFileWriter::Create(folder.path(), "t/part-001").ok());
  fs::remove(folder / "t");
  fs::create_directory(folder / "t");
  fs::create_symlink(outside / "t/part-000", folder / "t/part-000");
  EXPECT_THAT(Message(ReadWhole(folder.path(), file)), HasSubstr("symbolic link"));
}

TEST(ModelFile, PipeOrFolderInItsPlaceIsRefused) {
  TempFolder folder;
  fs::create_directories(folder / "t/part-000");
  ASSERT_EQ(mkfifo((folder / "t/part-001").c_str(), 0600), 0);
  for (const char* name : {"t/part-000", "t/part-001"}) {
    const absl::Status status = ReadWhole(folder.path(), ModelFile{name, 0, 0, 0});
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(Message(status), HasSubstr("not a regular file"));
  }
}

// Every single byte of a small file, flipped, is found.
TEST(ModelFile, EveryFlippedByteIsFound) {
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

TEST(ModelFile, CutLongerMissingOrMiscountedIsRefused) {
  TempFolder folder;
  const ModelFile file = WriteFile(folder.path(), "t/part-000", {"1 0.5", "2 0.25"});
  const std::string bytes = ReadBytes(folder / "t/part-000");
  const auto message_for = [&](const std::string& content, const ModelFile& record) {
    WriteBytes(folder / "t/part-000", content);
    const absl::Status status = ReadWhole(folder.path(), record);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    return Message(status);
  };
  EXPECT_THAT(message_for(bytes.substr(0, 6), file), HasSubstr("its size is 6 and not 13"));
  EXPECT_THAT(message_for(bytes + "3 1\n", file), HasSubstr("its size is 17 and not 13"));
  EXPECT_THAT(message_for(bytes.substr(0, 12) + "x", file), HasSubstr("line 2 has no line end"));
  ModelFile miscounted = file;
  miscounted.rows = 3;
  EXPECT_THAT(message_for(bytes, miscounted), HasSubstr("its number of rows is 2 and not 3"));
  fs::remove(folder / "t/part-000");
  const absl::Status status = ReadWhole(folder.path(), file);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Message(status), HasSubstr(folder / "t/part-000"));
}

TEST(ModelFile, EndlessLineIsRefusedBeforeItFillsTheMemory) {
  TempFolder folder;
  const ModelFile file = WriteFile(folder.path(), "t/part-000", {std::string(3 << 20, '1')});
  EXPECT_THAT(Message(ReadWhole(folder.path(), file)), HasSubstr("line 1 is longer than"));
}

TEST(ModelFile, ErrorOfALineGetsFileAndNumber) {
  TempFolder folder;
  const ModelFile file = WriteFile(folder.path(), "t/part-000", {"1", "2", "3"});
  int seen = 0;
  const absl::Status status = ReadModelFile(folder.path(), file, [&](absl::string_view) {
    return ++seen == 2 ? absl::DataLossError("bad") : absl::OkStatus();
  });
  EXPECT_EQ(Message(status), (folder / "t/part-000") + ": line 2: bad");
  EXPECT_EQ(seen, 2);
}

// Runs `body` in a child process, since what it sets up belongs to the whole process; returns its
// exit code.
int RunInChild(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Appends until an error; 0 if it is the one for a full disk and nothing is left behind.
int FillUntilRefused(const std::string& folder) {
  absl::StatusOr<std::unique_ptr<ModelFileWriter>> writer =
      ModelFileWriter::Create(folder, "t/part-000");
  if (!writer.ok()) return 2;
  const std::string line = std::string(99999, '1') + "\n";
  absl::Status status;
  for (int i = 0; status.ok() && i < 100; ++i) status = (*writer)->Append(line, 1);
  if (!absl::IsResourceExhausted(status)) return 3;
  const std::string message = Message(status);
  if (message.find(folder + "/t/part-000") == std::string::npos) return 4;
  if (message.find("free space") == std::string::npos) return 5;
  if ((*writer)->Append("1\n", 1) != status || (*writer)->Close().status() != status) return 6;
  writer->reset();
  return fs::is_empty(folder + "/t") ? 0 : 7;
}

TEST(ModelFile, SizeLimitIsAnErrorThatLeavesNothingBehind) {
  TempFolder folder;
  EXPECT_EQ(RunInChild([&] {
              signal(SIGXFSZ, SIG_IGN);
              const rlimit limit = {3 << 20, 3 << 20};
              if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
              return FillUntilRefused(folder.path());
            }),
            0);
}

TEST(ModelFile, FullDiskIsAnErrorThatLeavesNothingBehind) {
  TempFolder folder;
  const int result = RunInChild([&] {
    // A disk of 2 MiB that only this process sees.
    if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0) return 77;
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 77;
    if (mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=2m") != 0) return 77;
    return FillUntilRefused(folder.path());
  });
  if (result == 77) GTEST_SKIP() << "this process may not mount";
  EXPECT_EQ(result, 0);
}

class SavedByTwo : public testing::Test {
 protected:
  SavedByTwo() {
    for (uint32_t server = 0; server < 2; ++server) {
      parts_[server] = WriteServer(folder_.path(), server);
      EXPECT_TRUE(WritePart(folder_.path(), parts_[server]).ok());
    }
  }

  // Replaces the json file of server 1 by that of `part`.
  void Rewrite(const ModelPart& part) {
    fs::remove(folder_ / "part-001-of-002.json");
    WriteBytes(folder_ / "part-001-of-002.json", FormatPart(part));
  }

  void ExpectRefused(const std::string& message) {
    const absl::Status status = ReadParts(folder_.path()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(Message(status), HasSubstr(message));
    EXPECT_THAT(Message(status), HasSubstr(folder_.path()));
  }

  TempFolder folder_;
  ModelPart parts_[2];
};

TEST_F(SavedByTwo, IsNeverChanged) {
  const std::string before = ReadBytes(folder_ / "part-001-of-002.json");
  EXPECT_EQ(WritePart(folder_.path(), parts_[1]).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(CheckPartIsNew(folder_.path(), 1, 2).code(), absl::StatusCode::kAlreadyExists);
  // Three servers would make a folder of two saves, which nobody could read.
  EXPECT_EQ(CheckPartIsNew(folder_.path(), 2, 3).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReadBytes(folder_ / "part-001-of-002.json"), before);
  fs::remove(folder_ / "part-001-of-002.json");
  EXPECT_TRUE(CheckPartIsNew(folder_.path(), 1, 2).ok());
}

TEST_F(SavedByTwo, MissingPartIsNamed) {
  fs::remove(folder_ / "part-000-of-002.json");
  ExpectRefused("part-000-of-002.json is missing");
}

TEST_F(SavedByTwo, PartOfAnotherSaveIsNamed) {
  ModelPart other = parts_[1];
  other.pass = 8;
  Rewrite(other);
  ExpectRefused("not of the same save as part-000-of-002.json: the pass is 7 and 8");
  other = parts_[1];
  other.schema.mutable_tables(0)->set_seed(5);
  Rewrite(other);
  ExpectRefused("table 'deep': seed is 18446744073709551615 here and 5 there");
  other = parts_[1];
  other.shard_num = 2;
  Rewrite(other);
  ExpectRefused("shard_num is 3 and 2");
  other = parts_[1];
  other.server_num = 3;
  other.server = 2;
  WriteBytes(folder_ / "part-002-of-003.json", FormatPart(other));
  ExpectRefused("it holds parts of two saves");
}

TEST_F(SavedByTwo, PartUnderAnotherNameIsRefused) {
  fs::copy_file(folder_ / "part-000-of-002.json", folder_ / "part-001-of-002.json",
                fs::copy_options::overwrite_existing);
  ExpectRefused("part-001-of-002.json: it holds server 0 of 2");
}

TEST_F(SavedByTwo, FilesThatAreNotThoseOfTheTablesAreRefused) {
  const auto refused_with = [&](const std::function<void(ModelPart&)>& change) {
    ModelPart part = parts_[1];
    change(part);
    Rewrite(part);
    return [this](const std::string& message) { ExpectRefused(message); };
  };
  refused_with([](ModelPart& p) { p.files.push_back(p.files[0]); })("is listed twice");
  refused_with([](ModelPart& p) { p.files.erase(p.files.begin()); })(
      "'deep/part-001-00001' is not listed");
  for (const char* name :
       {"deep/part-000-00000", "deep/part-001-00004", "deep/part-001-00000", "wide/part-001-00001",
        "../deep/part-001-00001", "/etc/passwd", "deep/../deep/part-001-00001", "dense/part-000",
        "dense/part-001-00001"}) {
    refused_with([&](ModelPart& p) {
      p.files.push_back(ModelFile{name, 0, 0, 0});
    })(absl::StrCat("'", name, "' is not a file of this part's tables"));
  }
}

TEST_F(SavedByTwo, DenseTableIsWholeOrNotThere) {
  ModelPart part = parts_[1];
  part.files.back().rows = 2;
  Rewrite(part);
  ExpectRefused("'dense/part-001' has 2 rows; its server owns 1");
  part.files.pop_back();
  Rewrite(part);
  ExpectRefused("'dense/part-001' is not listed, but 'dense/part-000' is");
  parts_[0].files.pop_back();
  WriteBytes(folder_ / "part-000-of-002.json", FormatPart(parts_[0]));
  EXPECT_TRUE(ReadParts(folder_.path()).ok());  // never written on any server
}

TEST_F(SavedByTwo, SchemaThatNoServerTakesIsRefused) {
  ModelPart part = parts_[1];
  part.schema.mutable_tables(0)->set_dim(0);
  Rewrite(part);
  ExpectRefused("dim is 0");
}

TEST_F(SavedByTwo, EveryFlippedByteOfTheJsonIsFound) {
  const std::string path = folder_ / "part-001-of-002.json", bytes = ReadBytes(path);
  for (size_t i = 0; i + 1 < bytes.size(); ++i) {  // the last is the line end, which says nothing
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    WriteBytes(path, flipped);
    const absl::Status status = ReadParts(folder_.path()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << i << " " << bytes.substr(i, 20);
  }
}

TEST_F(SavedByTwo, JsonThatIsNoneIsRefused) {
  for (const char* text : {"", "{", "[]", "null", "{}", "{\"format\": \"1\"}", "\xff\xfe",
                           "{\"format\": 1, \"self_xxh3\": \"0123\"}"}) {
    WriteBytes(folder_ / "part-001-of-002.json", text);
    ExpectRefused("part-001-of-002.json");
  }
  WriteBytes(folder_ / "part-001-of-002.json", "{\"format\": 2}");
  ExpectRefused("its format is 2; this version reads format 1 only");
  WriteBytes(folder_ / "part-001-of-002.json", std::string(100000, '['));
  ExpectRefused("part-001-of-002.json");
}

TEST_F(SavedByTwo, OtherFilesInTheFolderDoNotMatter) {
  WriteBytes(folder_ / "notes.txt", "hello");
  WriteBytes(folder_ / "part-1-of-2.json", "hello");
  WriteBytes(folder_ / "deep/part-001-00001.tmp", "hello");
  EXPECT_TRUE(ReadParts(folder_.path()).ok());
}

TEST(ModelFolder, NoModelIsNotFound) {
  TempFolder folder;
  EXPECT_EQ(ReadParts(folder / "absent").status().code(), absl::StatusCode::kNotFound);
  WriteServer(folder.path(), 0);  // files without the json that a save writes last
  const absl::Status status = ReadParts(folder.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(status), HasSubstr("holds no saved model"));
}

TEST(ModelFolder, PartThatIsNotWholeIsNotWritten) {
  TempFolder folder;
  ModelPart part = WriteServer(folder.path(), 1);
  part.files.erase(part.files.begin());
  EXPECT_EQ(WritePart(folder.path(), part).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(fs::exists(folder / "part-001-of-002.json"));
}

}  // namespace
}  // namespace cistern
