#include <random>

#include "test/fuzz/fuzz_target.h"

namespace cistern {

void MutateBytes(uint64_t seed, std::string* bytes) {
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t n) { return static_cast<size_t>(random() % n); };
  for (size_t places = 1 + below(4); places > 0 && !bytes->empty(); --places) {
    const size_t size = bytes->size(), at = below(size), length = 1 + below(16);
    switch (below(7)) {
      case 0:
        (*bytes)[at] = static_cast<char>((*bytes)[at] ^ (1 << below(8)));
        break;
      case 1:
        (*bytes)[at] = static_cast<char>(random());
        break;
      case 2:
        bytes->insert(at, length, static_cast<char>(random()));
        break;
      case 3:
        bytes->erase(at, length);
        break;
      case 4:
        bytes->replace(at, length, bytes->substr(below(size), length));
        break;
      case 5: {
        const uint64_t number = below(3) == 0 ? ~uint64_t{0} >> below(64) : below(300);
        bytes->replace(at, 8, reinterpret_cast<const char*>(&number), 8);
        break;
      }
      case 6:
        bytes->resize(at);
        break;
    }
  }
}

}  // namespace cistern
