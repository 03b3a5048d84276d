// Tells the thread sanitizer what Abseil's locks order.
//
// The packaged Abseil is not built with the sanitizer, so a lock of it is invisible and everything
// it guards looks like a race. The linker sends the calls of our own code to the functions below
// (--wrap, scripts/cmake/thread_sanitizer.cmake); each calls Abseil and reports what happened.
// Conditions run inside Abseil, under the lock, on whichever thread is there: their reads are left
// out.
//
// Built into programs of the tsan preset only.
#include <sanitizer/tsan_interface.h>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}

namespace {

class IgnoreReads {
 public:
  IgnoreReads() { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); }
  ~IgnoreReads() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
};

// Calls `wait`, which releases `lock` and holds it again when it returns.
template <typename Wait>
auto Waiting(void* lock, Wait wait) {
  __tsan_release(lock);
  struct Acquire {
    void* lock;
    ~Acquire() { __tsan_acquire(lock); }
  } acquire{lock};
  const IgnoreReads ignore;
  return wait();
}

}  // namespace

// CISTERN_ABSL is the mangled namespace: 4absl, and Abseil's inline namespace.
#define CISTERN_PASTE(a, b, c) a##b##c
#define CISTERN_NAME(a, b, c) CISTERN_PASTE(a, b, c)
#define CISTERN_REAL(name) CISTERN_NAME(__real__ZN, CISTERN_ABSL, name)
#define CISTERN_WRAP(name) CISTERN_NAME(__wrap__ZN, CISTERN_ABSL, name)

// void F(): has the lock, or sees what was released, when it returns.
#define CISTERN_ACQUIRES(name)          \
  void CISTERN_REAL(name)(void* self);  \
  void CISTERN_WRAP(name)(void* self) { \
    CISTERN_REAL(name)(self);           \
    __tsan_acquire(self);               \
  }
// R F(): gives up the lock, or releases what others wait for.
#define CISTERN_RELEASES(result, name)    \
  result CISTERN_REAL(name)(void* self);  \
  result CISTERN_WRAP(name)(void* self) { \
    __tsan_release(self);                 \
    const IgnoreReads ignore;             \
    return CISTERN_REAL(name)(self);      \
  }

extern "C" {

CISTERN_ACQUIRES(5Mutex4LockEv)
CISTERN_ACQUIRES(5Mutex10ReaderLockEv)
CISTERN_RELEASES(void, 5Mutex6UnlockEv)
CISTERN_RELEASES(void, 5Mutex12ReaderUnlockEv)
CISTERN_RELEASES(bool, 15BlockingCounter14DecrementCountEv)
CISTERN_ACQUIRES(15BlockingCounter4WaitEv)
CISTERN_RELEASES(void, 12Notification6NotifyEv)

bool CISTERN_REAL(5Mutex7TryLockEv)(void* self);
bool CISTERN_WRAP(5Mutex7TryLockEv)(void* self) {
  const bool locked = CISTERN_REAL(5Mutex7TryLockEv)(self);
  if (locked) __tsan_acquire(self);
  return locked;
}

void CISTERN_REAL(5Mutex5AwaitERKNS0_9ConditionE)(void* self, const absl::Condition* condition);
void CISTERN_WRAP(5Mutex5AwaitERKNS0_9ConditionE)(void* self, const absl::Condition* condition) {
  Waiting(self, [&] { CISTERN_REAL(5Mutex5AwaitERKNS0_9ConditionE)(self, condition); });
}

bool CISTERN_REAL(5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE)(
    void* self, const absl::Condition* condition, absl::Duration timeout);
bool CISTERN_WRAP(5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE)(
    void* self, const absl::Condition* condition, absl::Duration timeout) {
  return Waiting(self, [&] {
    return CISTERN_REAL(5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE)(self, condition,
                                                                                  timeout);
  });
}

bool CISTERN_REAL(5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE)(
    void* self, const absl::Condition* condition, absl::Time deadline);
bool CISTERN_WRAP(5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE)(
    void* self, const absl::Condition* condition, absl::Time deadline) {
  return Waiting(self, [&] {
    return CISTERN_REAL(5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE)(self, condition,
                                                                               deadline);
  });
}

void CISTERN_REAL(7CondVar4WaitEPNS0_5MutexE)(void* self, void* mutex);
void CISTERN_WRAP(7CondVar4WaitEPNS0_5MutexE)(void* self, void* mutex) {
  Waiting(mutex, [&] { CISTERN_REAL(7CondVar4WaitEPNS0_5MutexE)(self, mutex); });
}

bool CISTERN_REAL(7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE)(void* self, void* mutex,
                                                                        absl::Duration timeout);
bool CISTERN_WRAP(7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE)(void* self, void* mutex,
                                                                        absl::Duration timeout) {
  return Waiting(mutex, [&] {
    return CISTERN_REAL(7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE)(self, mutex, timeout);
  });
}

bool CISTERN_REAL(7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE)(void* self, void* mutex,
                                                                     absl::Time deadline);
bool CISTERN_WRAP(7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE)(void* self, void* mutex,
                                                                     absl::Time deadline) {
  return Waiting(mutex, [&] {
    return CISTERN_REAL(7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE)(self, mutex, deadline);
  });
}

}  // extern "C"

// const methods mangle as _ZNK.
#undef CISTERN_REAL
#undef CISTERN_WRAP
#define CISTERN_REAL(name) CISTERN_NAME(__real__ZNK, CISTERN_ABSL, name)
#define CISTERN_WRAP(name) CISTERN_NAME(__wrap__ZNK, CISTERN_ABSL, name)

extern "C" {

CISTERN_ACQUIRES(12Notification19WaitForNotificationEv)

bool CISTERN_REAL(12Notification30WaitForNotificationWithTimeoutENS0_8DurationE)(
    void* self, absl::Duration timeout);
bool CISTERN_WRAP(12Notification30WaitForNotificationWithTimeoutENS0_8DurationE)(
    void* self, absl::Duration timeout) {
  const bool notified =
      CISTERN_REAL(12Notification30WaitForNotificationWithTimeoutENS0_8DurationE)(self, timeout);
  if (notified) __tsan_acquire(self);
  return notified;
}

}  // extern "C"

// Abseil's own search for deadlocks guards its graph with a spin lock that the sanitizer cannot
// see, while it sees the calls of memmove.
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libabsl_graphcycles_internal\n";
}
