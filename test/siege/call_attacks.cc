// Floods and malformed calls, which cost a server memory and time. Each sends at most a few hundred
// MB, or until the server closes.
#include <zlib.h>

#include <functional>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "test/siege/attacks.h"
#include "test/siege/wire.h"

namespace cistern {
namespace {

// Sends `first` on a new connection, then `piece` repeatedly until `bytes` are sent, `limit` has
// passed, or the server closes or accepts no more bytes.
void Flood(int port, const std::string& first, const std::string& piece, uint64_t bytes,
           absl::Duration limit, bool drain = true) {
  Wire wire(port);
  const absl::Time end = absl::Now() + limit;
  bool going = wire.Send(first, absl::Seconds(1), drain);
  for (uint64_t sent = 0; going && sent < bytes && absl::Now() < end; sent += piece.size()) {
    going = wire.Send(piece, absl::Milliseconds(300), drain);
  }
}

std::string Repeated(const std::string& piece, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += piece;
  return all;
}

// A gzip stream of about 1 MB that inflates to 1 GB: one block of zeros that ends in a full flush
// and can therefore be repeated.
std::string GzipBomb() {
  z_stream stream = {};
  if (deflateInit2(&stream, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY) != Z_OK) return "";
  std::string zeros(1 << 20, '\0'), block(1 << 14, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(zeros.data());
  stream.avail_in = static_cast<uInt>(zeros.size());
  stream.next_out = reinterpret_cast<Bytef*>(block.data());
  stream.avail_out = static_cast<uInt>(block.size());
  deflate(&stream, Z_FULL_FLUSH);
  block.resize(block.size() - stream.avail_out);
  deflateEnd(&stream);
  const std::string header("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10);
  return header + Repeated(block, 1024) + std::string("\x03\0", 2) + std::string(8, '\0');
}

struct Flooding {
  std::string name;
  std::function<void(int port)> attack;
};

std::string DataFrames(uint32_t stream, absl::string_view bytes) {
  std::string frames;
  while (!bytes.empty()) {
    frames += http2::FrameOf(http2::kData, 0, stream, bytes.substr(0, 16384));
    bytes.remove_prefix(std::min<size_t>(16384, bytes.size()));
  }
  return frames;
}

// Sends calls whose message declares `length` bytes, on streams 1, 3, 5 ..., followed by bytes.
void Declare(int port, const std::string& path, uint32_t length, uint32_t streams, uint64_t bytes) {
  std::string first = http2::Preface(), piece;
  for (uint32_t i = 0; i < streams; ++i) {
    first +=
        http2::FrameOf(http2::kHeaders, http2::kEndHeaders, 2 * i + 1, http2::CallHeaders(path)) +
        http2::FrameOf(http2::kData, 0, 2 * i + 1, http2::MessagePrefix(length));
    piece += DataFrames(2 * i + 1, std::string(65536, 'd'));
  }
  Flood(port, first, piece, bytes, absl::Seconds(3));
}

std::vector<Flooding> Floodings(const Siege& siege) {
  const bool is_long = siege.is_long;
  const auto& [hello, stats, small, large] = siege.methods;
  const uint64_t mb = uint64_t{1} << 20, most = (is_long ? 2000 : 200) * mb;
  const absl::Duration limit = absl::Seconds(is_long ? 20 : 2);
  const std::string preface = http2::Preface();
  const auto flood = [=](const std::string& first, const std::string& piece, bool drain = true) {
    return [=](int port) { Flood(port, first, piece, most, limit, drain); };
  };
  const std::string open =
      http2::FrameOf(http2::kHeaders, 0, 1, http2::CallHeaders(hello));  // no END_HEADERS
  const std::string settings =
      Repeated(http2::FrameOf(http2::kSettings, 0, 0, http2::Setting(4, 65535)), 5000);
  const std::string pings = Repeated(http2::FrameOf(http2::kPing, 0, 0, "12345678"), 5000);
  const std::string greeting = preface + http2::FrameOf(http2::kSettings, http2::kAck, 0, "");
  // Puts "x: y" into the header table; then each byte is a header of its own.
  const std::string reference =
      http2::FrameOf(http2::kHeaders, 0, 1, http2::CallHeaders(hello) + "\x40\x01x\x01y");
  const std::string references =
      http2::FrameOf(http2::kContinuation, 0, 1, std::string(16000, '\xbe'));
  std::string resets, calls, lost;
  for (uint32_t i = 0; i < 20000; ++i) {
    lost += http2::FrameOf(http2::kHeaders, http2::kEndHeaders | http2::kEndStream, 2 * i + 1,
                           http2::CallHeaders("/nothing"));
    const std::string call = http2::Call(2 * i + 1, stats, "", false);
    resets += call + http2::FrameOf(http2::kRstStream, 0, 2 * i + 1, http2::Number(8));
    if (i < 5000) calls += http2::Call(2 * i + 1, stats, "");
  }
  std::vector<Flooding> all = {
      {"CONTINUATION flood",
       flood(preface + open, Repeated(http2::FrameOf(http2::kContinuation, 0, 1,
                                                     http2::Header("x", std::string(16000, 'c'))),
                                      8))},
      {"CONTINUATION flood of empty frames",
       flood(preface + open, Repeated(http2::FrameOf(http2::kContinuation, 0, 1, ""), 10000))},
      {"headers of 16 MB in one call",
       flood(preface + open,
             Repeated(http2::FrameOf(http2::kContinuation, 0, 1,
                                     Repeated(http2::Header("x", "y"), 3000)),
                      8))},
      {"headers of one-byte references, settings ignored",
       flood(preface + reference, Repeated(references, 8))},
      {"headers of one-byte references", flood(greeting + reference, Repeated(references, 8))},
      {"headers of one-byte references, nothing read",
       flood(greeting + reference, Repeated(references, 8), false)},
      {"20,000 calls to nothing, settings ignored",
       [=](int port) { Flood(port, preface, lost, 1, limit); }},
      {"20,000 calls to nothing", [=](int port) { Flood(port, greeting, lost, 1, limit); }},
      {"rapid reset of 20,000 calls on 40 connections",
       [=](int port) {
         std::vector<std::thread> threads;
         for (int i = 0; i < 40; ++i) {
           threads.emplace_back([&] { Flood(port, greeting, resets, 1, limit); });
         }
         for (std::thread& thread : threads) thread.join();
       }},
      {"SETTINGS flood, nothing read",
       flood(preface, settings, false)},
      {"SETTINGS flood", flood(preface, settings)},
      {"PING flood, nothing read", flood(preface, pings, false)},
      {"PING flood", flood(preface, pings)},
      {"PRIORITY flood",
       flood(preface, Repeated(http2::FrameOf(http2::kPriority, 0, 1, "\0\0\0\3\7"), 5000))},
      {"empty DATA flood",
       flood(preface + http2::Call(1, small, "", false),
             Repeated(http2::FrameOf(http2::kData, 0, 1, ""), 5000))},
      {"rapid reset of 20,000 calls", [=](int port) { Flood(port, preface, resets, 1, limit); }},
      {"5,000 calls whose replies are never read",
       [=](int port) {
         Flood(port, preface + http2::FrameOf(http2::kSettings, 0, 0, http2::Setting(4, 0)), calls,
               1, limit, false);
       }},
      {"a message of 2 GB", [=](int port) { Declare(port, small, 0x7fffffff, 1, most); }},
      {"a push of 2 GB", [=](int port) { Declare(port, large, 0x7fffffff, 1, most); }},
      {"a message of 4 GB", [=](int port) { Declare(port, hello, 0xffffffff, 1, most); }},
      {"100 messages of 200 MB", [=](int port) { Declare(port, large, 200 << 20, 100, most); }},
      {"100 messages of 4 MB that do not end",
       [=](int port) { Declare(port, small, (4 << 20) - 1, 100, most); }},
  };
  const std::string bomb = GzipBomb();
  for (const std::string& path : {small, large, hello}) {
    for (const char* encoding : {"gzip", "deflate", "identity", "br"}) {
      std::string call = preface;
      call += http2::FrameOf(http2::kHeaders, http2::kEndHeaders, 1,
                             http2::CallHeaders(path, {{"grpc-encoding", encoding}}));
      call += DataFrames(1, http2::MessagePrefix(static_cast<uint32_t>(bomb.size()), true) + bomb);
      call += http2::FrameOf(http2::kData, http2::kEndStream, 1, "");
      all.push_back({absl::StrCat("a gzip bomb to ", path, " as ", encoding), [=](int port) {
                       Wire wire(port);
                       wire.Send(call, limit);
                       wire.Receive(absl::Milliseconds(500));
                     }});
    }
  }
  return all;
}

// Complete but meaningless calls, in sequence.
void AttackCallForms(const Siege& siege, size_t rank) {
  const int port = siege.port(rank);
  const auto send = [&](const std::string& name, const std::string& headers,
                        const std::string& data) {
    Wire wire(port);
    wire.Send(http2::Preface() + http2::FrameOf(http2::kHeaders, http2::kEndHeaders, 1, headers) +
              http2::FrameOf(http2::kData, http2::kEndStream, 1, data));
    wire.Receive(absl::Milliseconds(5));
    siege.report->Tried("calls" + siege.where, name, siege.Answers(rank),
                        absl::StrCat("to server ", rank), "Hello is not answered");
  };
  for (const char* path :
       {"", "/", "*", "/cistern.v1.ControlPlane/", "/cistern.v1.ControlPlane/Nothing", "//Hello",
        "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch", "/../../etc/passwd",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}) {
    send(absl::StrCat("path '", path, "'"), http2::CallHeaders(path), http2::MessagePrefix(0));
  }
  for (const char* timeout :
       {"0n", "1n", "-1S", "99999999H", "999999999999S", "S", "1", "1m\r\n"}) {
    send(absl::StrCat("grpc-timeout ", timeout),
         http2::CallHeaders(siege.methods.stats, {{"grpc-timeout", timeout}}),
         http2::MessagePrefix(0));
  }
  for (const char* type : {"", "text/html", "application/grpc+json", "application/grpc-web"}) {
    send(absl::StrCat("content-type '", type, "'"),
         http2::CallHeaders(siege.methods.stats, {{"content-type", type}}),
         http2::MessagePrefix(0));
  }
  std::mt19937_64 random(7);
  for (int seed = 0; seed < (siege.is_long ? 1000 : 30); ++seed) {
    std::string message(1 + random() % 200, '\0');
    for (char& byte : message) byte = static_cast<char>(random());
    const Verb& verb = Verbs()[random() % Verbs().size()];
    send(absl::StrCat("random message to ", verb.name, ", seed ", seed),
         http2::CallHeaders("/cistern.v1.ControlPlane/" + verb.name),
         http2::MessagePrefix(static_cast<uint32_t>(message.size())) + message);
  }
  for (const std::string& path : {siege.methods.hello, siege.methods.large, siege.methods.small}) {
    send(absl::StrCat("no message to ", path), http2::CallHeaders(path), "");
    send(absl::StrCat("two messages to ", path), http2::CallHeaders(path),
         http2::MessagePrefix(0) + http2::MessagePrefix(0));
    send(absl::StrCat("half a prefix to ", path), http2::CallHeaders(path), "\1\1");
    send(absl::StrCat("less than declared to ", path), http2::CallHeaders(path),
         http2::MessagePrefix(100) + "x");
  }
}

// Short-lived and silent connections, and a call sent byte by byte.
void AttackConnections(const Siege& siege, size_t rank) {
  const int port = siege.port(rank);
  const auto judge = [&](const std::string& name) {
    siege.report->Tried("calls" + siege.where, name, siege.Answers(rank),
                        absl::StrCat("to server ", rank), "Hello is not answered");
  };
  for (int i = 0; i < 300; ++i) {
    Wire wire(port);
    wire.Send(http2::Preface() + http2::Call(1, siege.methods.stats, ""));
    wire.Reset();
  }
  judge("300 connections that end during their call");
  {
    std::vector<Wire> open;
    // Handshakes of 2,000 would take longer than kPatience.
    const int count = siege.is_long && siege.doors.empty() ? 2000 : 600;
    for (int i = 0; i < count; ++i) open.emplace_back(port);
    judge("hundreds of silent connections");
  }
  Wire slow(port);
  const std::string call = http2::Preface() + http2::Call(1, siege.methods.hello, "");
  for (const char byte : call) slow.Send(absl::string_view(&byte, 1));
  judge("a call in single bytes");
}

}  // namespace

void AttackCalls(const Siege& siege) {
  const std::vector<Flooding> floodings = Floodings(siege);
  for (size_t rank = 0; rank < siege.fleet->servers.size(); ++rank) {
    AttackCallForms(siege, rank);
    AttackConnections(siege, rank);
    for (const Flooding& flooding : floodings) {
      if (!siege.is_long &&
          (&flooding - floodings.data()) % 2 != static_cast<ptrdiff_t>(rank % 2)) {
        continue;  // short form: each server gets every other flood
      }
      flooding.attack(siege.port(rank));
      const ProcessUse use = siege.fleet->servers[rank]->Use();
      siege.report->Tried(
          "calls" + siege.where, flooding.name, siege.Answers(rank),
          absl::StrCat("to server ", rank),
          absl::StrCat("Hello is not answered; peak memory ", use.peak_bytes >> 20, " MB"));
    }
  }
}

}  // namespace cistern
