#include "worker/data/recipe/text_samples.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "test/worker/data/prepare/convert_fixture.h"
#include "worker/data/recipe/text_rows.h"
#include "worker/data/storage/standard_input.h"

namespace cistern::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// label and dense x; slots a (several values) and b.
class TextSamplesTest : public testing::Test {
 protected:
  static Recipe ExampleRecipe(bool header) {
    Recipe recipe;
    recipe.layout.header = header;
    recipe.layout.columns = {"id", "y", "a", "x", "b"};
    recipe.labels = {{"y", {}, {}}};
    recipe.dense = {{"x", DenseTransform::kStandardize, 10, 4, 0}};
    recipe.slots = {{"a", false, '|'}, {"b", false, {}}};
    return recipe;
  }
  static std::shared_ptr<const OwnedEncoder> Encoder(const Recipe& recipe) {
    return *OwnedEncoder::Open(recipe, "");
  }
  absl::Status Read(const std::string& text, TextInput input = {}, bool header = true) {
    input.files = {scratch_.Write("in.csv", text)};
    block_.Reset(2);
    CISTERN_ASSIGN_OR_RETURN(
        const std::unique_ptr<SampleReader> reader,
        OpenTextSamples(Encoder(ExampleRecipe(header)), input, {1, 1}, &kept_));
    return reader->Read(100, &block_).status();
  }
  void ExpectOneSample() {
    ASSERT_EQ(block_.size, 1u);
    EXPECT_THAT(block_.dense, ElementsAre(-2));
    EXPECT_THAT(block_.sparse[0].keys, ElementsAre(Hash64("a=p"), Hash64("a=q")));
    EXPECT_THAT(block_.sparse[1].keys, ElementsAre(Hash64("b=r")));
  }

  Scratch scratch_;
  SampleBlock block_;
  KeptColumns kept_;
};

TEST_F(TextSamplesTest, FindsColumnsByName) {
  ASSERT_TRUE(Read("b,more,x,a\nr,7,2,p|q\n").ok());
  ExpectOneSample();
  EXPECT_THAT(block_.label, ElementsAre(-1));
}

TEST_F(TextSamplesTest, FindsColumnsInAnyCase) {
  TextInput input;
  input.keep = {"more"};
  ASSERT_EQ(Read("B,More,X,Y,A\nr,7,2,1,p|q\n", input), absl::OkStatus());
  ExpectOneSample();
  EXPECT_THAT(block_.label, ElementsAre(1));
  EXPECT_THAT(kept_.Take(), ElementsAre("7"));
  ASSERT_EQ(Read("B;X;A\nr;2;p|q\n"), absl::OkStatus());  // and another delimiter
  ExpectOneSample();
}

TEST_F(TextSamplesTest, AddedColumnsAreEmptyWhereTheyAreNotThere) {
  TextInput input;
  input.add_columns = {"x", "a"};
  ASSERT_EQ(Read("b,a\nr,p|q\n", input), absl::OkStatus());
  EXPECT_THAT(block_.dense, ElementsAre(0));  // Dense::missing
  EXPECT_THAT(block_.sparse[0].keys, ElementsAre(Hash64("a=p"), Hash64("a=q")));
  EXPECT_THAT(block_.sparse[1].keys, ElementsAre(Hash64("b=r")));
}

TEST_F(TextSamplesTest, ReadsLabelsThatAreThere) {
  ASSERT_TRUE(Read("y,b,x,a\n1,r,2,p|q\n,r,2,p\n").ok());
  EXPECT_THAT(block_.label, ElementsAre(1, -1));
}

