// A saved model: its golden JSON, the round trip, and all refusals.
#include "common/saved_model/model_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include <map>

#include "common/saved_model/model_part_json.h"
#include "common/value/schema.h"
#include "test/common/saved_model/model_file_text.h"
#include "test/support/temp_folder.h"

namespace cistern {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

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

TEST(ModelFolder, NamesMatchTheFormat) {
  EXPECT_EQ(SparsePartName("deep", 7, 1942), "deep/part-007-01942");
  EXPECT_EQ(DensePartName("dense", 12), "dense/part-012");
  EXPECT_EQ(PartJsonName(0, 15), "part-000-of-015.json");
}

// Golden: these bytes are the file format. The hashes agree with xxhsum -H3 0.8.1.
TEST(ModelFolder, JsonMatchesTheFormat) {
  TempFolder folder;
  ModelPart part = WriteServer(folder.path(), 1);
  ASSERT_TRUE(WritePart(Disk(), folder.path(), part).ok());
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

TEST(ModelFolder, NamesEncodeTheFormOfTheRows) {
  v1::SaveFormat format;
  format.set_kind(v1::SaveFormat::BINARY);
  EXPECT_EQ(SparsePartName("deep", 7, 1942, format), "deep/part-007-01942.bin");
  format.set_gzip(true);
  EXPECT_EQ(SparsePartName("deep", 7, 1942, format), "deep/part-007-01942.bin.gz");
  EXPECT_EQ(DensePartName("dense", 3, format), "dense/part-003.bin.gz");
  for (const bool gzip : {false, true}) {
    for (const auto kind : {v1::SaveFormat::TEXT, v1::SaveFormat::BINARY}) {
      format.set_kind(kind);
      format.set_gzip(gzip);
      const v1::SaveFormat form = FormOfName(SparsePartName("deep", 0, 1, format));
      EXPECT_EQ(form.kind(), kind);
      EXPECT_EQ(form.gzip(), gzip);
    }
  }
}

// Golden: a save in another mode or format is recorded as format 2; all others are format 1.
TEST(ModelFolder, JsonOfASaveInAnotherModeMatchesTheFormat) {
  TempFolder folder;
  ModelPart part;
  part.shard_num = 1;
  part.pass = 7;
  part.mode = v1::DELTA;
  part.format.set_kind(v1::SaveFormat::BINARY);
  part.format.set_gzip(true);
  v1::TableSpec* table = part.schema.add_tables();
  table->set_name("deep");
  table->set_dim(2);
  part.files = {ModelFile{"deep/part-000-00000.bin.gz", 3, 40, 0x123, {}}};
  const std::string text = FormatPart(part);
  EXPECT_EQ(text.substr(0, text.find("\"self_xxh3")),
            "{\"format\": 2, \"server\": 0, \"server_num\": 1, \"shard_num\": 1, \"pass\": 7,\n"
            " \"mode\": \"DELTA\", \"rows\": \"BINARY\", \"gzip\": true, \"six_digits\": false,\n"
            " \"schema\": {\"tables\":[{\"name\":\"deep\",\"dim\":2}]},\n"
            " \"files\": [\n"
            "  {\"name\": \"deep/part-000-00000.bin.gz\", \"rows\": 3, \"bytes\": 40, "
            "\"xxh3\": \"0000000000000123\"}],\n ");
  const absl::StatusOr<ModelPart> read = ParsePart(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->mode, v1::DELTA);
  EXPECT_EQ(read->format.SerializeAsString(), part.format.SerializeAsString());
  // The files must have the stated format.
  part.files[0].name = "deep/part-000-00000";
  EXPECT_EQ(WritePart(Disk(), folder.path(), part).code(), absl::StatusCode::kInvalidArgument);
}

// Golden: the days of passes are recorded if a table expires rows by day.
TEST(ModelFolder, JsonWithDaysMatchesTheFormat) {
  ModelPart part;
  part.shard_num = 1;
  part.pass = 9;
  v1::TableSpec* table = part.schema.add_tables();
  table->set_name("deep");
  table->set_dim(2);
  table->mutable_bounds()->set_expire_days(7);
  for (const uint32_t day : {5, 6}) {
    v1::PassDays::Day* const entry = part.days.add_days();
    entry->set_first_pass(day == 5 ? 0 : 8);
    entry->set_day(20000 + day);
  }
  part.files = {ModelFile{"deep/part-000-00000", 3, 40, 0x123, {}}};
  const std::string text = FormatPart(part);
  EXPECT_EQ(
      text.substr(0, text.find(",\n \"files\"")),
      "{\"format\": 1, \"server\": 0, \"server_num\": 1, \"shard_num\": 1, \"pass\": 9,\n"
      " \"days\": [[0, 20005], [8, 20006]],\n"
      " \"schema\": {\"tables\":[{\"name\":\"deep\",\"dim\":2,\"bounds\":{\"expire_days\":7}}]}");
  const absl::StatusOr<ModelPart> read = ParsePart(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->days.SerializeAsString(), part.days.SerializeAsString());
  TempFolder folder;
  part.pass = 7;  // before the first pass of a day
  EXPECT_EQ(WritePart(Disk(), folder.path(), part).code(), absl::StatusCode::kInvalidArgument);
}

TEST(ModelFolder, PartsSurviveARoundTrip) {
  TempFolder folder;
  const std::vector<ModelPart> written = {WriteServer(folder.path(), 0),
                                          WriteServer(folder.path(), 1)};
  for (const ModelPart& part : written) ASSERT_TRUE(WritePart(Disk(), folder.path(), part).ok());
  const absl::StatusOr<std::vector<ModelPart>> read = ReadParts(Disk(), folder.path());
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

TEST(ModelFolder, TableStatesNeedADigestOfEveryFile) {
  TempFolder folder;
  std::vector<ModelPart> parts = {WriteServer(folder.path(), 0), WriteServer(folder.path(), 1)};
  EXPECT_FALSE(TableStatesOf(parts).has_value());
  uint64_t digest = ~uint64_t{0};
  std::map<std::string, uint64_t> sums;
  for (ModelPart& part : parts) {
    for (ModelFile& file : part.files) {
      file.digest = digest -= 5;
      sums[file.name.substr(0, file.name.find('/'))] += digest;
    }
    ASSERT_TRUE(WritePart(Disk(), folder.path(), part).ok());
  }
  const std::vector<ModelPart> read = ReadParts(Disk(), folder.path()).value();
  const auto tables = TableStatesOf(read);
  ASSERT_TRUE(tables.has_value());
  for (const v1::TableState& table : *tables) EXPECT_EQ(table.digest(), sums[table.name()]);
  parts[1].files.back().digest.reset();
  EXPECT_FALSE(TableStatesOf(parts).has_value());
}

TEST(ModelFolder, SchemaSurvivesARoundTripForEveryFloat) {
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

class SavedByTwo : public testing::Test {
 protected:
  SavedByTwo() {
    for (uint32_t server = 0; server < 2; ++server) {
      parts_[server] = WriteServer(folder_.path(), server);
      EXPECT_TRUE(WritePart(Disk(), folder_.path(), parts_[server]).ok());
    }
  }

  // Replaces the JSON file of server 1 with that of `part`.
  void Rewrite(const ModelPart& part) {
    fs::remove(folder_ / "part-001-of-002.json");
    WriteBytes(folder_ / "part-001-of-002.json", FormatPart(part));
  }

  void ExpectRefused(const std::string& message) {
    const absl::Status status = ReadParts(Disk(), folder_.path()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(Message(status), HasSubstr(message));
    EXPECT_THAT(Message(status), HasSubstr(folder_.path()));
  }

  TempFolder folder_;
  ModelPart parts_[2];
};

TEST_F(SavedByTwo, IsNeverChanged) {
  const std::string before = ReadBytes(folder_ / "part-001-of-002.json");
  EXPECT_EQ(WritePart(Disk(), folder_.path(), parts_[1]).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(CheckPartIsNew(Disk(), folder_.path(), 1, 2).code(), absl::StatusCode::kAlreadyExists);
  // A save by three servers would make a folder of two saves, which cannot be read.
  EXPECT_EQ(CheckPartIsNew(Disk(), folder_.path(), 2, 3).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReadBytes(folder_ / "part-001-of-002.json"), before);
  fs::remove(folder_ / "part-001-of-002.json");
  EXPECT_TRUE(CheckPartIsNew(Disk(), folder_.path(), 1, 2).ok());
}

TEST_F(SavedByTwo, MissingPartIsNamed) {
  fs::remove(folder_ / "part-000-of-002.json");
  ExpectRefused("part-000-of-002.json is missing");
}

TEST_F(SavedByTwo, PartOfAnotherSaveIsNamed) {
  ModelPart other = parts_[1];
  other.pass = 8;
  Rewrite(other);
  ExpectRefused("is from another save than part-000-of-002.json: the pass is 7 versus 8");
  other = parts_[1];
  other.schema.mutable_tables(0)->set_seed(5);
  Rewrite(other);
  ExpectRefused("table 'deep': seed is 18446744073709551615 here and 5 there");
  other = parts_[1];
  other.shard_num = 2;
  Rewrite(other);
  ExpectRefused("shard_num is 3 versus 2");
  other = parts_[1];
  other.server_num = 3;
  other.server = 2;
  WriteBytes(folder_ / "part-002-of-003.json", FormatPart(other));
  ExpectRefused("the folder holds parts of two saves");
}

TEST_F(SavedByTwo, PartUnderAnotherNameIsRefused) {
  fs::copy_file(folder_ / "part-000-of-002.json", folder_ / "part-001-of-002.json",
                fs::copy_options::overwrite_existing);
  ExpectRefused("part-001-of-002.json: it holds server 0 of 2");
}

TEST_F(SavedByTwo, FilesThatDoNotMatchTheTablesAreRefused) {
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
      p.files.push_back(ModelFile{name, 0, 0, 0, {}});
    })(absl::StrCat("'", name, "' is not a file of this part's tables"));
  }
}

TEST_F(SavedByTwo, DenseTableIsCompleteOrAbsent) {
  ModelPart part = parts_[1];
  part.files.back().rows = 2;
  Rewrite(part);
  ExpectRefused("'dense/part-001' has 2 rows; its server owns 1");
  part.files.pop_back();
  Rewrite(part);
  ExpectRefused("'dense/part-001' is not listed, but 'dense/part-000' is");
  parts_[0].files.pop_back();
  WriteBytes(folder_ / "part-000-of-002.json", FormatPart(parts_[0]));
  EXPECT_TRUE(ReadParts(Disk(), folder_.path()).ok());  // never written on any server
}

TEST_F(SavedByTwo, InvalidSchemaIsRefused) {
  ModelPart part = parts_[1];
  part.schema.mutable_tables(0)->set_dim(0);
  Rewrite(part);
  ExpectRefused("dim is 0");
}

TEST_F(SavedByTwo, EveryFlippedByteOfTheJsonIsDetected) {
  const std::string path = folder_ / "part-001-of-002.json", bytes = ReadBytes(path);
  for (size_t i = 0; i + 1 < bytes.size(); ++i) {  // the last byte, the newline, does not matter
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    WriteBytes(path, flipped);
    const absl::Status status = ReadParts(Disk(), folder_.path()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << i << " " << bytes.substr(i, 20);
  }
}

TEST_F(SavedByTwo, MalformedJsonIsRefused) {
  for (const char* text : {"", "{", "[]", "null", "{}", "{\"format\": \"1\"}", "\xff\xfe",
                           "{\"format\": 1, \"self_xxh3\": \"0123\"}"}) {
    WriteBytes(folder_ / "part-001-of-002.json", text);
    ExpectRefused("part-001-of-002.json");
  }
  WriteBytes(folder_ / "part-001-of-002.json", "{\"format\": 3}");
  ExpectRefused("its format is 3; this version reads only formats 1 and 2");
  WriteBytes(folder_ / "part-001-of-002.json", std::string(100000, '['));
  ExpectRefused("part-001-of-002.json");
}

TEST_F(SavedByTwo, OtherFilesInTheFolderDoNotMatter) {
  WriteBytes(folder_ / "notes.txt", "hello");
  WriteBytes(folder_ / "part-1-of-2.json", "hello");
  WriteBytes(folder_ / "deep/part-001-00001.tmp", "hello");
  EXPECT_TRUE(ReadParts(Disk(), folder_.path()).ok());
}

TEST(ModelFolder, FolderWithoutAModelIsNotFound) {
  TempFolder folder;
  EXPECT_EQ(ReadParts(Disk(), folder / "absent").status().code(), absl::StatusCode::kNotFound);
  WriteServer(folder.path(), 0);  // files without the JSON file that a save writes last
  const absl::Status status = ReadParts(Disk(), folder.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(status), HasSubstr("holds no saved model"));
}

TEST(ModelFolder, IncompletePartIsNotWritten) {
  TempFolder folder;
  ModelPart part = WriteServer(folder.path(), 1);
  part.files.erase(part.files.begin());
  EXPECT_EQ(WritePart(Disk(), folder.path(), part).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(fs::exists(folder / "part-001-of-002.json"));
}

}  // namespace
}  // namespace cistern
