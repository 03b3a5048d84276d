// Runs the blocks and threads of cuda_runtime.h as fibers.
#include <setjmp.h>
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "test/cuda/emulator/cuda_runtime.h"

namespace cistern::emulator {

Place place;

namespace {

constexpr size_t kStackBytes = 128 << 10;
constexpr size_t kMaxShared = 227 << 10;
constexpr unsigned kWarpLanes = 32;

[[noreturn]] void Stop(const char* why) {
  std::fprintf(stderr, "the emulated GPU stops: %s (block %u, %u thread %u, %u)\n", why,
               place.block.x, place.block.y, place.thread.x, place.thread.y);
  std::abort();
}

struct Fiber {
  std::unique_ptr<char[]> stack;
  ucontext_t start;
  jmp_buf at;
  bool done = true;
};

// The state of the grid. One block runs at a time, in one host thread.
struct Grid {
  std::vector<std::unique_ptr<Fiber>> fibers;
  jmp_buf scheduler;
  Fiber* running = nullptr;
  const std::function<void()>* body = nullptr;
  unsigned threads = 0, done = 0, at_barrier = 0;
  uint64_t barriers = 0;  // passed by the block
  uint64_t progress = 0;  // grows with every event that can unblock a fiber
  struct Warp {
    uint64_t values[kWarpLanes];
    unsigned given = 0, taken = 0, done = 0;
  };
  std::vector<Warp> warps;
  alignas(256) char shared[kMaxShared];
};
Grid grid;

void Yield() {
  if (_setjmp(grid.running->at) == 0) _longjmp(grid.scheduler, 1);
}

// A fiber is reused: it runs a thread, marks itself done, and waits for the next thread.
void FiberMain() {
  for (;;) {
    (*grid.body)();
    grid.running->done = true;
    Yield();
  }
}

ucontext_t bootstrap;

void Start(Fiber* fiber) {
  fiber->stack.reset(new char[kStackBytes]);
  getcontext(&fiber->start);
  fiber->start.uc_stack.ss_sp = fiber->stack.get();
  fiber->start.uc_stack.ss_size = kStackBytes;
  fiber->start.uc_link = nullptr;
  makecontext(&fiber->start, FiberMain, 0);
}

// Runs a fiber until it yields.
void Resume(Fiber* fiber, bool is_new) {
  grid.running = fiber;
  if (_setjmp(grid.scheduler) != 0) return;
  if (is_new) {
    swapcontext(&bootstrap, &fiber->start);
  } else {
    _longjmp(fiber->at, 1);
  }
}

unsigned WarpOf(unsigned thread) {
  return thread / kWarpLanes;
}
unsigned LanesOf(unsigned warp) {
  const unsigned rest = grid.threads - warp * kWarpLanes;
  return rest < kWarpLanes ? rest : kWarpLanes;
}
unsigned ThreadNumber() {
  return place.thread.y * place.block_dim.x + place.thread.x;
}

// Opens the barrier when all threads that have not returned wait at it.
void OpenBarrier() {
  if (grid.at_barrier == 0 || grid.at_barrier + grid.done < grid.threads) return;
  grid.at_barrier = 0;
  ++grid.barriers;
  ++grid.progress;
}

void RunThread(unsigned t, bool is_first_time) {
  const dim3 dim = place.block_dim;
  place.thread = dim3(t % dim.x, t / dim.x);
  Fiber* fiber = grid.fibers[t].get();
  const bool is_new = is_first_time && fiber->stack == nullptr;
  if (is_new) Start(fiber);
  if (is_first_time) fiber->done = false;
  Resume(fiber, is_new);
  if (!fiber->done) return;
  ++grid.done;
  ++grid.progress;
  ++grid.warps[WarpOf(t)].done;
  OpenBarrier();
}

void RunBlock(bool reversed) {
  grid.done = grid.at_barrier = 0;
  grid.warps.assign((grid.threads + kWarpLanes - 1) / kWarpLanes, {});
  for (bool is_first_time = true; grid.done < grid.threads; is_first_time = false) {
    const uint64_t before = grid.progress;
    for (unsigned i = 0; i < grid.threads; ++i) {
      const unsigned t = reversed ? grid.threads - 1 - i : i;
      if (is_first_time || !grid.fibers[t]->done) RunThread(t, is_first_time);
    }
    if (grid.progress == before) Stop("deadlock: threads wait for a thread that has returned");
  }
}

}  // namespace

void* DynamicShared() {
  return grid.shared;
}

unsigned Lane() {
  return ThreadNumber() % kWarpLanes;
}

void WaitForBlock() {
  const uint64_t passed = grid.barriers;
  ++grid.at_barrier;
  OpenBarrier();
  while (grid.barriers == passed) Yield();
}

uint64_t Exchange(uint64_t mine, unsigned lane) {
  const unsigned number = WarpOf(ThreadNumber()), lanes = LanesOf(number);
  Grid::Warp& warp = grid.warps[number];
  if (lane >= lanes) Stop("a shuffle reads a lane that does not exist");
  // All lanes must have read the warp's last exchange before this one writes.
  while (warp.given == lanes) Yield();
  warp.values[Lane()] = mine;
  ++warp.given;
  ++grid.progress;
  while (warp.given < lanes) {
    if (warp.done > 0) Stop("a shuffle waits for a lane that has returned");
    Yield();
  }
  const uint64_t theirs = warp.values[lane];
  ++grid.progress;
  if (++warp.taken == lanes) warp.given = warp.taken = 0;
  return theirs;
}

void Run(dim3 blocks, dim3 block, size_t shared_bytes, const std::function<void()>& body) {
  constexpr unsigned kMaxThreads = 1024, kMaxGridY = 65535;
  grid.threads = block.x * block.y;
  if (grid.threads == 0 || grid.threads > kMaxThreads || block.z != 1)
    Stop("the block size is invalid");
  if (blocks.x > INT32_MAX || blocks.y > kMaxGridY || blocks.z != 1)
    Stop("the grid size is invalid");
  while (grid.fibers.size() < grid.threads) grid.fibers.push_back(std::make_unique<Fiber>());
  grid.body = &body;
  place.block_dim = block;
  place.grid_dim = blocks;
  for (unsigned y = 0; y < blocks.y; ++y) {
    for (unsigned x = 0; x < blocks.x; ++x) {
      place.block = dim3(x, y);
      std::memset(grid.shared, 0xFF, shared_bytes);
      RunBlock((x + y) % 2 == 1);
    }
  }
}

}  // namespace cistern::emulator