TEST_F(TextSamplesTest, AppendsNothingOfABadRow) {
  ASSERT_TRUE(absl::IsDataLoss(Read("y,b,x,a\n1,r,2,p|q\n1,r,two,p\n")));
  ExpectOneSample();
  EXPECT_THAT(block_.label, ElementsAre(1));
  // The first slot of the second row is good, its second one is not.
  Recipe recipe = ExampleRecipe(true);
  recipe.keys = KeyMode::kRaw;
  TextInput input;
  input.files = {scratch_.Write("raw.csv", "y,b,x,a\n1,5,2,6|7\n1,r,2,8\n")};
  block_.Reset(2);
  const auto reader = OpenTextSamples(Encoder(recipe), input, {1, 1}, &kept_);
  ASSERT_TRUE(absl::IsDataLoss((*reader)->Read(100, &block_).status()));
  EXPECT_THAT(block_.label, ElementsAre(1));
  EXPECT_THAT(block_.dense, ElementsAre(-2));
  EXPECT_THAT(block_.sparse[0].keys, ElementsAre(6, 7));
  EXPECT_THAT(block_.sparse[0].offsets, ElementsAre(0, 2));
  EXPECT_THAT(block_.sparse[1].keys, ElementsAre(5));
}

TEST_F(TextSamplesTest, NeedsLabelsForTraining) {
  TextInput input;
  input.labels = Labels::kNeeded;
  EXPECT_THAT(Read("y,b,x,a\n1,r,2,p|q\n,r,2,p\n", input).message(), HasSubstr("line 3"));
  EXPECT_THAT(Read("b,x,a\nr,2,p|q\n", input).message(), HasSubstr("y"));
}

TEST_F(TextSamplesTest, ReadsFilesWithoutAHeaderWithOrWithoutLabels) {
  ASSERT_TRUE(Read("7,1,p|q,2,r\n", {}, false).ok());
  ExpectOneSample();
  EXPECT_THAT(block_.label, ElementsAre(1));
  ASSERT_TRUE(Read("7,p|q,2,r\n", {}, false).ok());
  ExpectOneSample();
  EXPECT_THAT(block_.label, ElementsAre(-1));
  ASSERT_TRUE(Read("a,b,x\np|q,r,2\n", {}, false).ok());  // has one all the same
  ExpectOneSample();
  TextInput named;
  named.columns = {"x", "a", "b"};
  ASSERT_TRUE(Read("2,p|q,r\n", named, false).ok());
  ExpectOneSample();
}

// The first file lacks the member x, which the second one has.
TEST_F(TextSamplesTest, ColumnsOfJsonLinesAreThoseOfAllFiles) {
  TextInput input;
  input.files = {scratch_.Write("1.jsonl", "{\"a\": \"p\", \"b\": \"r\"}\n"),
                 scratch_.Write("2.jsonl", "{\"a\": \"p\", \"b\": \"r\", \"x\": 2}\n")};
  block_.Reset(2);
  const auto reader = OpenTextSamples(Encoder(ExampleRecipe(true)), input, {1, 1}, nullptr);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(*(*reader)->Read(100, &block_), 2u);
}

TEST_F(TextSamplesTest, FindsTheDelimiterOfAnotherDay) {
  for (const char* const text :
       {"a;b;x\np|q;r;2\n", "x\ta\tb\n2\tp|q\tr\n", " a, b,x \np|q,r,2\n"}) {
    ASSERT_EQ(Read(text), absl::OkStatus()) << text;
    ExpectOneSample();
  }
}

TEST_F(TextSamplesTest, ReadsOneJsonObject) {
  ASSERT_EQ(Read(R"({"b": "r", "x": 2, "a": ["p", "q"]})"), absl::OkStatus());
  ExpectOneSample();
  EXPECT_THAT(Read(R"([{"b": "r", "x": 2, "a": "p"}])").message(),
              HasSubstr("is one JSON array; a table has an object a line (JSON Lines): jq -c "));
  EXPECT_THAT(Read("{\n\"b\": \"r\"\n}\n").message(), HasSubstr("jq -c . "));
}

