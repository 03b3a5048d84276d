// Attacks that once worked, each by its name.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "test/siege/attacks.h"

namespace cistern {
namespace {

constexpr char kByName[] = "by name";

// A stranger whose requests are correct except for the secret.
class NamedAttacker {
 public:
  NamedAttacker(const Siege& siege, size_t rank)
      : siege_(siege), rank_(rank), stranger_(siege.address(rank)) {
    stranger_.Look().IgnoreError();
  }

  // Sends the request of `verb`, changed by `change`; returns the answer's text.
  template <class Request, class Change>
  std::string Try(const char* verb_name, const std::string& name, const Change& change) {
    stranger_.Look().IgnoreError();
    const Verb& verb = VerbOf(verb_name);
    const std::unique_ptr<google::protobuf::Message> message = stranger_.RequestOf(verb);
    auto& request = static_cast<Request&>(*message);
    change(request);
    return TryVerb(siege_, kByName, absl::StrCat(name, ", to server ", rank_), stranger_, verb,
                   request);
  }

  void AttackClaims() {
    using R = v1::ClaimEpochRequest;
    for (const uint64_t epoch : {~uint64_t{0}, ~uint64_t{0} - 1, k63, uint64_t{1} << 48}) {
      Try<R>("ClaimEpoch", absl::StrCat("a claim of term ", epoch),
             [&](R& r) { r.mutable_identity()->set_epoch(epoch); });
    }
    Try<R>("ClaimEpoch", "a claim while a writer is at work", [](R&) {});
    Try<R>("ClaimEpoch", "a claim that guesses the secret", [](R& r) {
      r.set_held_secret(1);
      r.mutable_identity()->set_secret(1);
    });
    Try<R>("ClaimEpoch", "a claim of the writer's own term",
           [](R& r) { r.mutable_identity()->set_epoch(r.identity().epoch() - 1); });
  }

  void AttackDecisions() {
    using R = v1::DecideRequest;
    Try<R>("Decide", "a manifest without files", [](R& r) { r.mutable_manifest()->clear_files(); });
    Try<R>("Decide", "a manifest of wrong sizes", [](R& r) {
      for (v1::RowFile& file : *r.mutable_manifest()->mutable_files()) {
        file.set_bytes(file.bytes() + 1);
      }
    });
    Try<R>("Decide", "a manifest of wrong rows", [](R& r) {
      for (v1::TableState& table : *r.mutable_manifest()->mutable_tables()) table.set_rows(k63);
    });
    Try<R>("Decide", "a manifest of another schema",
           [](R& r) { r.mutable_manifest()->mutable_schema()->clear_tables(); });
    Try<R>("Decide", "a manifest of commit 2^64 - 1",
           [](R& r) { r.mutable_manifest()->set_commit(~uint64_t{0}); });
    Try<R>("Decide", "a manifest of term 2^64 - 1",
           [](R& r) { r.mutable_manifest()->set_epoch(~uint64_t{0}); });
    Try<R>("Decide", "a manifest with a clock of 2^63",
           [](R& r) { r.mutable_manifest()->mutable_clock()->set_step(k63); });
  }

  // The refusal of a manifest that names a file must not reveal whether the file exists.
  void AttackAsOracle() {
    using R = v1::DecideRequest;
    const auto ask = [&](const std::string& path) {
      const std::string answer =
          Try<R>("Decide", absl::StrCat("a manifest that names ", path), [&](R& r) {
            if (r.manifest().files_size() == 0) r.mutable_manifest()->add_files();
            r.mutable_manifest()->mutable_files(0)->set_name(path);
          });
      return absl::StrReplaceAll(answer, {{path, "PATH"}});
    };
    for (const char* prefix : {"/etc/", "../../../../../../../../etc/"}) {
      const std::string there = ask(absl::StrCat(prefix, "passwd"));
      const std::string absent = ask(absl::StrCat(prefix, "no-such-file"));
      siege_.report->Tried(kByName, "a refusal does not reveal a file", there == absent, prefix,
                           absl::StrCat(there, " and ", absent));
    }
  }

