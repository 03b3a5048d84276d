// The bytes of HugeCTR's sparse files, and refused files.
#include "worker/export/hugectr/sparse_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "test/support/memory_file_system.h"

namespace cistern {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kPath[] = "out/rows.model";

SparseShape Shape(uint32_t dim, bool wide, bool slots,
                  v1::UpdateRule::Kind rule = v1::UpdateRule::ADAM) {
  v1::TableSpec spec;
  spec.set_name("deep");
  spec.set_dim(dim);
  spec.mutable_rule()->set_kind(rule);
  spec.mutable_rule()->set_beta1(0.5f);
  spec.mutable_rule()->set_beta2(0.5f);
  spec.mutable_rule()->set_epsilon(1);
  spec.mutable_rule()->set_initial_g2sum(1);
  spec.mutable_rule()->set_ftrl_beta(1);
  return {wide, slots, 3, ValueLayout::Create(spec).value()};
}

// Writes rows {key, slot} with the cells 1, 2, 3, ... (w, then state).
void Write(FileSystem& files, HugectrForm form, const SparseShape& shape,
           const std::vector<std::pair<Key, uint64_t>>& rows) {
  auto writer = SparseWriter::Create(files, kPath, form, shape);
  ASSERT_TRUE(writer.ok()) << writer.status();
  float next = 1;
  for (const auto& [key, slot] : rows) {
    std::vector<float> value(shape.layout.full_floats());
    for (float& cell : value) cell = next++;
    ASSERT_TRUE((*writer)->Add(key, slot, value.data()).ok());
  }
  ASSERT_TRUE((*writer)->Close().ok());
}

std::string Bytes(FileSystem& files, const std::string& path) {
  return ReadWhole(files, path, 1 << 20).value();
}

std::string Hex(const std::string& bytes) {
  std::string hex;
  for (const char c : bytes)
    absl::StrAppend(&hex, absl::Hex(static_cast<uint8_t>(c), absl::kZeroPad2));
  return hex;
}

TEST(SparseRows, RecordsHaveHugeCtr23sBytes) {
  MemoryFileSystem files;
  Write(files, HugectrForm::kV2, Shape(2, false, false), {{258, 0}});
  EXPECT_EQ(Hex(Bytes(files, kPath)),
            "02010000"
            "0000803f"
            "00000040");
  Write(files, HugectrForm::kV2, Shape(1, true, true), {{258, 2}});
  EXPECT_EQ(Hex(Bytes(files, kPath)),
            "0201000000000000"
            "0200000000000000"
            "0000803f");
  EXPECT_EQ(files.List("out").value(), std::vector<std::string>{"rows.model"});
}

TEST(SparseRows, FoldersHaveHugeCtr3sBytes) {
  MemoryFileSystem files;
  Write(files, HugectrForm::kV3, Shape(1, false, true), {{7, 2}, {8, 0}});
  EXPECT_THAT(files.List(kPath).value(),
              ElementsAre("Adam.m", "Adam.v", "emb_vector", "key", "slot_id"));
  const std::string path = kPath;
  EXPECT_EQ(Hex(Bytes(files, path + "/key")),
            "0700000000000000"
            "0800000000000000");
  EXPECT_EQ(Hex(Bytes(files, path + "/slot_id")),
            "0200000000000000"
            "0000000000000000");
  EXPECT_EQ(Hex(Bytes(files, path + "/emb_vector")),
            "0000803f"
            "00008040");  // 1, 4
  EXPECT_EQ(Hex(Bytes(files, path + "/Adam.m")),
            "00000040"
            "0000a040");  // 2, 5
  EXPECT_EQ(Hex(Bytes(files, path + "/Adam.v")),
            "00004040"
            "0000c040");  // 3, 6
  EXPECT_EQ(files.List("out").value(), std::vector<std::string>{"rows.model"});
}

TEST(SparseRows, BothFormsReadBackBitForBit) {
  for (int rule = v1::UpdateRule::Kind_MIN; rule <= v1::UpdateRule::Kind_MAX; ++rule) {
    for (const HugectrForm form : {HugectrForm::kV2, HugectrForm::kV3}) {
      MemoryFileSystem files;
      const SparseShape shape = Shape(3, true, true, static_cast<v1::UpdateRule::Kind>(rule));
      Write(files, form, shape, {{1, 0}, {kReservedKey64 - 1, 2}, {5, 1}});
      const auto reader = SparseReader::Open(files, kPath, shape);
      ASSERT_TRUE(reader.ok()) << reader.status();
      ASSERT_EQ((*reader)->rows(), 3u);
      std::vector<Key> keys(2);
      std::vector<uint64_t> slots;
      std::vector<float> values;
      ASSERT_TRUE((*reader)->Read(1, &keys, &slots, &values).ok());
      EXPECT_THAT(keys, ElementsAre(kReservedKey64 - 1, 5));
      EXPECT_THAT(slots, ElementsAre(2, 1));
      const size_t stride = shape.layout.full_floats();
      for (size_t i = 0; i < values.size(); ++i) {
        const bool in_file = form == HugectrForm::kV3 || i % stride < 3;
        EXPECT_EQ(values[i], in_file ? static_cast<float>(stride + 1 + i) : 0) << rule << " " << i;
      }
    }
  }
}

TEST(SparseRows, AKeyThatExceedsFourBytesIsRefused) {
  MemoryFileSystem files;
  auto writer =
      SparseWriter::Create(files, kPath, HugectrForm::kV2, Shape(1, false, false)).value();
  const float value[3] = {};
  EXPECT_TRUE(writer->Add(0xFFFFFFFE, 0, value).ok());
  const absl::Status refused = writer->Add(0xFFFFFFFF, 0, value);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("key 4294967295 does not fit"));
  writer.reset();
  EXPECT_TRUE(files.List("out").value().empty());
}