TEST_F(TextSamplesTest, ReadsStandardInputByItsFirstLine) {
  const int terminal = dup(STDIN_FILENO);
  const auto read = [&](const std::string& text) {
    const int file = open(scratch_.Write("input", text).c_str(), O_RDONLY);
    dup2(file, STDIN_FILENO);
    close(file);
    TextInput input;
    input.files = {"-"};
    block_.Reset(2);
    const auto reader = OpenTextSamples(Encoder(ExampleRecipe(true)), input, {1, 1}, &kept_);
    return reader.ok() ? (*reader)->Read(100, &block_).status() : reader.status();
  };
  for (const char* const text :
       {"a,b,x\np|q,r,2\n", "x\ta\tb\n2\tp|q\tr\n", "\"x\";\"a\";\"b\"\n2;p|q;r\n",
        R"({"b": "r", "x": 2, "a": ["p", "q"]})"}) {
    ASSERT_EQ(read(text), absl::OkStatus()) << text;
    ExpectOneSample();
  }
  EXPECT_THAT(read("PAR1").message(), HasSubstr("write it to a file"));
  ASSERT_TRUE(OpenStandardInput().ok());  // leaves the bytes that were seen
  EXPECT_THAT(read("[{").message(), HasSubstr("jq -c '.[]'"));
  dup2(terminal, STDIN_FILENO);
  close(terminal);
}

TEST_F(TextSamplesTest, RefusesOtherColumnsWithPlaceAndFix) {
  const absl::Status less = Read("a,b\np,r\n");
  EXPECT_THAT(less.message(),
              HasSubstr("in.csv: line 1: there is no column 'x', which the recipe reads (a dense "
                        "feature); the columns are a, b: rename it, or let it be empty"));
  EXPECT_THAT(OptionsOf(less), ElementsAre("add_column=x"));
  EXPECT_THAT(OptionsOf(Read("a,c\np,r\n")), ElementsAre("add_column=x,b"));
  EXPECT_THAT(Read("a,b,xx\np,r,2\n").message(),
              HasSubstr("(a dense feature) (did you mean 'xx'?)"));
  const absl::Status two = Read("b,x,A,A \nr,2,p,p\n");
  EXPECT_THAT(two.message(), HasSubstr("but several in another case, such as 'A'"));
  EXPECT_THAT(OptionsOf(two), IsEmpty());
  // All of them: not the data of this model.
  EXPECT_THAT(OptionsOf(Read("c,d,e\np,r,2\n")), IsEmpty());
  EXPECT_THAT(Read("p|q,2,r\n", {}, false).message(),
              HasSubstr("in.csv: line 1: has 3 fields, but the training data had 5 columns (4 "
                        "without labels)"));
  EXPECT_THAT(Read("a#b#x\np#r#2\n").message(), HasSubstr("check the delimiter"));
  const absl::Status row = Read("p,r,2\n");
  EXPECT_THAT(row.message(), HasSubstr("this line is a row: write a header line above it"));
  EXPECT_THAT(OptionsOf(row), ElementsAre("columns"));
  TextInput keep;
  keep.keep = {"name"};
  EXPECT_THAT(Read("a,b,x\np,r,2\n", keep).message(), HasSubstr("there is no column"));
}

TEST_F(TextSamplesTest, KeepsColumnsInOrder) {
  TextInput input;
  input.keep = {"id", "x"};
  ASSERT_TRUE(Read("id,a,b,x\n\"1,5\",p,r,2\n2,p,r,3\n", input).ok());
  EXPECT_THAT(kept_.Take(), ElementsAre("1,5", "2"));
  EXPECT_THAT(kept_.Take(), ElementsAre("2", "3"));
}

TEST_F(TextSamplesTest, LinesAndFieldsGiveTheSameSample) {
  const auto encoder = Encoder(ExampleRecipe(true));
  const std::vector<uint32_t> slots = {1, 1};
  const absl::string_view line = "p|q,2,r\r\n";  // a, x, b
  ASSERT_TRUE(EncodeLines(*encoder, {line}, slots, &block_).ok());
  ExpectOneSample();
  const std::vector<absl::string_view> fields = {"p|q", "2", "r"};
  ASSERT_TRUE(EncodeFields(*encoder, fields, slots, &block_).ok());
  ExpectOneSample();
}

