#include "worker/data/feed/kafka_feed.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "absl/time/clock.h"
#include "test/worker/data/feed/mock_kafka.h"
#include "test/worker/data/scratch.h"

// How many partitions topics show: the mock cluster cannot add some.
static std::atomic<int> shown_partitions{1000};

// In place of librdkafka's.
rd_kafka_resp_err_t rd_kafka_metadata(rd_kafka_t* client, int all_topics, rd_kafka_topic_t* topic,
                                      const struct rd_kafka_metadata** found, int timeout_ms) {
  static const auto real =
      reinterpret_cast<decltype(&rd_kafka_metadata)>(dlsym(RTLD_NEXT, "rd_kafka_metadata"));
  const rd_kafka_resp_err_t error = real(client, all_topics, topic, found, timeout_ms);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return error;
  for (int i = 0; i < (*found)->topic_cnt; ++i) {
    int& partitions = (*found)->topics[i].partition_cnt;
    partitions = std::min<int>(partitions, shown_partitions);
  }
  return error;
}

namespace cistern::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using Keys = std::vector<Key>;
using Counts = std::vector<uint64_t>;

// Lines of a click and an item, whose text is a key.
class KafkaFeedTest : public testing::Test {
 protected:
  void SetUp() override {
    Recipe recipe;
    recipe.layout.columns = {"click", "item"};
    recipe.labels = {{"click", std::nullopt, {}}};
    recipe.slots = {{.column = "item"}};
    recipe.keys = KeyMode::kRaw;
    const auto encoder = OwnedEncoder::Open(recipe, "");
    ASSERT_TRUE(encoder.ok()) << encoder.status();
    options_.data.shape = {1, 0, {1}, {}, false};
    options_.data.labels = LabelRule::kProbability;
    options_.open = [encoder = *encoder] { return ReadRecipePayload(encoder, {1}); };
    options_.status = &status_;
    options_.source = "kafka://" + kafka_.brokers() + "/clicks";
  }
  void Produce(const std::string& text, int partition = 0) {
    kafka_.Produce("clicks", partition, text);
    kafka_.Flush();
  }
  std::unique_ptr<FeedSource> Source() {
    auto source = OpenKafkaFeed(options_);
    EXPECT_TRUE(source.ok()) << source.status();
    return *std::move(source);
  }
  std::unique_ptr<FeedPartition> Open(const std::string& place = "") {
    auto partition = Source()->Open(0, place);
    EXPECT_TRUE(partition.ok()) << partition.status();
    return *std::move(partition);
  }
  // Reads until there is certainly nothing.
  static Keys ReadAll(FeedPartition& partition, size_t most = 1000000) {
    SampleBlock block;
    block.Reset(1);
    while (block.size < most) {
      const auto got = partition.Read(most - block.size, &block);
      EXPECT_TRUE(got.ok()) << got.status();
      if (!got.ok() || (*got == 0 && partition.is_drained())) break;
    }
    return block.sparse[0].keys;
  }
  static absl::Status ErrorOf(FeedPartition& partition) {
    SampleBlock block;
    block.Reset(1);
    while (true) {
      const auto got = partition.Read(100, &block);
      if (!got.ok()) return got.status();
      if (*got == 0 && partition.is_drained()) return absl::OkStatus();
    }
  }

  MockKafka kafka_;
  Scratch scratch_;
  FeedStatus status_;
  KafkaFeedOptions options_;
};

TEST_F(KafkaFeedTest, ReadsMessagesInTheirOrder) {
  kafka_.MakeTopic("clicks", 1);
  Produce("1,7");
  Produce("0,8\n1,9\r\n");
  Produce(R"({"item": 10, "click": true, "more": [1]})");
  const auto partition = Open();
  EXPECT_THAT(ReadAll(*partition), ElementsAre(7, 8, 9, 10));
  Produce("1,11");
  Keys later;
  while (later.empty()) later = ReadAll(*partition);
  EXPECT_THAT(later, ElementsAre(11));
}

