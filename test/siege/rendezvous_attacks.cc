// Attacks on the rendezvous port of a run's workers. Most of them occur while worker 0 waits alone,
// some continue until both workers train. The final tables must equal those of an undisturbed run.

#include <atomic>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "test/siege/attacks.h"
#include "test/siege/wire.h"

namespace cistern {
namespace {

constexpr uint64_t kEpochs = 20;
constexpr absl::Duration kLimit = absl::Minutes(3);
constexpr char kRendezvous[] = "rendezvous";

template <class T>
std::string Bytes(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

// A hello in the layout of worker/group/hello.h.
std::string HelloOf(uint64_t secret, uint32_t rank, uint32_t size, uint32_t port) {
  return "CISTPEE2" + Bytes(secret) + Bytes(rank) + Bytes(size) + Bytes(port);
}

// The hello of versions without a secret, which anyone can forge.
std::string OldHelloOf(int32_t rank, int32_t size) {
  std::string run = "cistern train";
  run.resize(64, '\0');
  return "CISTPEER" + Bytes(rank) + Bytes(size) + Bytes(uint32_t{1}) + run;
}

struct Knock {
  std::string name, bytes;
};

std::vector<Knock> Knocks(bool is_long) {
  std::vector<Knock> all;
  for (const uint64_t secret : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
    for (const uint32_t rank : {0u, 1u, 2u, 0x80000000u, ~0u}) {
      for (const uint32_t size : {0u, 1u, 2u, 3u, 0x80000000u, ~0u}) {
        all.push_back({absl::StrCat("a hello with secret ", secret, ", rank ", rank, " of ", size),
                       HelloOf(secret, rank, size, rank == 1 ? 0x10000 : 1)});
      }
    }
  }
  const std::string hello = HelloOf(4711, 1, 2, 1);
  for (size_t bytes = 0; bytes < hello.size(); bytes += 3) {
    all.push_back({absl::StrCat(bytes, " bytes of a hello"), hello.substr(0, bytes)});
  }
  all.push_back({"a hello and 2^62 bytes announced", hello + Bytes(uint64_t{1} << 62)});
  all.push_back({"a hello and 1 MB", hello + std::string(1 << 20, 'x')});
  for (const int32_t rank : {0, 1, 2, -1}) {
    for (const int32_t size : {2, 3, 0, -1}) {
      all.push_back(
          {absl::StrCat("an old hello, rank ", rank, " of ", size), OldHelloOf(rank, size)});
    }
  }
  all.push_back({"HTTP", "GET / HTTP/1.1\r\n\r\n"});
  all.push_back({"HTTP/2", http2::Preface()});
  std::mt19937_64 random(3);
  for (int seed = 0; seed < (is_long ? 2000 : 50); ++seed) {
    std::string bytes(random() % 200, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    all.push_back({absl::StrCat("random bytes, seed ", seed), bytes});
  }
  return all;
}

// Two workers with their own server.
class Rendezvous {
 public:
  Rendezvous(const Siege& siege, const std::string& name) : siege_(siege), port_(FreePort()) {
    SiegeServer::Options options;
    options.programs = siege.programs;
    options.log = absl::StrCat(siege.folder, "/", name, "-server.log");
    options.data_dir = absl::StrCat(siege.folder, "/", name, "-data");
    absl::StatusOr<std::unique_ptr<SiegeServer>> server = SiegeServer::Start(options);
    if (server.ok()) server_ = *std::move(server);
    training_.programs = siege.programs;
    training_.folder = siege.folder;
    training_.name = name;
    training_.epochs = kEpochs;
    training_.workers = 2;
    training_.peers = absl::StrCat("127.0.0.1:", port_);
    training_.flags = {"--no-save-model"};
    if (server_ != nullptr) training_.servers = server_->address();
  }

  int port() const { return port_; }
  bool started() const { return server_ != nullptr; }
  const std::string& peers() const { return training_.peers; }
  SiegeServer& server() { return *server_; }

  absl::StatusOr<std::unique_ptr<Training>> Start(int rank) {
    Training::Options options = training_;
    options.only_rank = rank;
    return Training::Start(options);
  }

 private:
  const Siege& siege_;
  const int port_;
  std::unique_ptr<SiegeServer> server_;
  Training::Options training_;
};

bool AwaitListener(int port, Training& worker) {
  const absl::Time end = absl::Now() + absl::Seconds(30);
  while (absl::Now() < end && worker.Running()) {
    if (Wire(port).connected()) return true;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return false;
}

// A stranger replaces the secret that worker 0 has stored on the server.
void LeaveFalseSecret(Rendezvous& meeting) {
  Stranger stranger(meeting.server().address());
  if (!stranger.Look().ok()) return;
  v1::MeetRequest request;
  *request.mutable_identity() = stranger.hello().identity();
  request.set_address(meeting.peers());
  request.set_secret(4711);
  VerbOf("Meet").Call(stranger.control(), request).IgnoreError();
}

absl::StatusOr<FleetDigests> Undisturbed(const Siege& siege) {
  Rendezvous meeting(siege, "two-undisturbed");
  if (!meeting.started()) return absl::InternalError("the server does not start");
  CISTERN_ASSIGN_OR_RETURN(const auto workers, meeting.Start(-1));
  CISTERN_RETURN_IF_ERROR(workers->Finish(kLimit));
  return DigestsOf(meeting.server().address());
}

// Sends each knock separately while worker 0 waits; false once worker 0 has ended.
bool KnockOneByOne(const Siege& siege, Rendezvous& meeting, Training& leader) {
  std::vector<Wire> silent;
  for (const Knock& knock : Knocks(siege.is_long)) {
    Wire wire(meeting.port());
    const bool open = wire.connected();
    wire.Send(knock.bytes, absl::Milliseconds(100));
    wire.CloseSending();
    wire.Receive(absl::Milliseconds(1));
    siege.report->Tried(kRendezvous, knock.name, open && leader.Running(), meeting.peers(),
                        open ? "worker 0 has ended" : "no process listens");
    if (silent.size() < 100) silent.emplace_back(meeting.port());
    if (!leader.Running()) return false;
  }
  LeaveFalseSecret(meeting);
  return true;
}

absl::StatusOr<FleetDigests> Besieged(const Siege& siege) {
  Rendezvous meeting(siege, "two-besieged");
  if (!meeting.started()) return absl::InternalError("the server does not start");
  CISTERN_ASSIGN_OR_RETURN(auto leader, meeting.Start(0));
  if (!AwaitListener(meeting.port(), *leader)) {
    return absl::InternalError("worker 0 does not listen");
  }
  if (!KnockOneByOne(siege, meeting, *leader)) {
    // Further attacks would be pointless: this run has failed.
    return leader->Finish(absl::Seconds(1));
  }
  std::atomic<bool> over{false};
  std::thread hammer([&] {
    const std::vector<Knock> knocks = Knocks(false);
    for (size_t i = 0; !over; ++i) {
      Wire(meeting.port()).Send(knocks[i % knocks.size()].bytes, absl::Milliseconds(50));
      if (i % 100 == 0) LeaveFalseSecret(meeting);
      absl::SleepFor(absl::Milliseconds(1));
    }
  });
  absl::StatusOr<std::unique_ptr<Training>> follower = meeting.Start(1);
  absl::Status ended = follower.ok() ? leader->Finish(kLimit) : follower.status();
  if (ended.ok()) ended = (*follower)->Finish(kLimit);
  over = true;
  hammer.join();
  CISTERN_RETURN_IF_ERROR(ended);
  return DigestsOf(meeting.server().address());
}

}  // namespace

void AttackRendezvous(const Siege& siege) {
  const absl::StatusOr<FleetDigests> expected = Undisturbed(siege);
  siege.report->Expect(expected.ok(),
                       absl::StrCat("two workers train: ", expected.status().ToString()));
  const absl::StatusOr<FleetDigests> found = Besieged(siege);
  siege.report->Tried(kRendezvous, "two workers train among strangers", found.ok(), "",
                      found.status().ToString());
  if (!expected.ok() || !found.ok()) return;
  siege.report->Tried(kRendezvous, "the tables equal those of an undisturbed run",
                      *found == *expected, DigestText(*expected), DigestText(*found));
}

}  // namespace cistern