TEST_F(TextSamplesTest, RowsMayBeObjects) {
  const auto encoder = Encoder(ExampleRecipe(true));
  const std::vector<uint32_t> slots = {1, 1};
  const auto encode = [&](absl::string_view line) {
    return EncodeLines(*encoder, {line}, slots, &block_);
  };
  ASSERT_EQ(encode(R"({"b": "r", "more": [1], "X": 2, "a": ["p", "q"]})"), absl::OkStatus());
  ExpectOneSample();
  ASSERT_EQ(encode(R"({"a": null, "x": 2, "b": "r"})"), absl::OkStatus());
  EXPECT_THAT(block_.sparse[0].keys, IsEmpty());
  EXPECT_EQ(encode(R"({"a": "p", "x": 2, "bb": "r"})").message(),
            "row 0: the object has no member 'b': name it so, or send null where its value is "
            "missing");
  EXPECT_THAT(encode(R"({"a": "p", "x": 2, "b": })").message(), HasSubstr("JSON"));
  EXPECT_EQ(encode("a,x,b").message(), "row 0: it holds the names of the columns: send rows only");
}

TEST_F(TextSamplesTest, RowsMayHoldWholeListsAndObjects) {
  Recipe recipe = ExampleRecipe(true);  // a, x, b
  recipe.layout.columns = {"id", "b", "list", "ctx", "list.0", "list.1", "ctx.a"};
  recipe.labels.clear();
  recipe.slots[0].column = "ctx.a";
  recipe.dense[0].column = "list.1";
  EXPECT_THAT(WholeColumns(recipe), ElementsAre("b", "list", "ctx"));
  recipe.dense.push_back(recipe.dense[0]);
  recipe.dense[1].column = "list.0";
  const auto encoder = Encoder(recipe);
  const std::vector<uint32_t> slots = {1, 1};
  const std::vector<absl::string_view> parts = {"r", "7", "2", "p"}, whole = {"r", "[7, 2]", "a=p"};
  SampleBlock of_parts;
  ASSERT_EQ(EncodeFields(*encoder, parts, slots, &of_parts), absl::OkStatus());
  ASSERT_EQ(EncodeFields(*encoder, whole, slots, &block_, 3), absl::OkStatus());
  EXPECT_EQ(block_.dense, of_parts.dense);
  EXPECT_EQ(block_.sparse[0].keys, of_parts.sparse[0].keys);
  EXPECT_EQ(block_.sparse[1].keys, of_parts.sparse[1].keys);
  ASSERT_EQ(EncodeLines(*encoder, {"r,\"[7, 2]\",\"{'a': 'p'}\""}, slots, &block_),
            absl::OkStatus());
  EXPECT_EQ(block_.sparse[0].keys, of_parts.sparse[0].keys);
  EXPECT_THAT(std::string(EncodeLines(*encoder, {"r,\"[7, 2, 3]\",a=p"}, slots, &block_).message()),
              HasSubstr("row 0: column 'list': '[7, 2, 3]' is no list of 2 values"));
  EXPECT_THAT(std::string(EncodeLines(*encoder, {"r,7 2,p"}, slots, &block_).message()),
              HasSubstr("row 0: column 'ctx': 'p' is no object with members such as 'a'"));
}