TEST_F(KafkaFeedTest, ContinuesInsideAMessage) {
  kafka_.MakeTopic("clicks", 1);
  Produce("1,1\n1,2\n1,3");
  Produce("1,4");
  for (const size_t most : {1, 2, 3, 4}) {
    const auto partition = Open();
    Keys keys = ReadAll(*partition, most);
    EXPECT_EQ(keys.size(), most);
    for (const Key key : ReadAll(*Open(partition->place()))) keys.push_back(key);
    EXPECT_THAT(keys, ElementsAre(1, 2, 3, 4)) << most;
  }
}

TEST_F(KafkaFeedTest, NeedsNoMessageAgainThatIsRead) {
  kafka_.MakeTopic("clicks", 1);
  Produce("1,1\n1,2\n\n");
  const auto partition = Open();
  EXPECT_EQ(ReadAll(*partition, 2).size(), 2u);
  EXPECT_EQ(partition->place(), R"({"offset":1,"row":0})");
}

TEST_F(KafkaFeedTest, ReadsNormFiles) {
  kafka_.MakeTopic("clicks", 1);
  NormOptions norm;
  norm.shape = options_.data.shape;
  norm.wide_keys = true;
  options_.open = [norm] { return ReadNormPayload(norm); };
  const std::string two = NormHeaderBytes(false, 2, 1, 0, 1) +
                          NormSampleBytes(true, {1}, {{7, 8}}) + NormSampleBytes(true, {0}, {{9}});
  Produce(two);
  Produce(two + "x");
  const auto partition = Open();
  EXPECT_THAT(ReadAll(*partition, 2), ElementsAre(7, 8, 9));
  EXPECT_EQ(partition->place(), R"({"offset":1,"row":0})");
  Produce("1,1");
  EXPECT_THAT(ErrorOf(*Open(R"({"offset":2,"row":0})")).message(), HasSubstr("clicks/0: offset 2"));
}

TEST_F(KafkaFeedTest, ReadsARangeAgain) {
  kafka_.MakeTopic("clicks", 1);
  for (const char* text : {"1,1\n1,2", "1,3\n1,4\n1,5", "1,6"}) Produce(text);
  const auto partition = Open();
  ReadAll(*partition, 1);
  partition->TakeRange();
  const std::string place = partition->place();
  ReadAll(*partition, 3);
  const std::string range = partition->TakeRange();
  Produce("1,7");
  const auto again = Open(place);
  SampleBlock block;
  block.Reset(1);
  const absl::Status read = again->ReadRange(range, &block);
  ASSERT_TRUE(read.ok()) << read;
  EXPECT_THAT(block.sparse[0].keys, ElementsAre(2, 3, 4));
  EXPECT_EQ(again->place(), partition->place());
  EXPECT_THAT(ReadAll(*again), ElementsAre(5, 6, 7));
}

TEST_F(KafkaFeedTest, NamesTheRowThatCannotBeRead) {
  kafka_.MakeTopic("clicks", 1);
  Produce("1,1");
  Produce("1,2\n1");
  EXPECT_THAT(ErrorOf(*Open()).message(), HasSubstr("clicks/0: offset 1: row 1: has 1 fields"));
  options_.skips = [](const std::string&, const absl::Status&) { return true; };
  Produce("7,3");
  Produce("{\"click\": 1}");
  Produce("maybe,5");
  Produce("{\"click\": 1, \"item\": 4");
  Produce("1,6");
  EXPECT_THAT(ReadAll(*Open()), testing::Contains(6));
  options_.skips = nullptr;
  const auto after = [&](int offset) {
    return std::string(
        ErrorOf(*Open(absl::StrCat("{\"offset\":", offset, ",\"row\":0}"))).message());
  };
  EXPECT_THAT(after(2), HasSubstr("clicks/0: offset 2: row 0: label 0 is 7"));
  EXPECT_THAT(after(4), HasSubstr("clicks/0: offset 4: row 0"));
  EXPECT_THAT(after(5), HasSubstr("clicks/0: offset 5: row 0"));
}

