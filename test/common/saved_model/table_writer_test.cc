#include "common/saved_model/table_writer.h"

#include <gtest/gtest.h>

namespace cistern {
namespace {

ModelPart Part() {
  ModelPart part;
  part.shard_num = 2;
  part.pass = 3;
  v1::TableSpec* table = part.schema.add_tables();
  table->set_name("wide");
  table->set_dim(2);
  v1::DenseTableSpec* dense = part.schema.add_dense_tables();
  dense->set_name("dnn");
  dense->set_rows(3);
  dense->add_columns("w");
  return part;
}

TEST(TableWriter, AModelOfItsFilesIsWholeAndHasTheDigestOfItsRows) {
  LocalFileSystem files;
  const std::string folder = testing::TempDir() + "/table_writer";
  ASSERT_TRUE(RemoveTree(files, folder).ok());
  ModelPart part = Part();
  const ValueLayout layout = ValueLayout::Create(part.schema.tables(0)).value();
  const float value[] = {0.5f, -1};
  uint64_t sum = 0;
  for (uint32_t shard = 0; shard < 2; ++shard) {
    const auto writer = ShardWriter::Create(files, folder, part, "wide", shard, layout).value();
    if (shard == 1) {
      for (const Key key : {Key{1}, Key{5}}) {
        writer->Add(key, value, true);
        sum += RowDigest(layout)(key, value, true);
      }
      EXPECT_GT(writer->buffered_bytes(), 0u);
    }
    part.files.push_back(writer->Close().value());
  }
  EXPECT_EQ(part.files[0].rows, 0u);
  EXPECT_EQ(part.files[1].rows, 2u);
  EXPECT_EQ(part.files[1].digest, sum);
  const auto dense =
      DenseWriter::Create(files, folder, part, part.schema.dense_tables(0), 0).value();
  ASSERT_TRUE(dense->Append(std::vector<float>{1, 2}).ok());
  ASSERT_TRUE(dense->Append(std::vector<float>{3}).ok());
  part.files.push_back(dense->Close().value());
  EXPECT_EQ(part.files[2].digest,
            DenseCellDigest(0, 0, 1) + DenseCellDigest(1, 0, 2) + DenseCellDigest(2, 0, 3));
  ASSERT_EQ(WritePart(files, folder, part), absl::OkStatus());

  const std::vector<ModelPart> parts = ReadParts(files, folder).value();
  EXPECT_EQ(FilesByShard("wide", parts)[1].rows, 2u);
  EXPECT_TRUE(FilesByServer("dnn", parts)[0].has_value());
  const RowParser parse =
      ParserFor(v1::SaveFormat::TEXT, part.schema.tables(0), part.schema.tables(0)).value();
  uint64_t read = 0;
  std::vector<float> row(2);
  ASSERT_EQ(ReadModelFile(files, folder, FilesByShard("wide", parts)[1],
                          [&](absl::string_view line) -> absl::Status {
                            Key key = 0;
                            bool has_embedx = false;
                            CISTERN_RETURN_IF_ERROR(parse(line, &key, row.data(), &has_embedx));
                            read += RowDigest(layout)(key, row.data(), has_embedx);
                            return absl::OkStatus();
                          }),
            absl::OkStatus());
  EXPECT_EQ(read, sum);
}

TEST(TableWriter, AFormThatLosesBitsHasNoDigest) {
  LocalFileSystem files;
  const std::string folder = testing::TempDir() + "/table_writer_six";
  ASSERT_TRUE(RemoveTree(files, folder).ok());
  ModelPart part = Part();
  part.format.set_six_digits(true);
  const ValueLayout layout = ValueLayout::Create(part.schema.tables(0)).value();
  const auto writer = ShardWriter::Create(files, folder, part, "wide", 0, layout).value();
  EXPECT_FALSE(writer->Close()->digest.has_value());
}

}  // namespace
}  // namespace cistern