TEST_F(TextSamplesTest, LinesOfLibsvmAreRowsWithOrWithoutALabel) {
  Recipe recipe;
  recipe.layout.format = TextFormat::kLibsvm;
  recipe.layout.single_slot = true;
  recipe.layout.columns = {"label", "features"};
  recipe.labels = {{"label", {}, {}}};
  recipe.slots = {{"features", false, ' ', {}, false, false, true}};
  recipe.slots[0].key_weights = true;
  recipe.keys = KeyMode::kRaw;
  const auto encoder = Encoder(recipe);
  const std::vector<uint32_t> slots = {1};
  ASSERT_EQ(EncodeLines(*encoder, {"3:0.5 9:-2", "1 4:1e-3\r\n", "", "0"}, slots, &block_),
            absl::OkStatus());
  EXPECT_THAT(block_.sparse[0].keys, ElementsAre(3, 9, 4));
  EXPECT_THAT(block_.sparse[0].weights, ElementsAre(0.5f, -2, 1e-3f));
  EXPECT_THAT(block_.sparse[0].offsets, ElementsAre(0, 2, 3, 3, 3));
  EXPECT_THAT(std::string(EncodeLines(*encoder, {"3:1", "3:1 4:x"}, slots, &block_).message()),
              HasSubstr("row 1: feature 1 is '4:x', not index:value"));
  recipe.layout = {TextFormat::kLibffm, ',', true, false, false, {"label", "0", "2"}};
  recipe.slots = {{"0", false, ' '}, {"2", false, ' '}};
  ASSERT_EQ(EncodeLines(*Encoder(recipe), {"2:7:1 2:8:1", "0 0:5:1"}, {2}, &block_),
            absl::OkStatus());
  EXPECT_THAT(block_.sparse[0].keys, ElementsAre(7, 8, 5));
  EXPECT_THAT(block_.sparse[0].offsets, ElementsAre(0, 0, 2, 3, 3));
  EXPECT_THAT(std::string(EncodeLines(*Encoder(recipe), {"0:5:2"}, {2}, &block_).message()),
              HasSubstr("row 0: holds '0:5:2': the value of a key must be 1"));
  EXPECT_THAT(std::string(EncodeLines(*Encoder(recipe), {"1:5:1"}, {2}, &block_).message()),
              HasSubstr("has a field 1, which the first data did not have"));
  recipe.layout = {TextFormat::kVw, ',', true, false, false, {"label", "item", "user"}};
  recipe.slots = {{"item", false, ' '}, {"user", false, ' '}};
  ASSERT_EQ(EncodeLines(*Encoder(recipe), {"|user 7 8", "1 'tag|item 5"}, {2}, &block_),
            absl::OkStatus());
  EXPECT_THAT(block_.sparse[0].keys, ElementsAre(7, 8, 5));
  EXPECT_THAT(block_.sparse[0].offsets, ElementsAre(0, 0, 2, 3, 3));
}

TEST_F(TextSamplesTest, ListsHaveTheSeparatorOfTheRecipe) {
  Recipe recipe = ExampleRecipe(true);
  recipe.slots[0].separator = ';';
  const auto read = [&](const std::string& text) -> absl::Status {
    TextInput input;
    input.files = {scratch_.Write("in.jsonl", text)};
    block_.Reset(2);
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<SampleReader> reader,
                             OpenTextSamples(Encoder(recipe), input, {1, 1}, &kept_));
    return reader->Read(100, &block_).status();
  };
  ASSERT_EQ(read("{\"a\": [\"p\", \"q\"], \"x\": 2, \"b\": \"r\"}\n"), absl::OkStatus());
  ExpectOneSample();
  EXPECT_THAT(read("{\"a\": [\"p;q\"], \"x\": 2, \"b\": \"r\"}\n").message(),
              HasSubstr("the list 'a' has a value with ';'"));
}

TEST_F(TextSamplesTest, CrossesCombineTheValuesOfTheirColumns) {
  Recipe recipe = ExampleRecipe(true);
  const std::vector<Recipe::Source> sources = {{"a", false, '|'}, {"x", true}, {"b"}};
  recipe.slots.push_back({CrossName(sources), false, {}, sources});
  const std::vector<uint32_t> slots = {2, 1};
  const std::vector<absl::string_view> rows = {"p|qq", "2", "r", "", "2", "r"};  // a, x, b
  ASSERT_TRUE(EncodeFields(*Encoder(recipe), rows, slots, &block_).ok());
  EXPECT_THAT(block_.sparse[1].keys,
              ElementsAre(Hash64("a_x_x_x_b=1:p1:21:r"), Hash64("a_x_x_x_b=2:qq1:21:r")));
  EXPECT_THAT(block_.sparse[1].offsets, ElementsAre(0, 2, 2));  // a missing value: no combination
  const auto keys = Encoder(recipe)->encoder().KeysOf("a_x_x_x_b", "1:p1:21:r");
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_THAT(*keys, ElementsAre(Hash64("a_x_x_x_b=1:p1:21:r")));
  for (const char* const text : {"p", "1:p1:2", "9:p", "1:p1:21:rx", ""}) {
    EXPECT_TRUE(
        absl::IsInvalidArgument(Encoder(recipe)->encoder().KeysOf("a_x_x_x_b", text).status()))
        << text;
  }
}