TEST_F(KafkaFeedTest, RefusesPlacesThatTheTopicDoesNotHold) {
  kafka_.MakeTopic("clicks", 1);
  Produce("1,1");
  for (const char* place : {"x", "{}", R"({"offset":-1,"row":0})", R"({"offset":0})"}) {
    EXPECT_TRUE(absl::IsDataLoss(Source()->Open(0, place).status())) << place;
  }
  EXPECT_THAT(Source()->Open(0, R"({"offset":0,"row":5})").status().message(),
              HasSubstr("fewer rows"));
  EXPECT_THAT(ErrorOf(*Open(R"({"offset":9,"row":0})")).message(),
              HasSubstr("offset 9: the topic does not hold it"));
}

// The mock cluster keeps 5 MiB of a partition.
TEST_F(KafkaFeedTest, SaysHowManyMessagesAreLost) {
  kafka_.MakeTopic("clicks", 1);
  const std::string many(500000, '\n');  // blank lines
  for (int i = 0; i < 20; ++i) Produce(absl::StrCat("1,", i) + many);
  const std::string place = R"({"offset":2,"row":0})";
  const absl::Status lost = Source()->Open(0, place).status();
  EXPECT_TRUE(absl::IsDataLoss(lost)) << lost;
  EXPECT_THAT(lost.message(),
              HasSubstr("clicks/0: the next message is at offset 2, but the oldest"));
  options_.skips_lost = true;
  const Keys keys = ReadAll(*Open(place));
  ASSERT_FALSE(keys.empty());
  EXPECT_GT(keys.front(), 2u);
  EXPECT_EQ(keys.back(), 19u);
  EXPECT_THAT(status_.TakeNotes(), ElementsAre(HasSubstr("offsets are lost")));
}

// The broker keeps about ten of these messages, and the reader asks for one at a time: those that
// follow it are deleted before it asks for them.
TEST_F(KafkaFeedTest, SkipsMessagesThatAreDeletedWhileItReads) {
  options_.properties = scratch_.Write(
      "properties",
      "queued.min.messages=1\nqueued.max.messages.kbytes=1\nfetch.message.max.bytes=1\n");
  kafka_.MakeTopic("clicks", 1);
  const std::string many(500000, '\n');  // blank lines
  for (const bool skips : {false, true}) {
    SCOPED_TRACE(skips);
    options_.skips_lost = skips;
    const std::string topic = skips ? "skipping" : "stopping";
    kafka_.MakeTopic(topic, 1);
    options_.source = absl::StrCat("kafka://", kafka_.brokers(), "/", topic);
    const auto produce = [&](int first, int count) {
      for (int i = 0; i < count; ++i) {
        kafka_.Produce(topic, 0, absl::StrCat("1,", first + i) + many);
        kafka_.Flush();
      }
    };
    produce(0, 2);
    const auto partition = Open();
    EXPECT_THAT(ReadAll(*partition, 1), ElementsAre(0));
    produce(2, 60);
    if (!skips) {
      absl::Status lost;
      while (lost.ok()) lost = ErrorOf(*partition);  // it may first say that the partition ends
      EXPECT_TRUE(absl::IsDataLoss(lost)) << lost;
      EXPECT_THAT(lost.message(), HasSubstr("on_lost=skip"));
      continue;
    }
    Keys keys;
    while (!HasFailure() && (keys.empty() || keys.back() < 61)) {
      const Keys more = ReadAll(*partition);
      keys.insert(keys.end(), more.begin(), more.end());
    }
    EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
    EXPECT_LT(keys.size(), 60u);
    EXPECT_EQ(keys.back(), 61u);
    EXPECT_THAT(status_.TakeNotes(), ElementsAre(HasSubstr("offsets are lost")));
  }
}

