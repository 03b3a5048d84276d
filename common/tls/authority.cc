#include "common/tls/authority.h"

#include <arpa/inet.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/tls/openssl.h"

namespace cistern {
namespace {

// Certificates begin this much earlier, for machines whose clocks are behind.
constexpr absl::Duration kClockSkew = absl::Minutes(5);
constexpr size_t kMaxHosts = 100;

absl::Status Failed(absl::string_view what) {
  return absl::InternalError(absl::StrCat("OpenSSL: ", what, ": ", OpenSslError()));
}

absl::Status CheckCommonName(const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) ||
           absl::string_view("._- @").find(static_cast<char>(c)) != absl::string_view::npos;
  });
  if (!name.empty() && name.size() <= 64 && plain) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", name,
                   "' cannot be the name of a certificate: 1 to 64 letters, digits, spaces and "
                   ". _ - @"));
}

bool IsAddress(const std::string& host) {
  unsigned char bytes[16];
  return inet_pton(AF_INET, host.c_str(), bytes) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

// A name of the domain name system; the first label may be "*".
bool IsDnsName(absl::string_view host) {
  if (host.size() > 253) return false;
  absl::string_view rest = host;
  absl::ConsumePrefix(&rest, "*.");
  size_t label = 0;
  for (const char c : rest) {
    if (c == '.' ? label == 0
                 : !absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_') {
      return false;
    }
    label = c == '.' ? 0 : label + 1;
    if (label > 63) return false;
  }
  return label > 0;
}

absl::Status CheckRequest(const CertificateRequest& request) {
  CISTERN_RETURN_IF_ERROR(CheckCommonName(request.name));
  if (request.roles.empty()) {
    return absl::InvalidArgumentError(
        "a certificate needs a role: server, reader, worker or admin");
  }
  for (const Membership& role : request.roles) {
    CISTERN_RETURN_IF_ERROR(ParseRoleUri(UriOf(role)).status());
  }
  if (request.hosts.size() > kMaxHosts) {
    return absl::InvalidArgumentError(
        absl::StrCat(request.hosts.size(), " hosts: at most ", kMaxHosts));
  }
  for (const std::string& host : request.hosts) {
    if (IsAddress(host) || IsDnsName(host)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("'", host, "' is neither a host name nor an IP address"));
  }
  const bool is_server =
      std::any_of(request.roles.begin(), request.roles.end(),
                  [](const Membership& held) { return held.role == Role::kServer; });
  if (is_server && request.hosts.empty()) {
    return absl::InvalidArgumentError(
        "a server's certificate needs the host names or IP addresses at which callers reach it");
  }
  return absl::OkStatus();
}

absl::Status SetTimes(X509* certificate, absl::Time from, absl::Time until) {
  const auto set = [](ASN1_TIME* to, absl::Time time) {
    return ASN1_TIME_set(to, absl::ToTimeT(time)) != nullptr;
  };
  if (!set(X509_getm_notBefore(certificate), from) ||
      !set(X509_getm_notAfter(certificate), until)) {
    return Failed("setting the times of a certificate");
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::Time> EndOf(absl::Duration lifetime) {
  const absl::Time year_9999 = absl::FromCivil(absl::CivilYear(9999), absl::UTCTimeZone());
  const absl::Time end = absl::Now() + lifetime;
  if (lifetime > absl::ZeroDuration() && end < year_9999) return end;
  return absl::InvalidArgumentError(
      absl::StrCat("a lifetime of ", absl::FormatDuration(lifetime),
                   ": expected more than 0, and an end before the year 9999"));
}

// A certificate of `subject` for `key`, with a random serial number, still without extensions and
// signature.
absl::StatusOr<OpenSslPtr<X509>> Begin(const std::string& subject, EVP_PKEY* key) {
  OpenSslPtr<X509> made(X509_new());
  unsigned char serial[16];
  if (made == nullptr || RAND_bytes(serial, sizeof(serial)) != 1) return Failed("a certificate");
  serial[0] = static_cast<unsigned char>((serial[0] & 0x7f) | 0x40);  // positive, of full length
  BIGNUM* const number = BN_bin2bn(serial, sizeof(serial), nullptr);
  const bool numbered =
      number != nullptr && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(made.get())) != nullptr;
  BN_free(number);
  const auto* const text = reinterpret_cast<const unsigned char*>(subject.c_str());
  if (!numbered || X509_set_version(made.get(), 2) != 1 ||  // 2: version 3
      X509_NAME_add_entry_by_NID(X509_get_subject_name(made.get()), NID_commonName, MBSTRING_UTF8,
                                 const_cast<unsigned char*>(text), -1, -1, 0) != 1 ||
      X509_set_pubkey(made.get(), key) != 1) {
    return Failed("a certificate");
  }
  return made;
}

absl::Status AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  const bool added = extension != nullptr && X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added ? absl::OkStatus() : Failed(absl::StrCat("extension ", OBJ_nid2sn(nid)));
}

std::string AlternativeNames(const CertificateRequest& request) {
  std::vector<std::string> names;
  for (const std::string& host : request.hosts) {
    names.push_back(absl::StrCat(IsAddress(host) ? "IP:" : "DNS:", host));
  }
  for (const Membership& role : request.roles) names.push_back("URI:" + UriOf(role));
  return absl::StrJoin(names, ",");
}

template <class Write>
absl::StatusOr<std::string> PemOf(const Write& write) {
  const OpenSslPtr<BIO> to(BIO_new(BIO_s_mem()));
  if (to == nullptr || write(to.get()) != 1) return Failed("writing PEM");
  char* bytes = nullptr;
  const auto size = BIO_get_mem_data(to.get(), &bytes);
  return std::string(bytes, static_cast<size_t>(size));
}

absl::StatusOr<KeyedCertificate> Sign(X509* certificate, EVP_PKEY* own_key, EVP_PKEY* signer) {
  if (X509_sign(certificate, signer, EVP_sha256()) == 0) return Failed("signing");
  KeyedCertificate signed_pair;
  CISTERN_ASSIGN_OR_RETURN(signed_pair.cert,
                           PemOf([&](BIO* to) { return PEM_write_bio_X509(to, certificate); }));
  CISTERN_ASSIGN_OR_RETURN(signed_pair.key, PemOf([&](BIO* to) {
                             return PEM_write_bio_PrivateKey(to, own_key, nullptr, nullptr, 0,
                                                             nullptr, nullptr);
                           }));
  return signed_pair;
}

absl::StatusOr<OpenSslPtr<EVP_PKEY>> KeyOf(const std::string& pem) {
  OpenSslPtr<EVP_PKEY> key = pem.empty() ? OpenSslPtr<EVP_PKEY>(EVP_EC_gen("P-256")) : ReadKey(pem);
  if (key != nullptr) return key;
  return pem.empty() ? Failed("making a key")
                     : absl::InvalidArgumentError(
                           absl::StrCat("the key is not a PEM private key (", OpenSslError(), ")"));
}

}  // namespace

