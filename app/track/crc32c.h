// The checksum of TensorBoard's records: CRC-32C (Castagnoli, RFC 3720, appendix B.4), a byte at a
// time: records are small.
#pragma once

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace cistern::app {

inline uint32_t Crc32c(absl::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = [] {
    constexpr uint32_t kReversedPolynomial = 0x82F63B78;
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t rest = i;
      for (int bit = 0; bit < 8; ++bit) {
        rest = (rest >> 1) ^ ((rest & 1) != 0 ? kReversedPolynomial : 0);
      }
      table[i] = rest;
    }
    return table;
  }();
  uint32_t crc = 0xFFFFFFFF;
  for (const char c : bytes)
    crc = kTable[(crc ^ static_cast<unsigned char>(c)) & 0xFF] ^ (crc >> 8);
  return ~crc;
}

}  // namespace cistern::app
