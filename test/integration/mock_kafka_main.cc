// A broker of Kafka for stream_test.py: librdkafka's mock cluster in a process of its own.
//
//   mock-kafka clicks:2 views:1     topics and their numbers of partitions
//
// Prints "brokers=HOST:PORT". Each line of standard input, "TOPIC PARTITION FILE", becomes a
// message with the bytes of the file; "ok" is printed when the broker has it.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>

#include "test/worker/data/feed/mock_kafka.h"

int main(int argc, char** argv) {
  cistern::MockKafka kafka;
  // The one that kafka_proxy.py knows.
  constexpr int16_t kMetadata = 3, kVersion = 2;
  rd_kafka_mock_set_apiversion(kafka.cluster(), kMetadata, kVersion, kVersion);
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    const size_t colon = text.find(':');
    kafka.MakeTopic(text.substr(0, colon), std::stoi(text.substr(colon + 1)));
  }
  std::printf("brokers=%s\n", kafka.brokers().c_str());
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
}