absl::Status StatusOfReading(FileSystem& files, const SparseShape& shape) {
  auto reader = SparseReader::Open(files, kPath, shape);
  if (!reader.ok()) return reader.status();
  std::vector<Key> keys((*reader)->rows());
  std::vector<uint64_t> slots;
  std::vector<float> values;
  return (*reader)->Read(0, &keys, &slots, &values);
}

void ExpectRefused(const absl::Status& status, absl::StatusCode code, const std::string& part) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  EXPECT_THAT(std::string(status.message()), HasSubstr(kPath));
}

TEST(SparseRows, MismatchedFilesAreRefused) {
  const SparseShape shape = Shape(1, false, true);
  MemoryFileSystem files;
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument, kLoss = absl::StatusCode::kDataLoss;
  ExpectRefused(StatusOfReading(files, shape), kInvalid, "no such file");
  files.Put(kPath, std::string(17, '\0'));
  ExpectRefused(StatusOfReading(files, shape), kInvalid,
                "17 bytes are not a multiple of the row size");
  files.Put(kPath, std::string("\1\0\0\0\3\0\0\0\0\0\0\0\0\0\0\0", 16));
  ExpectRefused(StatusOfReading(files, shape), kLoss, "record 0 (key 1): slot 3");
  files.Put(kPath, std::string("\1\0\0\0\2\0\0\0\0\0\0\0\0\0\x80\x7f", 16));
  ExpectRefused(StatusOfReading(files, shape), kLoss, "number 0 is not finite");
  files.Put(kPath, std::string("\xff\xff\xff\xff\2\0\0\0\0\0\0\0\0\0\0\0", 16));
  ExpectRefused(StatusOfReading(files, shape), kLoss, "this key is reserved");
}

// Rows of 3 floats (16 bytes), read as rows of 1 and of 7 floats: the file size fits both.
TEST(SparseRows, AFileWhoseKeysAreReadAsWeightsIsRefused) {
  MemoryFileSystem files;
  std::vector<std::pair<Key, uint64_t>> rows;
  for (Key key = 1; key <= 100; ++key) rows.push_back({key * 31, 0});
  Write(files, HugectrForm::kV2, Shape(3, false, false), rows);
  EXPECT_TRUE(StatusOfReading(files, Shape(3, false, false)).ok());
  ExpectRefused(StatusOfReading(files, Shape(7, false, false)), absl::StatusCode::kDataLoss,
                "record 0, like 50 of 50 rows read, has a weight below 1.2e-38");
  // With one float per row, no key is read as a weight: this cannot be detected.
  EXPECT_TRUE(StatusOfReading(files, Shape(1, false, false)).ok());
  Write(files, HugectrForm::kV2, Shape(2, true, false), rows);
  ExpectRefused(StatusOfReading(files, Shape(6, true, false)), absl::StatusCode::kDataLoss,
                "compare embedding_vec_size");
}

TEST(SparseRows, ColumnsOfDifferentLengthsAreRefused) {
  const SparseShape shape = Shape(1, false, false);
  MemoryFileSystem files;
  const std::string path = kPath;
  files.Put(path + "/key", std::string(15, '\0'));
  ExpectRefused(StatusOfReading(files, shape), absl::StatusCode::kInvalidArgument,
                "15 bytes are not a multiple of the key size");
  files.Put(path + "/key", std::string(16, '\0'));
  ExpectRefused(StatusOfReading(files, shape), absl::StatusCode::kInvalidArgument,
                "emb_vector: missing");
  files.Put(path + "/emb_vector", std::string(12, '\0'));
  ExpectRefused(StatusOfReading(files, shape), absl::StatusCode::kInvalidArgument,
                "emb_vector: 12 bytes; the folder's 2 keys");
  files.Put(path + "/emb_vector", std::string(8, '\0'));
  EXPECT_TRUE(StatusOfReading(files, shape).ok());
  files.Put(path + "/Adam.m", std::string(8, '\0'));
  ExpectRefused(StatusOfReading(files, shape), absl::StatusCode::kInvalidArgument,
                "Adam.v: missing");
}

}  // namespace
}  // namespace cistern
