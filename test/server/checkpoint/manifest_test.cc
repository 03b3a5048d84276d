// The text of a manifest: round trips, and everything that is refused.
#include "server/checkpoint/manifest.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "common/base/hash.h"
#include "common/value/schema.h"
#include "test/server/checkpoint/manifest_sample.h"

namespace cistern::server {
namespace {

using google::protobuf::util::MessageDifferencer;
using ::testing::HasSubstr;

std::string Hex(uint64_t x) {
  return absl::StrCat(absl::Hex(x, absl::kZeroPad16));
}

void ExpectRefused(const std::string& text, const std::string& message) {
  const absl::Status status = ParseManifest(text).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

// Replaces `from` once in the text and updates the hash to match.
std::string Rehashed(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const size_t end = text.rfind("\"self_xxh3\"");
  return absl::StrCat(text.substr(0, end), "\"self_xxh3\": \"", Hex(HashBytes(text.data(), end)),
                      "\"\n}\n");
}

TEST(Manifest, ReadsBackWhatWasWritten) {
  const std::string text = FormatManifest(SampleManifest());
  const absl::StatusOr<ParsedManifest> parsed = ParseManifest(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_TRUE(MessageDifferencer::Equals(parsed->manifest, SampleManifest()));
  EXPECT_EQ(SchemaHash(parsed->manifest.schema()), SchemaHash(SampleSchema()));
  EXPECT_EQ(FormatManifest(parsed->manifest), text);
}

TEST(Manifest, EndsWithTheHashOfItself) {
  const std::string text = FormatManifest(SampleManifest());
  const uint64_t hash = HashBytes(text.data(), text.find("\"self_xxh3\""));
  EXPECT_EQ(ParseManifest(text)->self_xxh3, hash);
  EXPECT_EQ(text.substr(text.size() - 22), absl::StrCat(": \"", Hex(hash), "\"\n}\n").substr(1));
}

TEST(Manifest, HasTheFormatOfThisVersion) {
  v1::Manifest manifest = SampleManifest();
  manifest.set_format(77);
  EXPECT_EQ(FormatManifest(manifest), FormatManifest(SampleManifest()));
}

TEST(Manifest, FirstCommitHasNoPrevious) {
  v1::Manifest manifest = SampleManifest();
  manifest.clear_files();
  manifest.set_commit(1);
  manifest.set_previous(0);
  EXPECT_TRUE(ParseManifest(FormatManifest(manifest)).ok());
  manifest.set_previous(1);
  ExpectRefused(FormatManifest(manifest), "\"previous\" is missing or out of range");
}

TEST(Manifest, SchemaSurvivesForEveryFloat) {
  uint32_t bits = 1;
  for (int i = 0; i < 2000; ++i, bits = bits * 1664525 + 1013904223) {
    v1::Manifest manifest = SampleManifest();
    float range;
    std::memcpy(&range, &bits, sizeof(range));
    range = std::fabs(range);
    if (!std::isfinite(range)) continue;
    v1::TableSpec* table = manifest.mutable_schema()->mutable_tables(0);
    table->mutable_initializer()->set_kind(v1::Initializer::UNIFORM);
    table->mutable_initializer()->set_range(range);
    const auto parsed = ParseManifest(FormatManifest(manifest));
    ASSERT_TRUE(parsed.ok()) << parsed.status() << " " << range;
    ASSERT_EQ(SchemaHash(parsed->manifest.schema()), SchemaHash(manifest.schema())) << range;
  }
}

TEST(Manifest, SchemaSurvivesWithAndWithoutOptionalFields) {
  v1::Manifest manifest = SampleManifest();
  v1::CtrRules* rules = manifest.mutable_schema()->mutable_tables(1)->mutable_ctr();
  rules->set_base_threshold(0);  // unset reads as 1.5
  rules->set_delta_keep_days(16);
  const auto parsed = ParseManifest(FormatManifest(manifest)).value();
  EXPECT_TRUE(parsed.manifest.schema().tables(1).ctr().has_base_threshold());
  EXPECT_FALSE(parsed.manifest.schema().tables(1).ctr().has_delta_threshold());
  EXPECT_EQ(SchemaHash(parsed.manifest.schema()), SchemaHash(manifest.schema()));
}

TEST(Manifest, DetectsEveryFlippedByte) {
  const std::string text = FormatManifest(SampleManifest());
  for (size_t i = 0; i < text.size(); ++i) {
    for (const int mask : {1 << (i % 8), 0xff}) {
      std::string flipped = text;
      flipped[i] = static_cast<char>(flipped[i] ^ mask);
      EXPECT_EQ(ParseManifest(flipped).status().code(), absl::StatusCode::kDataLoss)
          << i << " " << text.substr(i, 20);
    }
  }
}

TEST(Manifest, DetectsEveryTruncation) {
  const std::string text = FormatManifest(SampleManifest());
  for (size_t size = 0; size < text.size(); ++size) {
    ExpectRefused(text.substr(0, size), "it does not end with its own hash");
  }
  for (const char* more : {"\n", " ", "x", "}"}) {
    ExpectRefused(text + more, "it does not end with its own hash");
  }
}

TEST(Manifest, RefusesOtherText) {
  for (const char* text : {"", "{}", "[]", "null", "\xff\xfe", "{\"self_xxh3\": \"0\"\n}\n"}) {
    ExpectRefused(text, "it does not end with its own hash");
  }
  const std::string text = FormatManifest(SampleManifest());
  const size_t hash = text.size() - 20;
  ExpectRefused(text.substr(0, hash) + "0000000000000000" + text.substr(hash + 16),
                "its own hash is");
  const std::string whole = "{\n \"format\": 1";
  ExpectRefused(Rehashed(text, whole, "[\n \"format\": 1"), "it is not a JSON object");
  ExpectRefused(Rehashed(text, whole, std::string(100000, '[')), "it is not a JSON object");
  ExpectRefused(Rehashed(text, "\"ads\"", "\"ad\xff\""), "");
}

TEST(Manifest, NamesALaterFormat) {
  const std::string text = FormatManifest(SampleManifest());
  ExpectRefused(Rehashed(text, "\"format\": 1", "\"format\": 2, \"clusters\": []"),
                "its format is 2; this version reads format 1 only: use the version that wrote it");
  ExpectRefused(Rehashed(text, "\"format\": 1", "\"format\": \"1\""), "\"format\" is missing");
  ExpectRefused(Rehashed(text, "\"format\"", "\"formats\""), "\"format\" is missing");
}

TEST(Manifest, RefusesFieldsThatAreUnknownOrOfAnotherType) {
  const std::string text = FormatManifest(SampleManifest());
  ExpectRefused(Rehashed(text, "\"created\"", "\"made\""), "made");
  ExpectRefused(Rehashed(text, "\"root\"", "\"roots\""), "roots");
  ExpectRefused(Rehashed(text, "\"shard_num\": 4", "\"shard_num\": -4"), "shard_num");
  ExpectRefused(Rehashed(text, "\"shard_num\": 4", "\"shard_num\": 4.5"), "shard_num");
  ExpectRefused(Rehashed(text, "\"pass\": \"9\"", "\"pass\": \"18446744073709551616\""), "pass");
  ExpectRefused(Rehashed(text, "\"pass\": \"9\"", "\"pass\": {}"), "");
}

TEST(Manifest, RefusesFieldsThatAreMissingOrOutOfRange) {
  const auto refused = [](const std::function<void(v1::Manifest&)>& change,
                          const std::string& message) {
    v1::Manifest manifest = SampleManifest();
    change(manifest);
    ExpectRefused(FormatManifest(manifest), message);
  };
  refused([](v1::Manifest& m) { m.clear_cluster(); }, "\"cluster\" is missing");
  refused([](v1::Manifest& m) { m.clear_commit(); }, "\"commit\" is missing");
  refused([](v1::Manifest& m) { m.clear_previous(); }, "\"previous\" is missing");
  refused([](v1::Manifest& m) { m.clear_server_num(); }, "server_num");
  refused([](v1::Manifest& m) { m.set_server_num(5); }, "server_num");
  refused([](v1::Manifest& m) { m.set_shard_num(1 << 30); }, "shard_num");
  refused([](v1::Manifest& m) { m.clear_schema(); }, "\"schema\" is missing");
  refused([](v1::Manifest& m) { m.mutable_schema()->mutable_tables(0)->set_dim(0); }, "dim is 0");
  refused(
      [](v1::Manifest& m) {
        m.mutable_schema()->mutable_tables(0)->mutable_bounds()->set_expire_days(7);
        m.mutable_days()->add_days()->set_first_pass(m.pass() + 1);
      },
      "\"days\": the days of passes up to 9 name pass 10");
  refused([](v1::Manifest& m) { m.mutable_days()->add_days(); }, "\"days\": days of passes, but");
  refused([](v1::Manifest& m) { m.mutable_tables()->RemoveLast(); },
          "\"tables\" do not match those of \"schema\"");
  refused([](v1::Manifest& m) { m.mutable_tables(0)->set_name("x"); },
          "\"tables\" do not match those of \"schema\"");
  refused([](v1::Manifest& m) { m.clear_dense_tables(); },
          "\"dense_tables\" do not match those of \"schema\"");
}

TEST(Manifest, RefusesImpossibleFiles) {
  const auto refused = [](const std::function<void(v1::RowFile&)>& change,
                          const std::string& message) {
    v1::Manifest manifest = SampleManifest();
    change(*manifest.mutable_files(1));
    ExpectRefused(FormatManifest(manifest), message);
  };
  for (const char* name : {"../x", "/etc/passwd", "a/b", "", "..", ".x", "a b"}) {
    refused([&](v1::RowFile& f) { f.set_name(name); }, "name");
  }
  refused([](v1::RowFile& f) { f.set_name("base-3-1-0"); }, "'base-3-1-0' is named twice");
  const auto field = [&](const std::string& name, const std::function<void(v1::RowFile&)>& change) {
    refused(change, absl::StrCat("file 'delta-7-3-0': \"", name, "\" is missing or out of"));
  };
  field("server_num", [](v1::RowFile& f) { f.set_server_num(5); });
  field("server", [](v1::RowFile& f) { f.set_server(2); });
  field("commit", [](v1::RowFile& f) { f.set_commit(8); });
  field("commit", [](v1::RowFile& f) { f.set_commit(0); });
  field("epoch", [](v1::RowFile& f) { f.set_epoch(4); });
  field("bytes", [](v1::RowFile& f) { f.set_bytes(0); });
  field("root", [](v1::RowFile& f) { f.set_root(0); });
}

TEST(NumberName, ConvertsToTwentyDigitsAndBack) {
  EXPECT_EQ(NumberName(12), "00000000000000000012");
  EXPECT_EQ(NumberName(UINT64_MAX), "18446744073709551615");
  for (const uint64_t number : {uint64_t{1}, uint64_t{12}, uint64_t{1} << 40, UINT64_MAX}) {
    EXPECT_EQ(NumberOfName(NumberName(number)), number);
  }
  for (const char* name :
       {"", "0", "12", "00000000000000000000", "0000000000000000001x", " 0000000000000000012",
        "+0000000000000000012", "000000000000000000012", "00000000000000000012.tmp",
        "18446744073709551616", "99999999999999999999"}) {
    EXPECT_EQ(NumberOfName(name), 0u) << name;
  }
}

}  // namespace
}  // namespace cistern::server
