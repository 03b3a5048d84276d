// Serves FakePredictor for clients in other languages (tritonclient_test.py):
//
//   fake_serve [CERT KEY [CLIENT_CA]]
//
// Prints "HTTP_PORT GRPC_PORT", and ends when its standard input does.
#include <cstdio>

#include "serve/server/inference_server.h"
#include "test/serve/server/fake_predictor.h"

int main(int argc, char** argv) {
  cistern::serve::FakePredictor predictor;
  cistern::serve::InferenceServerOptions options;
  options.http_port = options.grpc_port = 0;
  options.threads = 2;
  if (argc > 2) options.tls = {argv[1], argv[2], argc > 3 ? argv[3] : ""};
  const auto server = cistern::serve::InferenceServer::Start(predictor, options);
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", server.status().ToString().c_str());
    return 1;
  }
  std::printf("%d %d\n", (*server)->http_port(), (*server)->grpc_port());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}