TEST_F(TextSamplesTest, ManyCombinationsAreRefused) {
  Recipe recipe = ExampleRecipe(true);
  const std::vector<Recipe::Source> sources = {{"a", false, '|'}, {"b", false, '|'}};
  recipe.slots = {{CrossName(sources), false, {}, sources}};
  std::string many;
  for (int i = 0; i < 65; ++i) many += "v|";
  const std::vector<absl::string_view> fields = {many, "2", many};
  const std::vector<uint32_t> slots = {1};
  EXPECT_THAT(EncodeFields(*Encoder(recipe), fields, slots, &block_).message(),
              HasSubstr("row 0: column 'a_x_b': the cross has at least 4225 combinations"));
  std::string more;
  for (int i = 0; i < 5000; ++i) more += "v|";
  const std::vector<absl::string_view> missing = {more, "2", ""};  // so is the cross
  EXPECT_TRUE(EncodeFields(*Encoder(recipe), missing, slots, &block_).ok());
}

TEST_F(TextSamplesTest, BadRowsAreTheCallersFault) {
  const auto encoder = Encoder(ExampleRecipe(true));
  const std::vector<uint32_t> slots = {1, 1};
  const auto error = [&](absl::string_view second) {
    const std::vector<absl::string_view> lines = {"p,2,r", second};
    const absl::Status status = EncodeLines(*encoder, lines, slots, &block_);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_EQ(error("p,2"), "row 1: it has 2 fields; send 3: a, x, b");
  EXPECT_EQ(error("p,two,r"),
            "row 1: column 'x': 'two' is not a number: write one, "
            "or leave the field empty");
  EXPECT_THAT(error("p,2,\"r"), HasSubstr("never closed"));
  EXPECT_THAT(error(""), HasSubstr("1 fields"));
  const std::vector<absl::string_view> fields = {"p", "2"};
  EXPECT_TRUE(absl::IsInvalidArgument(EncodeFields(*encoder, fields, slots, &block_)));
}

TEST_F(TextSamplesTest, ShapeMustBeThatOfTheModel) {
  const Recipe recipe = ExampleRecipe(true);
  SampleShape shape;
  shape.dense_dim = 1;
  shape.slot_nums = {1, 1};
  EXPECT_TRUE(CheckRecipeShape(recipe, shape, true).ok());
  EXPECT_THAT(CheckRecipeShape(recipe, shape, false).message(), HasSubstr("64 bits in a key"));
  shape.slot_nums = {1};
  EXPECT_THAT(CheckRecipeShape(recipe, shape, true).message(), HasSubstr("2 slots"));
  shape.dense_dim = 2;
  EXPECT_THAT(CheckRecipeShape(recipe, shape, true).message(), HasSubstr("1 dense features"));
}

TEST_F(TextSamplesTest, AWeightThatIsNotThereIsOne) {
  Recipe recipe = ExampleRecipe(true);
  recipe.weight = "id";
  const auto read = [&](const std::string& text) -> absl::Status {
    TextInput input;
    input.files = {scratch_.Write("in.csv", text)};
    block_.Reset(2);
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<SampleReader> reader,
                             OpenTextSamples(Encoder(recipe), input, {1, 1}, &kept_));
    return reader->Read(100, &block_).status();
  };
  ASSERT_TRUE(read("y,a,x,b\n1,p|q,2,r\n").ok());
  ExpectOneSample();
  EXPECT_THAT(block_.label, ElementsAre(1, 1));
  ASSERT_TRUE(read("id,y,a,x,b\n0.5,1,p|q,2,r\n,0,p,2,r\n").ok());
  EXPECT_THAT(block_.label, ElementsAre(1, 0.5f, 0, 1));
  EXPECT_THAT(
      read("id,a,x,b\n-1,p,2,r\n").message(),
      HasSubstr("in.csv: line 2: column 'id': the weight is -1: a weight is a number from 0"));
  recipe.layout.header = false;
  ASSERT_TRUE(read("p|q,2,r\n").ok());  // without the label and the weight
  ExpectOneSample();

  SampleShape model = {2, 1, {1, 1}, {}, true};
  EXPECT_TRUE(CheckRecipeShape(recipe, model, true).ok());
  model = {1, 1, {1, 1}, {}};
  EXPECT_THAT(CheckRecipeShape(recipe, model, true).message(), HasSubstr("cistern.sample_weights"));
}

