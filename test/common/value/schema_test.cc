// Identity and comparison of schemas, and the names of tables.
#include "common/value/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "common/base/names.h"

namespace cistern {
namespace {

using ::testing::HasSubstr;

v1::Schema TwoTables() {
  // gcc 12 warns wrongly if a literal becomes an element of a repeated field (gcc bug 105651).
  const std::string w = "w", m = "m";
  v1::Schema schema;
  v1::TableSpec* deep = schema.add_tables();
  deep->set_name("deep");
  deep->set_dim(16);
  deep->mutable_initializer()->set_range(0.05f);
  v1::TableSpec* wide = schema.add_tables();
  wide->set_name("wide");
  wide->set_dim(1);
  v1::DenseTableSpec* dense = schema.add_dense_tables();
  dense->set_name("dense");
  dense->set_rows(100);
  for (const std::string& column : {w, m}) dense->add_columns(column);
  return schema;
}

TEST(Schema, OnlyTheEmptySchemaHasHashZero) {
  EXPECT_EQ(SchemaHash(v1::Schema()), 0u);
  EXPECT_NE(SchemaHash(TwoTables()), 0u);
}

TEST(Schema, HashSurvivesSerialization) {
  v1::Schema copy;
  ASSERT_TRUE(copy.ParseFromString(TwoTables().SerializeAsString()));
  EXPECT_EQ(SchemaHash(copy), SchemaHash(TwoTables()));
}

TEST(Schema, EveryChangeChangesTheHashAndIsNamed) {
  const struct {
    std::function<void(v1::Schema&)> change;
    const char* difference;
  } cases[] = {
      {[](v1::Schema& s) { s.mutable_tables(0)->set_dim(8); },
       "table 'deep': dim is 16 here and 8 there"},
      {[](v1::Schema& s) { s.mutable_tables(1)->set_seed(3); },
       "table 'wide': seed is 0 here and 3 there"},
      {[](v1::Schema& s) { s.mutable_tables(1)->set_accessor(v1::TableSpec::CTR); },
       "table 'wide': accessor is EMBEDDING here and CTR there"},
      {[](v1::Schema& s) { s.mutable_tables(0)->mutable_initializer()->set_range(0.1f); },
       "table 'deep': initializer.range is 0.05 here and 0.1 there"},
      {[](v1::Schema& s) { s.mutable_tables(0)->mutable_rule()->set_epsilon(1); },
       "table 'deep': rule is set there but not here"},
      {[](v1::Schema& s) { s.mutable_tables(0)->clear_initializer(); },
       "table 'deep': initializer is set here but not there"},
      {[](v1::Schema& s) { s.mutable_tables(0)->set_name("deeper"); },
       "table 0 is called 'deep' here and 'deeper' there"},
      {[](v1::Schema& s) { s.mutable_tables()->RemoveLast(); },
       "table 'wide' exists here but not there"},
      {[](v1::Schema& s) { s.add_tables()->set_name("more"); },
       "table 'more' exists there but not here"},
      {[](v1::Schema& s) { s.mutable_dense_tables(0)->set_rows(101); },
       "dense table 'dense': rows is 100 here and 101 there"},
      {[](v1::Schema& s) { s.mutable_dense_tables(0)->add_columns(std::string("v")); },
       "dense table 'dense': columns is [\"w\", \"m\"] here and [\"w\", \"m\", \"v\"] there"},
      {[](v1::Schema& s) { s.clear_dense_tables(); },
       "dense table 'dense' exists here but not there"},
  };
  for (const auto& c : cases) {
    v1::Schema changed = TwoTables();
    c.change(changed);
    EXPECT_EQ(SchemaDifference(TwoTables(), changed), c.difference);
    EXPECT_NE(SchemaHash(TwoTables()), SchemaHash(changed)) << c.difference;
  }
  EXPECT_EQ(SchemaDifference(TwoTables(), TwoTables()), "");
}

TEST(Schema, RefusesInvalidTables) {
  ASSERT_TRUE(CheckSchema(TwoTables()).ok());
  const struct {
    std::function<void(v1::Schema&)> change;
    const char* message;
  } cases[] = {
      {[](v1::Schema& s) { s.mutable_tables(1)->set_name("deep"); },
       "two tables are called 'deep'"},
      {[](v1::Schema& s) { s.mutable_dense_tables(0)->set_name("deep"); },
       "two tables are called 'deep'"},
      {[](v1::Schema& s) { s.mutable_tables(0)->set_dim(0); }, "table 'deep': dim is 0"},
      {[](v1::Schema& s) { s.mutable_dense_tables(0)->set_name("a/b"); }, "'a/b'"},
      {[](v1::Schema& s) { s.mutable_dense_tables(0)->clear_columns(); }, "has 0 columns"},
  };
  for (const auto& c : cases) {
    v1::Schema schema = TwoTables();
    c.change(schema);
    const absl::Status status = CheckSchema(schema);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

TEST(Names, MustBePlain) {
  for (const char* name : {"a", "deep", "9", "A.b_c-d", "a..b"}) {
    EXPECT_TRUE(CheckName(name).ok()) << name;
  }
  EXPECT_TRUE(CheckName(std::string(128, 'x')).ok());
  for (const char* name :
       {"", ".", "..", "a/b", "/", "-a", "_a", ".a", "a b", "a\n", "\xc3\xa9", "a*"}) {
    EXPECT_EQ(CheckName(name).code(), absl::StatusCode::kInvalidArgument) << name;
  }
  EXPECT_FALSE(CheckName(std::string(129, 'x')).ok());
  EXPECT_FALSE(CheckName(std::string("a\0b", 3)).ok());
}

TEST(Schema, DenseRuleRequiresItsColumnsAndConstants) {
  const auto schema = [](v1::DenseRule::Kind kind, const std::vector<std::string>& columns) {
    v1::Schema out;
    v1::DenseTableSpec* table = out.add_dense_tables();
    table->set_name("mlp");
    table->set_rows(3);
    for (const std::string& column : columns) table->add_columns(column);
    v1::DenseRule& rule = *table->mutable_rule();
    rule.set_kind(kind);
    rule.set_learning_rate(0.1f);
    rule.set_beta1(0.9f);
    rule.set_beta2(0.999f);
    rule.set_epsilon(1e-8f);
    rule.set_rho(0.9999f);
    rule.set_mu(0.99f);
    rule.set_decay(0.999999f);
    return out;
  };
  const std::vector<std::string> adam = {"w", "m", "v", "step"};
  const std::vector<std::string> d2sum = {"w", "avg_w", "ada_d2sum", "ada_g2sum", "mom_velocity"};
  EXPECT_TRUE(CheckSchema(schema(v1::DenseRule::NONE, {"x", "y"})).ok());
  EXPECT_TRUE(CheckSchema(schema(v1::DenseRule::SGD, {"w"})).ok());
  EXPECT_TRUE(CheckSchema(schema(v1::DenseRule::ADAM, adam)).ok());
  EXPECT_TRUE(CheckSchema(schema(v1::DenseRule::ADAM_D2SUM, d2sum)).ok());
  EXPECT_TRUE(CheckSchema(schema(v1::DenseRule::SUMMARY, {"w"})).ok());

  const absl::Status columns = CheckSchema(schema(v1::DenseRule::ADAM, {"w", "m", "v"}));
  EXPECT_EQ(columns.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(columns.message()), HasSubstr("ADAM needs w m v step"));
  EXPECT_FALSE(CheckSchema(schema(v1::DenseRule::SUM, {"w", "m"})).ok());

  v1::Schema rate = schema(v1::DenseRule::SGD, {"w"});
  rate.mutable_dense_tables(0)->mutable_rule()->set_learning_rate(0);
  EXPECT_THAT(std::string(CheckSchema(rate).message()), HasSubstr("learning_rate"));
  v1::Schema beta = schema(v1::DenseRule::ADAM, adam);
  beta.mutable_dense_tables(0)->mutable_rule()->set_beta2(1);
  EXPECT_THAT(std::string(CheckSchema(beta).message()), HasSubstr("beta2"));
  v1::Schema unknown = schema(v1::DenseRule::SUM, {"w"});
  unknown.mutable_dense_tables(0)->mutable_rule()->set_kind(static_cast<v1::DenseRule::Kind>(77));
  EXPECT_FALSE(CheckSchema(unknown).ok());
}

// Servers create tables for any caller, so no product of the requested sizes may wrap around.
TEST(CheckSchema, RefusesDenseTablesThatNoServerCanHold) {
  for (const uint64_t rows :
       {(uint64_t{1} << 63) + 1024, ~uint64_t{0}, uint64_t{1} << 34, kMaxDenseCells / 2 + 1}) {
    v1::Schema schema = TwoTables();
    schema.mutable_dense_tables(0)->set_rows(rows);
    const absl::Status status = CheckSchema(schema);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << rows;
    EXPECT_THAT(std::string(status.message()), HasSubstr("dense table 'dense'"));
  }
  v1::Schema schema = TwoTables();
  schema.mutable_dense_tables(0)->set_rows(kMaxDenseCells / 2);
  EXPECT_EQ(CheckSchema(schema), absl::OkStatus());
  v1::DenseTableSpec* another = schema.add_dense_tables();  // one cell too many
  *another = schema.dense_tables(0);
  another->set_name("another");
  another->set_rows(1);
  EXPECT_FALSE(CheckSchema(schema).ok());
}

TEST(CheckSchema, RefusesTooManyTablesAndOverlongNames) {
  v1::Schema schema;
  for (int i = 0; i <= kMaxTables; ++i) {
    v1::TableSpec* table = schema.add_tables();
    table->set_name(absl::StrCat("t", i));
    table->set_dim(1);
  }
  EXPECT_THAT(std::string(CheckSchema(schema).message()), HasSubstr("the limit is 1024"));
  schema.mutable_tables()->RemoveLast();
  EXPECT_EQ(CheckSchema(schema), absl::OkStatus());
  schema = TwoTables();
  schema.mutable_dense_tables(0)->set_columns(0, std::string(1 << 20, 'c'));
  EXPECT_THAT(std::string(CheckSchema(schema).message()), HasSubstr("column name"));
  schema = TwoTables();
  v1::Initializer* initializer = schema.mutable_tables(0)->mutable_initializer();
  initializer->set_kind(v1::Initializer::SLOT_UNIFORM);
  for (size_t i = 0; i <= kMaxSchemaBytes; ++i) {
    initializer->mutable_slot_sizes()->add_sizes(1);
  }
  EXPECT_THAT(std::string(CheckSchema(schema).message()), HasSubstr("bytes"));
}

}  // namespace
}  // namespace cistern
