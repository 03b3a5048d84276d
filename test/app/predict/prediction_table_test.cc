#include "app/predict/prediction_table.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "test/worker/data/scratch.h"

namespace cistern::app {
namespace {

// The file of a table of two rows.
std::string Written(const std::string& name, size_t label_dim) {
  data::Scratch scratch;
  LocalFileSystem files;
  auto table = PredictionTable::Create(files, scratch.Path(name), {"id", "a,b"}, label_dim);
  EXPECT_TRUE(table.ok()) << table.status();
  const std::vector<std::string> first = {"", "x\ty"}, second = {"2", "say \"x\", or\ny"};
  const std::vector<float> predictions(label_dim, 0.1f);
  EXPECT_TRUE((*table)->Append(first, predictions).ok());
  EXPECT_TRUE((*table)->Append(second, predictions).ok());
  EXPECT_TRUE((*table)->Close().ok());
  return scratch.Read(name);
}

TEST(PredictionTable, RefusesFormatsThatAreNotWritten) {
  data::Scratch scratch;
  LocalFileSystem files;
  for (const char* const name : {"p.json", "p.jsonl", "p.XLSX", "p.csv.zip", "p.csv.zst"}) {
    const auto table = PredictionTable::Create(files, scratch.Path(name), {}, 1);
    EXPECT_TRUE(absl::IsInvalidArgument(table.status())) << name;
    EXPECT_FALSE(FixOf(table.status()).empty());
    EXPECT_FALSE(std::filesystem::exists(scratch.Path(name)));
  }
}

TEST(PredictionTable, QuotesCsv) {
  EXPECT_EQ(Written("p.csv", 1),
            "id,\"a,b\",prediction\n"
            ",x\ty,0.100000001\n"
            "2,\"say \"\"x\"\", or\ny\",0.100000001\n");
}

TEST(PredictionTable, KeepsTsvRowsWhole) {
  EXPECT_EQ(Written("p.tsv", 1),
            "id\ta,b\tprediction\n"
            "\tx y\t0.100000001\n"
            "2\tsay \"x\", or y\t0.100000001\n");
}

TEST(PredictionTable, AKeptColumnCanBeNamedPrediction) {
  data::Scratch scratch;
  LocalFileSystem files;
  auto table = PredictionTable::Create(files, scratch.Path("p.csv"), {"prediction"}, 1);
  ASSERT_TRUE(table.ok() && (*table)->Close().ok());
  EXPECT_EQ(scratch.Read("p.csv"), "prediction,prediction_new\n");
}

TEST(PredictionTable, NumbersSeveralPredictions) {
  EXPECT_EQ(Written("p.csv", 2).substr(0, 37), "id,\"a,b\",prediction_0,prediction_1\n,x");
}

}  // namespace
}  // namespace cistern::app