TEST_F(TextSamplesTest, KeysKeepTheWeightsOfTheirValues) {
  Recipe recipe = ExampleRecipe(true);
  recipe.slots[0].weights = recipe.slots[0].key_weights = true;
  const auto read = [&](const std::string& a, std::vector<uint32_t> slots = {1, 1}) {
    TextInput input;
    input.files = {scratch_.Write("in.csv", "a,x,b\np:2,2,r\n" + a + ",2,r\n")};
    block_.Reset(slots.size());
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<SampleReader> reader,
                             OpenTextSamples(Encoder(recipe), input, slots, &kept_));
    return reader->Read(100, &block_).status();
  };
  // A weight of 0 is no value, and a value without a weight has weight 1.
  ASSERT_TRUE(read("p:0.5|q:-3|r:0|s|a:b:1e-3").ok());
  EXPECT_THAT(block_.sparse[0].keys, ElementsAre(Hash64("a=p"), Hash64("a=p"), Hash64("a=q"),
                                                 Hash64("a=s"), Hash64("a=a:b")));
  EXPECT_THAT(block_.sparse[0].weights, ElementsAre(2, 0.5f, -3, 1, 1e-3f));
  EXPECT_TRUE(block_.sparse[1].weights.empty());
  // In one input with others, these have weight 1.
  ASSERT_TRUE(read("q:3", {2}).ok());
  EXPECT_THAT(block_.sparse[0].weights, ElementsAre(2, 1, 3, 1));
  for (const char* const bad : {"nan", "inf", "-inf", "1e39", "x", ""}) {
    const absl::Status status = read(absl::StrCat("p:1|q:", bad));
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("in.csv: line 3: column 'a': 'q:", bad, "': '", bad,
                                       "' is not the weight of a key: write a finite number")));
    EXPECT_THAT(block_.sparse[0].weights, ElementsAre(2));  // nothing of the bad row
    EXPECT_EQ(block_.sparse[0].keys.size(), 1u);
  }
  // What ends as weights of another mark do is not taken for one, and not passed over.
  ASSERT_TRUE(read("size=1:2").ok());
  EXPECT_THAT(block_.sparse[0].keys, ElementsAre(Hash64("a=p"), Hash64("a=size=1")));
  for (const char* const odd : {"size=10", "size(10)"}) {
    EXPECT_THAT(std::string(read(absl::StrCat("p:1|", odd)).message()),
                HasSubstr(absl::StrCat("'", odd,
                                       "' has no ':', which begins the weights of this "
                                       "column: write 'size:10' if its number is the weight")));
  }
  recipe.slots[0].weight_mark = '=';
  ASSERT_TRUE(read("q=0.5|s|t:3|u=v").ok());
  EXPECT_THAT(block_.sparse[0].keys, ElementsAre(Hash64("a=p:2"), Hash64("a=q"), Hash64("a=s"),
                                                 Hash64("a=t:3"), Hash64("a=u=v")));
  EXPECT_THAT(block_.sparse[0].weights, ElementsAre(1, 0.5f, 1, 1, 1));
  EXPECT_THAT(std::string(read("q=1e39").message()), HasSubstr("'q=1e39': the weight is beyond"));
  recipe.slots[0].weight_mark = '(';
  ASSERT_TRUE(read("q(0.5)|s=1").ok());
  EXPECT_THAT(block_.sparse[0].weights, ElementsAre(1, 0.5f, 1));
  recipe.slots[0].weight_mark = ':';
  // The stand-in of a missing value has weight 1; that of a rare one keeps its weight.
  recipe.missing = StandIn::kKey;
  ASSERT_TRUE(read("p:0").ok());
  EXPECT_THAT(block_.sparse[0].weights, ElementsAre(2, 1));

  SampleShape model = {1, 1, {1, 1}, {}, false, {true, false}};
  EXPECT_TRUE(CheckRecipeShape(recipe, model, true).ok());
  model.key_weights = {false, true};
  EXPECT_THAT(CheckRecipeShape(recipe, model, true).message(),
              HasSubstr("with weights in input 0"));
  model.key_weights = {};
  EXPECT_THAT(CheckRecipeShape(recipe, model, true).message(), HasSubstr("cistern.key_weights"));
}

