#include "common/tls/openssl.h"

#include <openssl/err.h>

namespace cistern {

std::string OpenSslError() {
  unsigned long newest = 0;  // NOLINT(runtime/int): OpenSSL's type
  while (const unsigned long next = ERR_get_error()) newest = next;  // NOLINT(runtime/int)
  if (newest == 0) return "no reason given";
  const char* const reason = ERR_reason_error_string(newest);
  if (reason != nullptr) return reason;
  char text[256] = {};
  ERR_error_string_n(newest, text, sizeof(text));
  return text;
}

OpenSslPtr<BIO> ReaderOf(absl::string_view text) {
  constexpr size_t kMaxBytes = 1u << 30;
  if (text.size() > kMaxBytes) return nullptr;
  return OpenSslPtr<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

OpenSslPtr<X509> ReadCertificate(absl::string_view pem) {
  const OpenSslPtr<BIO> reader = ReaderOf(pem);
  if (reader == nullptr) return nullptr;
  return OpenSslPtr<X509>(PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr));
}

OpenSslPtr<EVP_PKEY> ReadKey(absl::string_view pem) {
  const OpenSslPtr<BIO> reader = ReaderOf(pem);
  if (reader == nullptr) return nullptr;
  pem_password_cb* const no_passphrase = [](char*, int, int, void*) { return -1; };
  return OpenSslPtr<EVP_PKEY>(
      PEM_read_bio_PrivateKey(reader.get(), nullptr, no_passphrase, nullptr));
}

}  // namespace cistern
