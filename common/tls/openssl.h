// Owners of OpenSSL's objects, and its errors as text.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace cistern {

struct OpenSslFree {
  void operator()(BIO* object) const { BIO_free(object); }
  void operator()(EVP_PKEY* object) const { EVP_PKEY_free(object); }
  void operator()(SSL* object) const { SSL_free(object); }
  void operator()(SSL_CTX* object) const { SSL_CTX_free(object); }
  void operator()(X509* object) const { X509_free(object); }
};
template <class T>
using OpenSslPtr = std::unique_ptr<T, OpenSslFree>;

// The newest error of this thread's queue, which is emptied: "certificate has expired".
std::string OpenSslError();

// A reader of `text`, which must outlive it; null without memory, or above 1 GiB.
OpenSslPtr<BIO> ReaderOf(absl::string_view text);
// The first certificate, or private key, of a PEM text; null if there is none. A key with a
// passphrase is refused, not asked for.
OpenSslPtr<X509> ReadCertificate(absl::string_view pem);
OpenSslPtr<EVP_PKEY> ReadKey(absl::string_view pem);

}  // namespace cistern
