#include "worker/client/connect.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "common/base/hash.h"
#include "common/base/thread_pool.h"
#include "common/value/schema.h"
#include "worker/client/backoff.h"

namespace cistern {
namespace {

struct Answer {
  ServerLink link;
  absl::Status status;
  v1::HelloReply hello;
};

void SayHello(Answer& answer, const ClientOptions& options, uint64_t secret, uint32_t seed) {
  v1::HelloRequest request;
  request.mutable_identity()->set_secret(secret);
  request.set_client(absl::StrCat("worker ", options.worker));
  answer.status = WithRetry(options.retry_limit, seed,
                            [&] { return answer.link.control->Hello(request, &answer.hello); });
}

std::vector<Answer> SayHelloToAll(const std::vector<ServerLink>& servers,
                                  const ClientOptions& options, uint64_t secret) {
  std::vector<Answer> answers(servers.size());
  for (size_t i = 0; i < servers.size(); ++i) answers[i].link = servers[i];
  if (servers.size() == 1) {
    SayHello(answers[0], options, secret, 0);
  } else {
    ThreadPool pool(static_cast<int>(servers.size()));
    pool.ParallelFor(servers.size(), [&](size_t i) {
      SayHello(answers[i], options, secret, static_cast<uint32_t>(i));
    });
  }
  return answers;
}

// OK if all servers answered; else an error with the name and the reason of each that did not.
absl::Status AllAnswered(const std::vector<Answer>& answers) {
  absl::StatusCode code = absl::StatusCode::kOk;
  std::vector<std::string> silent;
  for (const Answer& answer : answers) {
    if (answer.status.ok()) continue;
    if (silent.empty()) code = answer.status.code();
    silent.push_back(absl::StrCat("server ", answer.link.name, ": ", answer.status.message()));
  }
  if (silent.empty()) return absl::OkStatus();
  return absl::Status(
      code, absl::StrCat(absl::StrJoin(silent, "; "), " (is cistern-server running there?)"));
}

absl::Status Disagree(const std::string& message) {
  return absl::FailedPreconditionError(message);
}

// Checks the cluster, the number of servers and shard_num that each server reports.
absl::Status CheckMembership(const std::vector<Answer>& answers, const std::string& cluster) {
  for (const Answer& answer : answers) {
    const v1::HelloReply& hello = answer.hello;
    if (hello.identity().cluster_id() != HashBytes(cluster)) {
      return Disagree(absl::StrCat("server ", answer.link.name, " belongs to cluster '",
                                   hello.cluster(), "', this client to '", cluster,
                                   "': pass that cluster, or the addresses of other servers"));
    }
    if (hello.server_num() != answers.size()) {
      return Disagree(absl::StrCat("server ", answer.link.name, " is one of ", hello.server_num(),
                                   " servers, but ", answers.size(),
                                   answers.size() == 1 ? " was" : " were",
                                   " given: list all servers of the fleet"));
    }
    if (hello.shard_num() != answers[0].hello.shard_num()) {
      return WithOptions(Disagree(absl::StrCat("server ", answer.link.name, " has shard_num ",
                                               hello.shard_num(), ", server ", answers[0].link.name,
                                               " has ", answers[0].hello.shard_num(),
                                               ": start all servers with the same shard_num")),
                         {"cistern-server.shard_num"});
    }
  }
  return absl::OkStatus();
}

// Sorts by rank and checks that the ranks are 0 to n - 1: all are below n, and none occurs twice.
absl::Status SortByRank(std::vector<Answer>& answers) {
  std::sort(answers.begin(), answers.end(),
            [](const Answer& a, const Answer& b) { return a.hello.rank() < b.hello.rank(); });
  for (size_t i = 0; i < answers.size(); ++i) {
    if (i > 0 && answers[i].hello.rank() == answers[i - 1].hello.rank()) {
      return WithOptions(
          Disagree(absl::StrCat("servers ", answers[i - 1].link.name, " and ", answers[i].link.name,
                                " both have rank ", answers[i].hello.rank(),
                                ": start each with a rank of its own, 0 to ", answers.size() - 1,
                                ", and list each server once")),
          {"cistern-server.rank"});
    }
    if (answers[i].hello.rank() >= answers.size()) {
      return Disagree(absl::StrCat("server ", answers[i].link.name, " has rank ",
                                   answers[i].hello.rank(), " of ", answers.size(),
                                   ": ranks are 0 to ", answers.size() - 1));
    }
  }
  return absl::OkStatus();
}

std::string StateOf(const Answer& answer) {
  const bool empty = SchemaHash(answer.hello.schema()) == 0;
  return absl::StrCat("server ", answer.hello.rank(), " (", answer.link.name, ") ",
                      empty ? "has no tables" : "has tables", " and is at pass ",
                      answer.hello.committed_pass());
}

// Checks that all servers have the same kind of state, and that server 0 of local states has all
// commits that another has.
absl::Status CheckLocalState(std::vector<Answer>& answers, const ClientOptions& options,
                             uint64_t secret) {
  v1::HelloReply& first = answers[0].hello;
  bool ahead = false;
  for (const Answer& answer : answers) {
    const v1::HelloReply& hello = answer.hello;
    if (hello.local_state() != first.local_state()) {
      return WithOptions(
          Disagree(absl::StrCat("server ", hello.rank(), " (", answer.link.name, ") ",
                                hello.local_state() ? "has a state of its own" : "shares its state",
                                ", unlike server 0: start all servers alike")),
          {"cistern-server.local_state"});
    }
    ahead |= hello.newest_manifest() > first.newest_manifest();
  }
  if (!first.local_state() || !ahead) return absl::OkStatus();
  // Server 0 may have decided that commit since it answered.
  SayHello(answers[0], options, secret, 0);
  CISTERN_RETURN_IF_ERROR(answers[0].status);
  for (const Answer& answer : answers) {
    const uint64_t theirs = answer.hello.newest_manifest(), mine = first.newest_manifest();
    if (theirs <= mine) continue;
    return Disagree(absl::StrCat(
        "server ", answer.hello.rank(), " (", answer.link.name, ") has commit ", theirs,
        ", but the newest of server 0 (", answers[0].link.name, ") is ", mine,
        ": the folder of server 0 was emptied or is an older copy; restore it: cistern ckpt pull, "
        "or cistern ckpt adopt-manifest"));
  }
  return absl::OkStatus();
}

// Checks that tables and committed pass agree. A restarted server has neither, unless commits are
// durable: then it has those of the newest commit, and a claim brings all servers to one state.
absl::Status CheckState(const std::vector<Answer>& answers) {
  for (const Answer& answer : answers) {
    const v1::HelloReply &first = answers[0].hello, &hello = answer.hello;
    if (hello.durable() != first.durable()) {
      return WithOptions(
          Disagree(absl::StrCat(
              "server ", hello.rank(), " (", answer.link.name, ") ",
              hello.durable() ? "keeps its commits on disk" : "keeps its commits in memory only",
              ", unlike server 0: start all servers with the same durability")),
          {"cistern-server.durability"});
    }
    if (hello.durable()) continue;
    const bool empty = SchemaHash(hello.schema()) == 0,
               first_empty = SchemaHash(first.schema()) == 0;
    if (empty != first_empty && std::max(hello.committed_pass(), first.committed_pass()) > 0) {
      return Disagree(absl::StrCat(
          StateOf(answers[0]), ", ", StateOf(answer),
          ": the server without tables was restarted and has lost its state; restart all servers "
          "and load a saved model"));
    }
    if (!empty && !first_empty && SchemaHash(hello.schema()) != SchemaHash(first.schema())) {
      return Disagree(absl::StrCat("servers 0 and ", hello.rank(), " hold different tables: ",
                                   SchemaDifference(first.schema(), hello.schema()),
                                   "; restart all servers"));
    }
    if (hello.committed_pass() != first.committed_pass()) {
      return Disagree(absl::StrCat(
          StateOf(answers[0]), ", ", StateOf(answer),
          ": a server was restarted or a commit was cut short; restart all servers and load a "
          "saved model"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FleetView> ReadFleetView(const std::vector<ServerLink>& servers,
                                        const ClientOptions& options, uint64_t secret) {
  if (servers.empty()) return absl::InvalidArgumentError("no servers were given");
  std::vector<Answer> answers = SayHelloToAll(servers, options, secret);
  CISTERN_RETURN_IF_ERROR(AllAnswered(answers));
  CISTERN_RETURN_IF_ERROR(CheckMembership(answers, options.cluster));
  CISTERN_RETURN_IF_ERROR(SortByRank(answers));
  CISTERN_RETURN_IF_ERROR(CheckState(answers));
  CISTERN_RETURN_IF_ERROR(CheckLocalState(answers, options, secret));

  CISTERN_ASSIGN_OR_RETURN(
      const ShardMap map,
      ShardMap::Create(answers[0].hello.shard_num(), static_cast<uint32_t>(answers.size())));
  FleetView view = {
      .servers = {}, .map = map, .schema = {}, .clock = {}, .days = {}, .writer_at_work = {}};
  view.committed = answers[0].hello.committed_pass();
  view.durable = answers[0].hello.durable();
  view.local_state = answers[0].hello.local_state();
  view.clock = answers[0].hello.clock();
  view.days = answers[0].hello.days();
  for (const Answer& answer : answers) {
    const v1::HelloReply& hello = answer.hello;
    if (hello.identity().shard_map_hash() != map.hash()) {
      return Disagree(absl::StrCat("server ", answer.link.name,
                                   " assigns shards by a different rule: it runs another version (",
                                   hello.version(), ")"));
    }
    view.servers.push_back(answer.link);
    view.term = std::max(view.term, hello.identity().epoch());
    view.rows_in_files |= hello.rows_in_files();
    view.behind |= hello.newest_manifest() < answers[0].hello.newest_manifest();
    if (!hello.writer_at_work().empty()) view.writer_at_work = hello.writer_at_work();
    if (SchemaHash(hello.schema()) != 0) view.schema = hello.schema();
  }
  return view;
}

}  // namespace cistern