absl::StatusOr<KeyedCertificate> MakeAuthority(const std::string& name, absl::Duration lifetime,
                                               const std::string& key_pem) {
  CISTERN_RETURN_IF_ERROR(CheckCommonName(name));
  CISTERN_ASSIGN_OR_RETURN(const absl::Time until, EndOf(lifetime));
  CISTERN_ASSIGN_OR_RETURN(const OpenSslPtr<EVP_PKEY> key, KeyOf(key_pem));
  CISTERN_ASSIGN_OR_RETURN(const OpenSslPtr<X509> made, Begin(name, key.get()));
  X509* const authority = made.get();
  if (X509_set_issuer_name(authority, X509_get_subject_name(authority)) != 1) {
    return Failed("the issuer of a certificate");
  }
  CISTERN_RETURN_IF_ERROR(SetTimes(authority, absl::Now() - kClockSkew, until));
  for (const auto& [nid, value] : std::vector<std::pair<int, std::string>>{
           {NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
           {NID_key_usage, "critical,keyCertSign,cRLSign"},
           {NID_subject_key_identifier, "hash"}}) {
    CISTERN_RETURN_IF_ERROR(AddExtension(authority, authority, nid, value));
  }
  return Sign(authority, key.get(), key.get());
}

absl::StatusOr<KeyedCertificate> Issue(const KeyedCertificate& authority,
                                       const CertificateRequest& request, const std::string& key) {
  CISTERN_RETURN_IF_ERROR(CheckRequest(request));
  CISTERN_ASSIGN_OR_RETURN(const absl::Time until, EndOf(request.lifetime));
  const OpenSslPtr<X509> issuer = ReadCertificate(authority.cert);
  const OpenSslPtr<EVP_PKEY> signer = ReadKey(authority.key);
  if (issuer == nullptr || signer == nullptr ||
      X509_check_private_key(issuer.get(), signer.get()) != 1 || X509_check_ca(issuer.get()) != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the authority's certificate and key do not fit each other (", OpenSslError(), ")"));
  }
  CISTERN_ASSIGN_OR_RETURN(const Certificate facts, ParseCertificate(authority.cert));
  if (facts.valid_until <= absl::Now()) {
    return absl::InvalidArgumentError(absl::StrCat("the authority '", facts.name, "' expired at ",
                                                   absl::FormatTime(facts.valid_until)));
  }
  CISTERN_ASSIGN_OR_RETURN(const OpenSslPtr<EVP_PKEY> own, KeyOf(key));
  CISTERN_ASSIGN_OR_RETURN(const OpenSslPtr<X509> made, Begin(request.name, own.get()));
  X509* const certificate = made.get();
  if (X509_set_issuer_name(certificate, X509_get_subject_name(issuer.get())) != 1) {
    return Failed("the issuer of a certificate");
  }
  CISTERN_RETURN_IF_ERROR(
      SetTimes(certificate, absl::Now() - kClockSkew, std::min(until, facts.valid_until)));
  // A client accepts a server by its host names; a worker or user must not answer as a server.
  const bool is_server =
      std::any_of(request.roles.begin(), request.roles.end(),
                  [](const Membership& held) { return held.role == Role::kServer; });
  for (const auto& [nid, value] : std::vector<std::pair<int, std::string>>{
           {NID_basic_constraints, "critical,CA:FALSE"},
           {NID_key_usage, "critical,digitalSignature"},
           {NID_ext_key_usage, is_server ? "serverAuth,clientAuth" : "clientAuth"},
           {NID_subject_key_identifier, "hash"},
           {NID_authority_key_identifier, "keyid:always"},
           {NID_subject_alt_name, AlternativeNames(request)}}) {
    CISTERN_RETURN_IF_ERROR(AddExtension(certificate, issuer.get(), nid, value));
  }
  return Sign(certificate, own.get(), signer.get());
}

}  // namespace cistern
