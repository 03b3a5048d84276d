// OpenPredictor: the current version of a serving folder, and the switch to newer ones.
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/fault_log.h"
#include "common/base/log.h"
#include "common/base/low_priority.h"
#include "common/base/machine_limits.h"
#include "common/base/thread_pool.h"
#include "serve/predictor/open_predictor.h"
#include "serve/predictor/request_check.h"
#include "serve/predictor/served_state.h"
#include "serve/predictor/workspace.h"

namespace cistern::serve {
namespace {

// Rows of text that were encoded for one version may be predicted by the next.
bool SameRecipe(const std::shared_ptr<const data::OwnedEncoder>& a,
                const std::shared_ptr<const data::OwnedEncoder>& b) {
  if (a == nullptr || b == nullptr) return a == b;
  return data::ReadSameRows(a->recipe(), b->recipe());
}

bool SameShape(const PredictorShape& a, const PredictorShape& b) {
  if (a.label_dim != b.label_dim || a.dense_dim != b.dense_dim ||
      a.inputs.size() != b.inputs.size()) {
    return false;
  }
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    if (a.inputs[i].name != b.inputs[i].name || a.inputs[i].slot_num != b.inputs[i].slot_num ||
        a.inputs[i].key_weights != b.inputs[i].key_weights) {
      return false;
    }
  }
  return true;
}

class ServedModel : public Predictor {
 public:
  ServedModel(std::string root, const PredictorOptions& options)
      : root_(std::move(root)), options_(options), faults_(absl::StrCat("following ", root_)) {
    limit_ = static_cast<size_t>(options.threads > 0 ? options.threads : CoreCount());
  }

  ~ServedModel() override {
    {
      const absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    follower_.reset();  // waits for its end
  }

  absl::Status Open() {
    const bool follows = options_.version.empty();
    CISTERN_ASSIGN_OR_RETURN(std::shared_ptr<const ServedState> state, OpenFirst());
    shape_ = state->shape();
    encoder_ = state->encoder();
    CISTERN_RETURN_IF_ERROR(SwitchTo(std::move(state), nullptr).status());
    if (follows && options_.poll_ms > 0) {
      follower_ = std::make_unique<ThreadPool>(3);
      follower_->Run([this] { FollowWhenIdle(); });
      follower_->Run([this] { FollowWhenLate(); });
      follower_->Run([this] {
        RunWhenIdle();
        CurrentState()->Prefetch([this] {
          const absl::MutexLock lock(&mutex_);
          return !stopping_;
        });
      });
    }
    return absl::OkStatus();
  }

  std::string name() const override {
    return options_.name.empty() ? CurrentState()->version().name : options_.name;
  }
  const PredictorShape& shape() const override { return shape_; }
  ServedVersion version() const override {
    const absl::MutexLock lock(&mutex_);
    return VersionOf(*state_);
  }
  size_t max_samples() const override { return options_.max_samples; }
  std::shared_ptr<const data::OwnedEncoder> encoder() const override { return encoder_; }
  absl::StatusOr<bool> Follow() override {
    if (!options_.version.empty()) return false;
    LocalFileSystem files;
    while (true) {
      const std::shared_ptr<const ServedState> current = CurrentState();
      CISTERN_ASSIGN_OR_RETURN(const ServingHead head, ReadHead(files, root_));
      CISTERN_ASSIGN_OR_RETURN(const bool switched, FollowTo(head, current));
      if (switched || CurrentState()->head() == head) return switched;
    }
  }

  FollowState follow_state() const override { return {faults_.faults(), faults_.failing()}; }

  absl::Status Predict(const PredictRequest& request, absl::Span<float> predictions,
                       ServedVersion* version, uint64_t* unseen) override {
    CISTERN_RETURN_IF_ERROR(CheckRequest(request, predictions.size(), shape_, options_));
    CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<Workspace> workspace, Take());
    uint64_t missed = 0;
    const absl::Status predicted = workspace->Predict(request, predictions, &missed);
    *version = VersionOf(workspace->state());
    if (unseen != nullptr) *unseen = missed;
    Return(std::move(workspace));
    return predicted;
  }

 private:
  // The version that HEAD names, or options_.version. A publisher may replace HEAD and remove the
  // version while it is being opened; then the newer one is opened.
  absl::StatusOr<std::shared_ptr<const ServedState>> OpenFirst() const {
    if (!options_.version.empty()) return OpenVersion(options_.version);
    constexpr int kAttempts = 5;
    LocalFileSystem files;
    absl::Status damage;
    for (int attempt = 1; attempt <= kAttempts; ++attempt) {
      const absl::StatusOr<ServingHead> head = ReadHead(files, root_);
      if (absl::IsNotFound(head.status())) return NoHead(head.status());
      auto state = head.ok() ? ServedState::Open(root_, *head, nullptr, options_.verify)
                             : absl::StatusOr<std::shared_ptr<const ServedState>>(head.status());
      if (state.ok()) return state;
      damage = state.status();
      const absl::StatusOr<ServingHead> now = ReadHead(files, root_);
      if (head.ok() && (!now.ok() || *now == *head)) break;
    }
    return options_.fall_back && absl::IsDataLoss(damage) ? OpenOlder(damage) : damage;
  }

