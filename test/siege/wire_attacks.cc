// Attacks below the level of calls: silent connections, random bytes, partial prefaces, and every
// HTTP/2 frame with impossible lengths and streams. An attack is repelled if other clients are
// answered while its connection is open.
#include <random>

#include "absl/strings/str_cat.h"
#include "test/siege/attacks.h"
#include "test/siege/wire.h"

namespace cistern {
namespace {

constexpr size_t kOpenAtOnce = 64;

// Makes attacks on one server, and judges them.
class WireAttacker {
 public:
  WireAttacker(const Siege& siege, size_t rank)
      : siege_(siege), rank_(rank), port_(siege.port(rank)) {}

  // Sends `bytes` on a new connection, which stays open until kOpenAtOnce are open.
  void Send(const std::string& name, absl::string_view bytes) {
    open_.emplace_back(port_);
    open_.back().Send(bytes, absl::Seconds(1));
    names_.push_back(name);
    if (open_.size() == kOpenAtOnce) Judge();
  }
  // The same, then closes the sending side.
  void SendAndClose(const std::string& name, absl::string_view bytes) {
    Send(name, bytes);
    if (!open_.empty()) open_.back().CloseSending();
  }
  // Checks once, for all open attacks, whether another client is answered. If not, all of them
  // count as having got through.
  void Judge() {
    if (names_.empty()) return;
    for (Wire& wire : open_) wire.Receive(absl::Milliseconds(1));
    const bool lives = siege_.Answers(rank_);
    for (const std::string& name : names_) {
      siege_.report->Tried("tcp and http/2" + siege_.where, name, lives,
                           absl::StrCat("to server ", rank_), "Hello is not answered");
    }
    names_.clear();
    open_.clear();
  }
  ~WireAttacker() { Judge(); }

 private:
  const Siege& siege_;
  const size_t rank_;
  const int port_;
  std::vector<Wire> open_;
  std::vector<std::string> names_;
};

void AttackTcp(WireAttacker& attacker) {
  for (int i = 0; i < 8; ++i) attacker.Send("silence", "");
  for (int i = 0; i < 8; ++i) attacker.SendAndClose("half-closed and silent", "");
  std::mt19937_64 random(1);
  for (int seed = 0; seed < 16; ++seed) {
    std::string bytes(1 << (seed % 16), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    attacker.Send(absl::StrCat(bytes.size(), " random bytes"), bytes);
  }
  const std::string preface = http2::Preface();
  for (size_t size = 1; size < preface.size(); ++size) {
    attacker.Send(absl::StrCat(size, " bytes of the preface"), preface.substr(0, size));
  }
  attacker.SendAndClose("preface, then half-closed", preface);
  attacker.Send("HTTP/1.1", "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  attacker.Send("HTTP/1.1 upgrade",
                "GET / HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n");
  attacker.Send("an HTTP/1.1 header of 1 MB", "GET / HTTP/1.1\r\nx: " + std::string(1 << 20, 'a'));
  attacker.Send("TLS", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) +
                           std::string(508, 'r'));
  attacker.Send("two prefaces", preface + preface);
}

void AttackFrameHeaders(WireAttacker& attacker) {
  const std::string preface = http2::Preface();
  for (const int type : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255}) {
    for (const uint32_t stream : {0u, 1u, 2u, 0x7fffffffu, 0xffffffffu}) {
      for (const uint32_t length : {0u, 1u, 4u, 16384u, 16385u, 0xffffffu}) {
        const std::string payload(std::min(length, 20000u), '\0');
        for (const int flags :
             length == 4 ? std::vector<int>{0, 5, 0x2d, 0xff} : std::vector<int>{5}) {
          attacker.Send(absl::StrCat("frame of type ", type, " on stream ", stream, ", length ",
                                     length, ", flags ", flags),
                        preface + http2::FrameSaying(length, static_cast<uint8_t>(type),
                                                     static_cast<uint8_t>(flags), stream, payload));
        }
      }
    }
  }
}

void AttackSettings(WireAttacker& attacker) {
  const std::string preface = http2::Preface();
  for (const uint16_t id : {1, 2, 3, 4, 5, 6, 0xfe03, 0xffff}) {
    for (const uint32_t value : {0u, 1u, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
      attacker.Send(absl::StrCat("setting ", id, " = ", value, ", then a call"),
                    preface + http2::FrameOf(http2::kSettings, 0, 0, http2::Setting(id, value)) +
                        http2::Call(1, kHello, ""));
    }
  }
  std::string many;
  for (int i = 0; i < 2000; ++i) many += http2::Setting(static_cast<uint16_t>(i), 7);
  attacker.Send("2,000 settings in a frame",
                preface + http2::FrameOf(http2::kSettings, 0, 0, many));
  for (const uint32_t by : {0u, 1u, 0x7fffffffu}) {
    for (const uint32_t stream : {0u, 1u, 99u}) {
      attacker.Send(absl::StrCat("window of stream ", stream, " grows by ", by, ", twice"),
                    preface + http2::Call(1, kHello, "", false) +
                        http2::FrameOf(http2::kWindowUpdate, 0, stream, http2::Number(by)) +
                        http2::FrameOf(http2::kWindowUpdate, 0, stream, http2::Number(by)));
    }
  }
}

// HPACK that is malformed or that expands enormously.
void AttackHeaders(WireAttacker& attacker) {
  const std::string preface = http2::Preface();
  const auto send = [&](const std::string& name, const std::string& block) {
    attacker.Send(name, preface + http2::FrameOf(http2::kHeaders, 5, 1, block));
  };
  send("an index that is not in the table", std::string(16, '\xff'));
  send("index 0", std::string(1, '\x80'));
  send("a length of 2^64", std::string("\x00\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 12));
  send("a table of 2^32 bytes", std::string("\x3f\xff\xff\xff\xff\x0f", 6));
  send("Huffman code that ends in a letter", std::string("\x00\x85\xff\xff\xff\xff\xff\x00", 8));
  send("no headers", "");
  send("a path without a method", http2::Header(":path", kHello));
  send("headers of capitals", http2::CallHeaders(kHello, {{"CAPITALS", "x"}}));
  send("a header with a NUL", http2::CallHeaders(kHello, {{"x", std::string("a\0b", 3)}}));
  send("an empty name", http2::CallHeaders(kHello, {{"", "x"}}));
  send("a path of 8 kB", http2::CallHeaders(std::string(8192, '/')));
  // One large header in the table, then one byte for each reference to it.
  std::string bomb = http2::CallHeaders(kHello);
  bomb += '\x40' + http2::Header("x", std::string(4000, 'b')).substr(1);
  bomb += std::string(10000, '\xbe');
  send("a header of 4 kB, 10,000 times", bomb);
}

}  // namespace

void AttackWire(const Siege& siege) {
  for (size_t rank = 0; rank < siege.fleet->servers.size(); ++rank) {
    WireAttacker attacker(siege, rank);
    AttackTcp(attacker);
    AttackSettings(attacker);
    AttackHeaders(attacker);
    if (rank == 0 || siege.is_long) AttackFrameHeaders(attacker);
  }
}

}  // namespace cistern
