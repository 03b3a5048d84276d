// A broker of Kafka for the tests of streams: librdkafka's mock cluster in a process of its own, or
// a producer for a broker that exists.
//
//   mock-kafka clicks:2 views:1                          topics and their numbers of partitions
//   mock-kafka --brokers=HOST:PORT clicks:2 views:1      makes the topics there
//
// Prints "brokers=HOST:PORT". Each line of standard input, "TOPIC PARTITION FILE", becomes a
// message with the bytes of the file; "ok" is printed when the broker has it.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>

#include "test/worker/data/feed/mock_kafka.h"

namespace cistern {
namespace {

// A broker that exists. Ends the process where it fails.
class OwnKafka {
 public:
  explicit OwnKafka(const std::string& brokers) {
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    char why[256];
    rd_kafka_conf_set(conf, "bootstrap.servers", brokers.c_str(), why, sizeof(why));
    rd_kafka_conf_set(conf, "acks", "all", why, sizeof(why));
    rd_kafka_conf_set_dr_msg_cb(conf, [](rd_kafka_t*, const rd_kafka_message_t* message, void*) {
      Check(message->err, "produce");
    });
    producer_ = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
  }
  ~OwnKafka() { rd_kafka_destroy(producer_); }
  OwnKafka(const OwnKafka&) = delete;
  OwnKafka& operator=(const OwnKafka&) = delete;

  // A broker that cannot make topics on request, such as the mock cluster, makes them when they are
  // asked for, with a number of partitions of its own.
  void MakeTopic(const std::string& name, int partitions) {
    char why[256];
    rd_kafka_NewTopic_t* topic =
        rd_kafka_NewTopic_new(name.c_str(), partitions, /*replication_factor=*/1, why, sizeof(why));
    rd_kafka_queue_t* queue = rd_kafka_queue_new(producer_);
    rd_kafka_AdminOptions_t* options =
        rd_kafka_AdminOptions_new(producer_, RD_KAFKA_ADMIN_OP_CREATETOPICS);
    rd_kafka_AdminOptions_set_request_timeout(options, kMakeMilliseconds, why, sizeof(why));
    rd_kafka_CreateTopics(producer_, &topic, 1, options, queue);
    rd_kafka_event_t* event = rd_kafka_queue_poll(queue, /*timeout_ms=*/-1);
    rd_kafka_resp_err_t error = rd_kafka_event_error(event);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
      size_t count = 0;
      const auto topics =
          rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
      error = rd_kafka_topic_result_error(topics[0]);
    }
    const bool is_unable =
        error == RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE || error == RD_KAFKA_RESP_ERR__TIMED_OUT;
    if (!is_unable) Check(error, name.c_str());
    rd_kafka_event_destroy(event);
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_queue_destroy(queue);
    rd_kafka_NewTopic_destroy(topic);
    AwaitTopic(name);
  }
  void Produce(const std::string& topic, int partition, const std::string& text) {
    Check(rd_kafka_producev(producer_, RD_KAFKA_V_TOPIC(topic.c_str()),
                            RD_KAFKA_V_PARTITION(partition),
                            RD_KAFKA_V_VALUE(const_cast<char*>(text.data()), text.size()),
                            RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END),
          "produce");
  }
  void Flush() { Check(rd_kafka_flush(producer_, kTimeoutMilliseconds), "flush"); }

 private:
  static constexpr int kTimeoutMilliseconds = 30000, kMakeMilliseconds = 3000;

  static void Check(rd_kafka_resp_err_t error, const char* what) {
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return;
    std::fprintf(stderr, "mock-kafka: %s: %s\n", what, rd_kafka_err2str(error));
    std::exit(1);
  }
  // Until the broker has made the topic.
  void AwaitTopic(const std::string& name) {
    rd_kafka_topic_t* topic = rd_kafka_topic_new(producer_, name.c_str(), nullptr);
    for (int partitions = 0; partitions == 0;) {
      const rd_kafka_metadata_t* metadata = nullptr;
      Check(rd_kafka_metadata(producer_, /*all_topics=*/0, topic, &metadata, kTimeoutMilliseconds),
            name.c_str());
      partitions = metadata->topic_cnt == 1 ? metadata->topics[0].partition_cnt : 0;
      rd_kafka_metadata_destroy(metadata);
    }
    rd_kafka_topic_destroy(topic);
  }

  rd_kafka_t* producer_ = nullptr;
};

template <typename Kafka>
int Serve(Kafka& kafka, const std::string& brokers, char** topics) {
  for (; *topics != nullptr; ++topics) {
    const std::string text = *topics;
    const size_t colon = text.find(':');
    kafka.MakeTopic(text.substr(0, colon), std::stoi(text.substr(colon + 1)));
  }
  std::printf("brokers=%s\n", brokers.c_str());
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string topic, path;
    int partition = 0;
    words >> topic >> partition >> path;
    std::ifstream file(path, std::ios::binary);
    kafka.Produce(topic, partition, std::string(std::istreambuf_iterator<char>(file), {}));
    kafka.Flush();
    std::printf("ok\n");
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace cistern

int main(int argc, char** argv) {
  const std::string flag = "--brokers=";
  if (argc > 1 && std::string(argv[1]).starts_with(flag)) {
    const std::string brokers = std::string(argv[1]).substr(flag.size());
    cistern::OwnKafka kafka(brokers);
    return cistern::Serve(kafka, brokers, argv + 2);
  }
  cistern::data::MockKafka kafka;
  // The one that kafka_proxy.py knows.
  constexpr int16_t kMetadata = 3, kVersion = 2;
  rd_kafka_mock_set_apiversion(kafka.cluster(), kMetadata, kVersion, kVersion);
  return cistern::Serve(kafka, kafka.brokers(), argv + 1);
}