TEST_F(KafkaFeedTest, ReadsOnWhenTheBrokerComesBack) {
  kafka_.MakeTopic("clicks", 1);
  Produce("1,1");
  const auto partition = Open();
  EXPECT_THAT(ReadAll(*partition), ElementsAre(1));
  rd_kafka_mock_broker_set_down(kafka_.cluster(), 1);
  EXPECT_THAT(ReadAll(*partition), ElementsAre());
  rd_kafka_mock_broker_set_up(kafka_.cluster(), 1);
  Produce("1,2");
  Keys later;
  while (later.empty()) later = ReadAll(*partition);
  EXPECT_THAT(later, ElementsAre(2));
}

TEST_F(KafkaFeedTest, KnowsHowFarItIsBehind) {
  kafka_.MakeTopic("clicks", 1);
  for (int i = 0; i < 10; ++i) Produce("1,1");
  const auto partition = Open();
  ReadAll(*partition, 4);
  EXPECT_EQ(partition->lag().messages, 6u);
  EXPECT_TRUE(partition->lag().seconds.has_value());
  ReadAll(*partition);
  EXPECT_EQ(partition->lag(), FeedLag());
}

TEST_F(KafkaFeedTest, NamesPartitionsOfSeveralTopics) {
  kafka_.MakeTopic("clicks", 2);
  kafka_.MakeTopic("views", 1);
  options_.source += ",views,clicks";
  const auto source = Source();
  EXPECT_THAT(source->partitions(), ElementsAre("clicks/0", "clicks/1", "views/0"));
  EXPECT_THAT(source->identity(), HasSubstr("topics clicks,views"));
}

// The first `count` keys of a feed that ends where it is empty, by partition.
std::map<std::string, Keys> ReadKeys(Feed& feed, size_t count) {
  std::map<std::string, Keys> keys;
  while (count > 0) {
    const auto begun = feed.Begin(0, nullptr);
    EXPECT_TRUE(begun.ok()) << begun.status();
    if (!begun.ok()) break;
    if (!*begun) continue;  // they are on their way
    const auto json = nlohmann::json::parse(feed.slice());
    for (uint32_t i = 0; i < feed.streams(); ++i) {
      SampleBlock block;
      block.Reset(1);
      EXPECT_TRUE((*feed.Open(i))->Read(1000, &block).ok());
      Keys& of_partition = keys[json["partitions"][i]["name"]];
      const Keys& more = block.sparse[0].keys;
      of_partition.insert(of_partition.end(), more.begin(), more.end());
      count -= std::min(count, more.size());
    }
  }
  return keys;
}

TEST_F(KafkaFeedTest, ReadsPartitionsThatAreAdded) {
  kafka_.MakeTopic("clicks", 3);
  kafka_.MakeTopic("views", 1);
  options_.source += ",views";
  options_.look_seconds = 0.01;
  Produce("1,1");
  Produce("1,11\n1,12", 1);
  Produce("1,13", 1);
  Produce("1,21", 2);
  kafka_.Produce("views", 0, "1,31");
  kafka_.Flush();
  FeedOptions feed;
  feed.inputs = 1;
  feed.ends_when_empty = true;
  FeedSource* source = nullptr;
  const auto open = [&](const std::string& slice) {
    DataPlace start;
    start.slice = slice;
    auto owned = Source();
    source = owned.get();
    auto opened = Feed::Create(feed, std::move(owned), nullptr, &status_, &start);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *std::move(opened);
  };
  shown_partitions = 1;
  auto reader = open("");
  EXPECT_THAT(ReadKeys(*reader, 2),
              ElementsAre(Pair("clicks/0", ElementsAre(1)), Pair("views/0", ElementsAre(31))));
  shown_partitions = 2;
  while (source->PartitionsNow() != Counts{2, 1}) absl::SleepFor(absl::Milliseconds(5));
  Produce("1,2");
  EXPECT_THAT(ReadKeys(*reader, 4), ElementsAre(Pair("clicks/0", ElementsAre(2)),
                                                Pair("clicks/1", ElementsAre(11, 12, 13)),
                                                Pair("views/0", ElementsAre())));
  EXPECT_THAT(status_.TakeNotes(), ElementsAre(HasSubstr("clicks/1 is a new partition")));
  // The next process continues there, and reads the third partition from its first message.
  const std::string place = reader->next_slice();
  EXPECT_THAT(place, HasSubstr(R"({"name":"clicks/1","place":{"offset":2,"row":0}})"));
  shown_partitions = 1000;
  Produce("1,14", 1);
  reader = open(place);
  EXPECT_THAT(ReadKeys(*reader, 2),
              ElementsAre(Pair("clicks/0", ElementsAre()), Pair("clicks/1", ElementsAre(14)),
                          Pair("clicks/2", ElementsAre(21)), Pair("views/0", ElementsAre())));
}