TEST_F(TextSamplesTest, WeightsCanBeInAColumnOfTheirOwn) {
  Recipe recipe = ExampleRecipe(true);
  recipe.layout.columns.push_back("w");
  recipe.slots[0].key_weights = true;
  recipe.slots[0].weight_column = "w";
  const auto read = [&](const std::string& row) {
    TextInput input;
    input.files = {scratch_.Write("in.csv", "a,x,b,w\n" + row + "\n")};
    block_.Reset(2);
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<SampleReader> reader,
                             OpenTextSamples(Encoder(recipe), input, {1, 1}, &kept_));
    return reader->Read(100, &block_).status();
  };
  ASSERT_TRUE(read("p||q|r,2,r,0.5|7|2|0").ok());
  EXPECT_THAT(block_.sparse[0].keys, ElementsAre(Hash64("a=p"), Hash64("a=q")));
  EXPECT_THAT(block_.sparse[0].weights, ElementsAre(0.5f, 2));
  ASSERT_TRUE(read(",2,r,").ok());
  EXPECT_TRUE(block_.sparse[0].keys.empty());
  EXPECT_THAT(std::string(read("p|q|r,2,r,1|2").message()),
              HasSubstr("line 2: column 'a': 3 values, but column 'w' has 2 weights"));
  EXPECT_THAT(std::string(read("p,2,r,1|2|3").message()),
              HasSubstr("column 'a': 1 values, but column 'w' has 3 weights"));
  EXPECT_THAT(std::string(read("p|q,2,r,1|nan").message()),
              HasSubstr("column 'a': weight 2: 'nan' is not the weight of a key"));
  TextInput input;
  input.files = {scratch_.Write("in.csv", "a,x,b\np,2,r\n")};
  EXPECT_THAT(
      std::string(OpenTextSamples(Encoder(recipe), input, {1, 1}, &kept_).status().message()),
      HasSubstr("there is no column 'w', which the recipe reads (the weights of keys)"));
  // Requests send both columns, as fields or as lines.
  const auto encoder = Encoder(recipe);
  SampleBlock fields, lines;
  const std::vector<absl::string_view> texts = {"p|q", "2", "r", "3|4"};
  ASSERT_TRUE(EncodeFields(*encoder, texts, std::vector<uint32_t>{1, 1}, &fields).ok());
  const std::vector<absl::string_view> line = {"p|q,2,r,3|4"};
  ASSERT_TRUE(EncodeLines(*encoder, line, std::vector<uint32_t>{1, 1}, &lines).ok());
  EXPECT_THAT(fields.sparse[0].weights, ElementsAre(3, 4));
  EXPECT_EQ(fields.sparse[0].weights, lines.sparse[0].weights);
  EXPECT_EQ(fields.sparse[0].keys, lines.sparse[0].keys);
}

}  // namespace
}  // namespace cistern::data