  // Why there is nothing to serve: the folder may have lost its HEAD only.
  absl::Status NoHead(const absl::Status& missing) const {
    LocalFileSystem files;
    const absl::StatusOr<std::vector<std::string>> versions = VersionsIn(files, root_);
    if (!versions.ok() || versions->empty()) return missing;
    return absl::DataLossError(
        absl::StrCat(missing.message(), ", but there are versions, the newest ", versions->back(),
                     ": choose one (cistern serving rollback)"));
  }

  absl::StatusOr<std::shared_ptr<const ServedState>> OpenVersion(const std::string& folder) const {
    LocalFileSystem files;
    CISTERN_ASSIGN_OR_RETURN(const ServingHead head, HeadOf(files, root_, folder));
    return ServedState::Open(root_, head, nullptr, options_.verify);
  }

  // The newest version that can be read; `damage` if there is none. Versions newer than the current
  // one, which a rollback has left, do not count.
  absl::StatusOr<std::shared_ptr<const ServedState>> OpenOlder(const absl::Status& damage) const {
    LocalFileSystem files;
    const absl::StatusOr<ServingHead> head = ReadHead(files, root_);
    CISTERN_ASSIGN_OR_RETURN(std::vector<std::string> versions, VersionsIn(files, root_));
    std::sort(versions.rbegin(), versions.rend());
    for (const std::string& folder : versions) {
      if (head.ok() && folder >= head->folder) continue;
      auto state = OpenVersion(folder);
      if (!state.ok()) continue;
      LogWarning(absl::StrCat("the current version of ", root_,
                              " cannot be read: ", damage.message(), "; version ", folder,
                              " is served until a newer one can be read"));
      return state;
    }
    return damage;
  }

  static ServedVersion VersionOf(const ServedState& state) {
    return {state.version().number(), state.version().folder};
  }

  std::shared_ptr<const ServedState> CurrentState() const {
    const absl::MutexLock lock(&mutex_);
    return state_;
  }

  // Waits for one of limit_ workspaces of the current state.
  absl::StatusOr<std::unique_ptr<Workspace>> Take() {
    std::shared_ptr<const ServedState> state;
    {
      absl::MutexLock lock(&mutex_);
      const auto may_run = [this]()
                               ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return taken_ < limit_; };
      mutex_.Await(absl::Condition(&may_run));
      ++taken_;
      if (!free_.empty()) {
        std::unique_ptr<Workspace> workspace = std::move(free_.back());
        free_.pop_back();
        return workspace;
      }
      state = state_;
    }
    auto workspace = Workspace::Create(std::move(state));
    if (!workspace.ok()) Return(nullptr);
    return workspace;
  }

  void Return(std::unique_ptr<Workspace> workspace) {
    std::unique_ptr<Workspace> old;  // of an older version; destroyed outside the lock
    const absl::MutexLock lock(&mutex_);
    --taken_;
    if (workspace == nullptr) return;
    if (&workspace->state() == state_.get()) {
      free_.push_back(std::move(workspace));
    } else if (follower_ != nullptr) {
      retired_.push_back(std::move(workspace));  // the last one frees a version: not in a request
    } else {
      old = std::move(workspace);
    }
  }

  // Frees what older versions have left.
  void FreeRetired() {
    std::vector<std::unique_ptr<Workspace>> retired;
    const absl::MutexLock lock(&mutex_);
    std::swap(retired, retired_);
  }

