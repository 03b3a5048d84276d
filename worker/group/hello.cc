#include "worker/group/hello.h"

#include <cstring>

namespace cistern::group {
namespace {

constexpr absl::string_view kMagic = "CISTPEE2";

template <typename T>
void Put(T number, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

template <typename T>
T Take(absl::string_view* bytes) {
  T number;
  std::memcpy(&number, bytes->data(), sizeof(number));
  bytes->remove_prefix(sizeof(number));
  return number;
}

}  // namespace

std::string FormatHello(const Hello& hello) {
  std::string bytes(kMagic);
  Put(hello.secret, &bytes);
  Put(hello.rank, &bytes);
  Put(hello.size, &bytes);
  Put(uint32_t{hello.port}, &bytes);
  return bytes;
}

absl::StatusOr<Hello> ParseHello(absl::string_view bytes) {
  if (bytes.size() != kHelloBytes || bytes.substr(0, kMagic.size()) != kMagic) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a hello from a worker of this version: ", bytes.size(), " bytes"));
  }
  bytes.remove_prefix(kMagic.size());
  Hello hello;
  hello.secret = Take<uint64_t>(&bytes);
  hello.rank = Take<uint32_t>(&bytes);
  hello.size = Take<uint32_t>(&bytes);
  const auto port = Take<uint32_t>(&bytes);
  if (port == 0 || port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("a hello with port ", port));
  }
  hello.port = static_cast<uint16_t>(port);
  return hello;
}

}  // namespace cistern::group
