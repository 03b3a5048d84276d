// Brokers of Kafka in this process: librdkafka's mock cluster, and a producer for it.
#pragma once

#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <string>

namespace cistern::data {

// Threads: one at a time.
class MockKafka {
 public:
  MockKafka() {
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    char why[256];
    Set(conf, "test.mock.num.brokers", "1");
    Set(conf, "bootstrap.servers", "none");  // replaced by the mock cluster
    producer_ = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
    EXPECT_NE(producer_, nullptr) << why;
    cluster_ = rd_kafka_handle_mock_cluster(producer_);
  }
  ~MockKafka() { rd_kafka_destroy(producer_); }
  MockKafka(const MockKafka&) = delete;
  MockKafka& operator=(const MockKafka&) = delete;

  std::string brokers() const { return rd_kafka_mock_cluster_bootstraps(cluster_); }
  rd_kafka_mock_cluster_t* cluster() { return cluster_; }

  void MakeTopic(const std::string& topic, int partitions) {
    EXPECT_EQ(rd_kafka_mock_topic_create(cluster_, topic.c_str(), partitions, 1),
              RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  // Queues a message; Flush sends it.
  void Produce(const std::string& topic, int partition, const std::string& text) {
    EXPECT_EQ(rd_kafka_producev(producer_, RD_KAFKA_V_TOPIC(topic.c_str()),
                                RD_KAFKA_V_PARTITION(partition),
                                RD_KAFKA_V_VALUE(const_cast<char*>(text.data()), text.size()),
                                RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END),
              RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  void Flush() { EXPECT_EQ(rd_kafka_flush(producer_, 30000), RD_KAFKA_RESP_ERR_NO_ERROR); }

 private:
  static void Set(rd_kafka_conf_t* conf, const char* name, const char* value) {
    char why[256];
    EXPECT_EQ(rd_kafka_conf_set(conf, name, value, why, sizeof(why)), RD_KAFKA_CONF_OK) << why;
  }

  rd_kafka_t* producer_ = nullptr;
  rd_kafka_mock_cluster_t* cluster_ = nullptr;  // of producer_
};

}  // namespace cistern::data