  // Serves `state` from now on, unless another thread has replaced `before` meanwhile: then false.
  // Calls that have begun finish with the version they began with.
  absl::StatusOr<bool> SwitchTo(std::shared_ptr<const ServedState> state,
                                const std::shared_ptr<const ServedState>& before) {
    std::vector<std::unique_ptr<Workspace>> fresh;
    for (size_t i = 0; i < limit_; ++i) {
      CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<Workspace> workspace, Workspace::Create(state));
      fresh.push_back(std::move(workspace));
    }
    const absl::MutexLock lock(&mutex_);
    if (state_ != before) return false;
    std::swap(state_, state);
    std::swap(free_, fresh);
    return true;
  }

  // False: the model is being closed.
  bool WaitToPoll() {
    const absl::MutexLock lock(&mutex_);
    return !mutex_.AwaitWithTimeout(absl::Condition(&stopping_),
                                    absl::Milliseconds(options_.poll_ms));
  }

  // A version takes a tenth of a second of a core, and requests come first.
  void FollowWhenIdle() {
    RunWhenIdle();
    clockid_t clock = 0;
    if (pthread_getcpuclockid(pthread_self(), &clock) == 0) idle_clock_ = clock;
    while (WaitToPoll()) {
      FreeRetired();
      FollowOnce();
    }
  }

  // The processor time that FollowWhenIdle has had.
  absl::Duration IdleTime() const {
    timespec time = {};
    if (idle_clock_ == 0 || clock_gettime(idle_clock_, &time) != 0) return absl::ZeroDuration();
    return absl::DurationFromTimespec(time);
  }

  // Takes over where FollowWhenIdle gets no processor, because others leave none idle: after a
  // while, a version is opened at low priority.
  void FollowWhenLate() {
    constexpr absl::Duration kPatience = absl::Milliseconds(500);
    LowerPriority();
    LocalFileSystem files;
    std::weak_ptr<const ServedState> served;
    absl::Time since = absl::InfiniteFuture();  // a version that replaces `served` was first seen
    absl::Duration idle_time;                   // at `since`
    while (WaitToPoll()) {
      const std::shared_ptr<const ServedState> current = CurrentState();
      const absl::StatusOr<ServingHead> head = ReadHead(files, root_);
      if (!head.ok() || *head == current->head()) {
        NoteOutcome(head.status());
        since = absl::InfiniteFuture();
      } else if (since == absl::InfiniteFuture() || served.lock() != current) {
        since = absl::Now();
        idle_time = IdleTime();
      }
      served = current;
      const absl::Duration waited = absl::Now() - since;
      if (waited < kPatience) continue;
      if (IdleTime() - idle_time > waited / 4) continue;  // it opens a large version
      FreeRetired();
      FollowOnce();
    }
  }

  // A HEAD that could not be served. It is tried again from time to time, because the reason may
  // pass: a file that a network disk does not show yet, a lack of memory.
  struct Refused {
    ServingHead head;
    absl::Time again = absl::InfinitePast();
  };
  void FollowOnce() {
    constexpr absl::Duration kPause = absl::Seconds(10);
    LocalFileSystem files;
    const std::shared_ptr<const ServedState> current = CurrentState();
    const absl::StatusOr<ServingHead> head = ReadHead(files, root_);
    if (!head.ok()) return NoteOutcome(head.status());
    {
      const absl::MutexLock lock(&mutex_);
      if (*head == refused_.head && absl::Now() < refused_.again) return;
    }
    const absl::Status switched = FollowTo(*head, current).status();
    {
      const absl::MutexLock lock(&mutex_);
      refused_ = switched.ok() ? Refused() : Refused{*head, absl::Now() + kPause};
    }
    NoteOutcome(AddContext(switched, absl::StrCat("version ", head->folder, " cannot be served")));
  }

  // For the log and the figures.
  void NoteOutcome(const absl::Status& outcome) {
    faults_.Report(outcome, absl::StrCat("still serving version ", version().folder));
  }

  // Several threads may open a version. The first one to be done switches to it; others get false.
  // current: what was served before `head` was read. A thread that waited in between would
  // otherwise replace a newer version by the one that it has read of.
  absl::StatusOr<bool> FollowTo(const ServingHead& head,
                                const std::shared_ptr<const ServedState>& current) {
    if (head == current->head()) return false;
    CISTERN_ASSIGN_OR_RETURN(std::shared_ptr<const ServedState> state,
                             ServedState::Open(root_, head, current.get(), options_.verify));
    if (!SameShape(state->shape(), shape_)) {
      return absl::InvalidArgumentError(
          "its inputs are not those of the model that is served; open the folder again");
    }
    if (!SameRecipe(state->encoder(), encoder_)) {
      return absl::InvalidArgumentError(
          "its recipe is not that of the model that is served; open the folder again");
    }
    const std::string name = state->version().name;
    CISTERN_ASSIGN_OR_RETURN(const bool switched, SwitchTo(std::move(state), current));
    if (switched) ReportName(head.folder, current->version().name, name);
    return switched;
  }

  // Callers that ask for the older name are refused from now on.
  void ReportName(const std::string& folder, const std::string& before, const std::string& now) {
    if (!options_.name.empty() || now == before) return;
    LogWarning(absl::StrCat("version ", folder, " of ", root_, " has the model name '", now,
                            "', not '", before, "' as the version before: requests that ask for '",
                            before, "' are refused from now on"));
  }

  const std::string root_;
  const PredictorOptions options_;
  PredictorShape shape_;                               // constant after Open
  std::shared_ptr<const data::OwnedEncoder> encoder_;  // constant after Open
  size_t limit_ = 1;

  mutable absl::Mutex mutex_;
  std::shared_ptr<const ServedState> state_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Workspace>> free_ ABSL_GUARDED_BY(mutex_);     // of state_
  std::vector<std::unique_ptr<Workspace>> retired_ ABSL_GUARDED_BY(mutex_);  // of older ones
  size_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Refused refused_ ABSL_GUARDED_BY(mutex_);
  FaultLog faults_;
  std::atomic<clockid_t> idle_clock_{0};  // of FollowWhenIdle's thread
  std::unique_ptr<ThreadPool> follower_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Predictor>> OpenPredictor(const std::string& folder,
                                                         const PredictorOptions& options) {
  auto model = std::make_unique<ServedModel>(folder, options);
  CISTERN_RETURN_IF_ERROR(model->Open());
  return model;
}

}  // namespace cistern::serve