  void AttackTheRest() {
    using Commit = v1::CommitPassRequest;
    Try<Commit>("CommitPass", "a clock of 2^63",
                [](Commit& r) { r.mutable_clock()->set_step(k63); });
    Try<Commit>("CommitPass", "a commit in memory only", [](Commit& r) { r.set_commit(0); });
    using Seal = v1::SealPassRequest;
    Try<Seal>("SealPass", "a seal of rank 9", [](Seal& r) { r.set_worker(9); });
    Try<Seal>("SealPass", "a seal of 2^64 - 1 pushes",
              [](Seal& r) { r.set_push_count(~uint64_t{0}); });
    using Clear = v1::ClearRequest;
    Try<Clear>("Clear", "a clear to pass 2^63", [](Clear& r) { r.set_pass(k63); });
    Try<Clear>("Clear", "a clear after 2^64 - 1 changes",
               [](Clear& r) { r.set_changes(~uint64_t{0}); });
    using Tables = v1::CreateTablesRequest;
    Try<Tables>("CreateTables", "tables of 2^63 + 1024 rows in addition to those of the training",
                [](Tables& r) {
                  v1::DenseTableSpec* table = r.mutable_schema()->add_dense_tables();
                  table->set_name("huge");
                  table->set_rows(k63 + 1024);
                  table->add_columns(std::string(1, 'w'));
                });
    using Load = v1::LoadRequest;
    Try<Load>("Load", "a load of a saved model into a training", [](Load&) {});
    for (const char* path : {"..", "../kept", "state", "/etc", "kept/../kept", "."}) {
      Try<Load>("Load", absl::StrCat("a load of ", path), [&](Load& r) { r.set_name(path); });
    }
  }

  // A save over a finished model, in place of every pass that it might hold.
  void AttackSavedModel() {
    using R = v1::SaveRequest;
    for (uint64_t pass = 0; pass < 8; ++pass) {
      const std::string answer =
          Try<R>("Save", absl::StrCat("a save in place of pass ", pass, " over a finished model"),
                 [&](R& r) {
                   r.set_name("kept");
                   r.set_instead_of_pass(pass);
                 });
      siege_.report->Tried(kByName, "a finished model is not replaced", answer != "OK",
                           absl::StrCat("instead_of_pass ", pass), answer);
    }
    for (const char* path : {"../out", "state", "/tmp/out", "a/b", "..", "kept"}) {
      const std::string answer =
          Try<R>("Save", absl::StrCat("a save as ", path), [&](R& r) { r.set_name(path); });
      siege_.report->Tried(kByName, absl::StrCat("no save as ", path), answer != "OK", path,
                           answer);
    }
  }

  // Pushes from workers that do not exist, into the open pass.
  void AttackPushes() {
    for (const FrameKind kind : {FrameKind::kPush, FrameKind::kPushDense}) {
      for (int i = 0; i < 40; ++i) {  // a pass is open only part of the time
        const uint32_t worker = std::vector<uint32_t>{0, 1, 9, ~0u}[static_cast<size_t>(i) % 4];
        stranger_.Look().IgnoreError();
        FrameHeader header = stranger_.HeaderOf(kind);
        header.worker = worker;
        const std::string body = stranger_.BodyOf(&header);
        Frame frame = StartFrame(header);
        frame.AppendBytes(body.data(), body.size());
        const absl::Status answer = CallData(stranger_.data(), kind, frame);
        siege_.report->Tried(kByName, absl::StrCat("a ", FrameKindName(kind), " of rank ", worker),
                             !answer.ok() && IsMeant(answer), absl::StrCat("pass ", header.pass),
                             answer.ToString());
      }
    }
  }

 private:
  const Siege& siege_;
  const size_t rank_;
  Stranger stranger_;
};

}  // namespace

void AttackByName(const Siege& siege) {
  for (size_t rank = 0; rank < siege.fleet->servers.size(); ++rank) {
    NamedAttacker attacker(siege, rank);
    attacker.AttackDecisions();
    attacker.AttackAsOracle();
    attacker.AttackTheRest();
    attacker.AttackSavedModel();
    attacker.AttackPushes();
    attacker.AttackClaims();
  }
}

std::vector<std::unique_ptr<Stranger>> TakeOver(const Siege& siege) {
  std::vector<std::unique_ptr<Stranger>> strangers;
  for (size_t rank = 0; rank < siege.fleet->servers.size(); ++rank) {
    strangers.push_back(std::make_unique<Stranger>(siege.address(rank)));
    Stranger& stranger = *strangers.back();
    stranger.Look().IgnoreError();
    const std::unique_ptr<google::protobuf::Message> request =
        stranger.RequestOf(VerbOf("ClaimEpoch"));
    auto& claim = static_cast<v1::ClaimEpochRequest&>(*request);
    claim.set_take_over(true);
    claim.mutable_identity()->set_secret(4711);
    const absl::Status answer = VerbOf("ClaimEpoch").Call(stranger.control(), claim);
    siege.report->Say(absl::StrCat("take-over of server ", rank, ": ", answer.ToString()));
  }
  return strangers;
}

}  // namespace cistern
