#include "test/cuda/emulator/device_memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace cistern::emulator {
namespace {

constexpr size_t kGuardBytes = 256;
constexpr unsigned char kGuard = 0xFF;
constexpr size_t kPageBytes = 4096;

size_t Rounded(size_t bytes, size_t to) {
  return (bytes + to - 1) / to * to;
}

struct Piece {
  size_t bytes;
  size_t whole;  // bytes with both guards
  bool pinned;
};

// All members are guarded by `mutex`, which is recursive.
struct State {
  std::recursive_mutex mutex;
  unsigned char* begin = nullptr;  // start of the device's address range
  size_t used = 0;                 // high-water mark in bytes from `begin`
  int open = 0;
  std::map<size_t, size_t> free;              // offset to bytes, below `used`
  std::map<const unsigned char*, Piece> all;  // by first byte
};
State& TheState() {
  static auto* const state = new State;  // never destroyed: memory may be freed at process exit
  return *state;
}

bool IsDevice(const void* data) {
  const auto* at = static_cast<const unsigned char*>(data);
  const unsigned char* begin = TheState().begin;
  return begin != nullptr && at >= begin && at < begin + kMemoryBytes;
}

void SayWhoLooked(int signal, siginfo_t* info, void*) {
  constexpr char kWhat[] =
      "the emulated GPU stops: the host dereferenced a pointer to device memory\n";
  if (IsDevice(info->si_addr)) (void)!write(STDERR_FILENO, kWhat, sizeof(kWhat) - 1);
  struct sigaction usual = {};
  usual.sa_handler = SIG_DFL;
  sigaction(signal, &usual, nullptr);  // the access faults again on return and ends the process
}

void Reserve(State& state) {
  if (state.begin != nullptr) return;
  void* begin =
      mmap(nullptr, kMemoryBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) std::abort();
  state.begin = static_cast<unsigned char*>(begin);
  struct sigaction action = {};
  action.sa_sigaction = SayWhoLooked;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
}

// Sets the protection of a range of the device's memory.
void Protect(const unsigned char* from, size_t bytes, int protection) {
  if (bytes == 0) return;
  if (mprotect(const_cast<unsigned char*>(from), bytes, protection) != 0) std::abort();
}
void ProtectAll(const State& state, int protection) {
  Protect(state.begin, state.used, protection);
}

// The address of `whole` free bytes; null if there are none.
unsigned char* Place(State& state, size_t whole) {
  for (auto it = state.free.begin(); it != state.free.end(); ++it) {
    if (it->second < whole) continue;
    const auto [offset, bytes] = *it;
    state.free.erase(it);
    if (bytes > whole) state.free[offset + whole] = bytes - whole;
    return state.begin + offset;
  }
  if (whole > kMemoryBytes - state.used) return nullptr;
  const size_t offset = state.used;
  state.used += whole;
  return state.begin + offset;
}

void PutBack(State& state, const unsigned char* data, size_t whole) {
  auto [it, is_new] = state.free.emplace(static_cast<size_t>(data - state.begin), whole);
  const auto next = std::next(it);
  if (next != state.free.end() && it->first + it->second == next->first) {
    it->second += next->second;
    state.free.erase(next);
  }
  if (it == state.free.begin()) return;
  const auto before = std::prev(it);
  if (before->first + before->second != it->first) return;
  before->second += it->second;
  state.free.erase(it);
}

void* Take(size_t bytes, bool pinned) {
  State& state = TheState();
  const auto lock = LockDevice();
  Reserve(state);
  if (bytes > kMemoryBytes) return nullptr;
  const size_t whole = Rounded(bytes + 2 * kGuardBytes, pinned ? kGuardBytes : kPageBytes);
  auto* from = pinned ? static_cast<unsigned char*>(std::aligned_alloc(kGuardBytes, whole))
                      : Place(state, whole);
  if (from == nullptr) return nullptr;
  if (!pinned) Protect(from, whole, PROT_READ | PROT_WRITE);
  std::memset(from, kGuard, whole);
  if (!pinned && state.open == 0) Protect(from, whole, PROT_NONE);
  state.all[from + kGuardBytes] = {bytes, whole, pinned};
  return from + kGuardBytes;
}

}  // namespace

std::unique_lock<std::recursive_mutex> LockDevice() {
  return std::unique_lock(TheState().mutex);
}

OpenMemory::OpenMemory() {
  State& state = TheState();
  state.mutex.lock();
  if (state.open++ == 0) ProtectAll(state, PROT_READ | PROT_WRITE);
}

OpenMemory::~OpenMemory() {
  State& state = TheState();
  if (--state.open == 0) ProtectAll(state, PROT_NONE);
  state.mutex.unlock();
}

void* TakeDevice(size_t bytes) {
  return Take(bytes, /*pinned=*/false);
}

void* TakePinned(size_t bytes) {
  return Take(bytes, /*pinned=*/true);
}

bool GiveBack(void* data) {
  if (data == nullptr) return true;
  State& state = TheState();
  const auto lock = LockDevice();
  const auto found = state.all.find(static_cast<unsigned char*>(data));
  if (found == state.all.end()) return false;
  const Piece piece = found->second;
  state.all.erase(found);
  auto* from = static_cast<unsigned char*>(data) - kGuardBytes;
  const unsigned char* behind = static_cast<unsigned char*>(data) + piece.bytes;
  if (!piece.pinned) Protect(from, piece.whole, PROT_READ | PROT_WRITE);
  for (size_t i = 0; i < kGuardBytes; ++i) {
    if (from[i] == kGuard && behind[i] == kGuard) continue;
    std::fprintf(stderr,
                 "the emulated GPU stops: a write out of bounds of an allocation of %zu bytes\n",
                 piece.bytes);
    std::abort();
  }
  if (piece.pinned) {
    std::free(from);
  } else {
    madvise(from, piece.whole, MADV_DONTNEED);
    if (state.open == 0) Protect(from, piece.whole, PROT_NONE);
    PutBack(state, from, piece.whole);
  }
  return true;
}

bool IsDeviceOrPinned(const void* data) {
  State& state = TheState();
  const auto lock = LockDevice();
  if (IsDevice(data)) return true;
  auto it = state.all.upper_bound(static_cast<const unsigned char*>(data));
  if (it == state.all.begin()) return false;
  --it;
  return static_cast<const unsigned char*>(data) < it->first + it->second.bytes;
}

}  // namespace cistern::emulator