TEST_F(KafkaFeedTest, KeepsItsPartitionsWhileTheBrokerIsAway) {
  kafka_.MakeTopic("clicks", 2);
  options_.look_seconds = 0.01;
  shown_partitions = 1;
  const auto source = Source();
  EXPECT_THAT(source->PartitionsNow(), ElementsAre(1));
  rd_kafka_mock_broker_set_down(kafka_.cluster(), 1);
  shown_partitions = 1000;
  EXPECT_THAT(source->PartitionsNow(), ElementsAre(1));
  rd_kafka_mock_broker_set_up(kafka_.cluster(), 1);
  while (source->PartitionsNow() != Counts{2}) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_THAT(source->partitions(), ElementsAre("clicks/0"));  // until they are used
  source->Use({2});
  EXPECT_THAT(source->partitions(), ElementsAre("clicks/0", "clicks/1"));
}

TEST_F(KafkaFeedTest, RefusesWrongSourcesAndProperties) {
  for (const char* source : {"kafka://", "kafka://host:1", "kafka://host:1/", "kafka:///clicks"}) {
    options_.source = source;
    EXPECT_THAT(OpenKafkaFeed(options_).status().message(), HasSubstr("write kafka://HOST"))
        << source;
  }
  options_.source = "kafka://" + kafka_.brokers() + "/clicks";
  const auto error = [&](const std::string& properties) {
    options_.properties = scratch_.Write("properties", properties);
    return std::string(OpenKafkaFeed(options_).status().message());
  };
  EXPECT_THAT(error("# x\n\nnonsense=1\n"), HasSubstr("line 3: property 'nonsense'"));
  EXPECT_THAT(error("security.protocol"), HasSubstr("line 1: write name=value"));
  EXPECT_THAT(error("enable.auto.commit=true"), HasSubstr("is always false"));
  const std::string secret = error("sasl.password=hunter2\nsasl.mechanism=hunter2\nacks=hunter2x");
  EXPECT_THAT(secret, testing::Not(HasSubstr("hunter2")));
  options_.properties = scratch_.Path("none");
  EXPECT_THAT(OpenKafkaFeed(options_).status().message(), HasSubstr("cannot be read"));
  options_.properties.clear();
  options_.source = "kafka://127.0.0.1:1/clicks";
  options_.connect_seconds = 0.2;
  EXPECT_TRUE(absl::IsUnavailable(OpenKafkaFeed(options_).status()));
}

// Random histories: messages of several rows arrive, readers stop at any row.
TEST_F(KafkaFeedTest, ReadsEverySampleOnceInRandomHistories) {
  kafka_.MakeTopic("clicks", 1);
  std::mt19937 random(3);
  Keys written, read;
  std::string place;
  for (int life = 0; life < 12; ++life) {
    for (size_t n = random() % 5; n > 0; --n) {
      std::string text;
      for (size_t k = random() % 4; k > 0; --k) {
        written.push_back(written.size() + 1);
        text += absl::StrCat("1,", written.back(), "\n");
      }
      Produce(text);
    }
    const auto partition = Open(place);
    for (const Key key : ReadAll(*partition, random() % 12)) read.push_back(key);
    place = partition->place();
  }
  for (const Key key : ReadAll(*Open(place))) read.push_back(key);
  EXPECT_EQ(read, written);
}

}  // namespace
}  // namespace cistern::data
