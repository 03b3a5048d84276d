#include "common/tls/certificate.h"

#include <arpa/inet.h>
#include <openssl/x509v3.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/names.h"
#include "common/tls/openssl.h"

namespace cistern {
namespace {

constexpr char kAnyCluster[] = "*";
constexpr int kMaxNames = 1024;  // of a certificate; further ones are ignored

std::string TextOf(const ASN1_STRING* text) {
  return std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                     static_cast<size_t>(ASN1_STRING_length(text)));
}

std::string CommonName(X509* certificate) {
  X509_NAME* const subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0) return "";
  return TextOf(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
}

std::string AddressText(const ASN1_OCTET_STRING* address) {
  char text[INET6_ADDRSTRLEN] = {};
  const int bytes = ASN1_STRING_length(address);
  if (bytes != 4 && bytes != 16) return "";
  inet_ntop(bytes == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(address), text, sizeof(text));
  return text;
}

void AddAlternativeNames(X509* from, Certificate* to) {
  auto* const names =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(from, NID_subject_alt_name, nullptr, nullptr));
  if (names == nullptr) return;
  const int count = std::min(sk_GENERAL_NAME_num(names), kMaxNames);
  for (int i = 0; i < count; ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names, i);
    if (name->type == GEN_DNS) to->hosts.push_back(TextOf(name->d.dNSName));
    if (name->type == GEN_IPADD) to->hosts.push_back(AddressText(name->d.iPAddress));
    if (name->type != GEN_URI) continue;
    const absl::StatusOr<Membership> membership =
        ParseRoleUri(TextOf(name->d.uniformResourceIdentifier));
    if (membership.ok()) to->roles.push_back(*membership);
  }
  GENERAL_NAMES_free(names);
}

absl::Time TimeOf(const ASN1_TIME* time) {
  tm parts = {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return absl::InfinitePast();
  return absl::FromTM(parts, absl::UTCTimeZone());
}

std::string SerialOf(X509* certificate) {
  BIGNUM* const number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr);
  char* const digits = number == nullptr ? nullptr : BN_bn2hex(number);
  const std::string text = digits == nullptr ? "" : digits;
  OPENSSL_free(digits);
  BN_free(number);
  return text;
}

}  // namespace

std::string UriOf(const Membership& membership) {
  return absl::StrCat("cistern://", membership.cluster, "/", NameOf(membership.role));
}

absl::StatusOr<Membership> ParseRoleUri(absl::string_view uri) {
  absl::string_view rest = uri;
  const bool ours = absl::ConsumePrefix(&rest, "cistern://");
  const std::vector<std::string> parts = absl::StrSplit(rest, '/');
  if (!ours || parts.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", uri, "' is not of the form cistern://CLUSTER/ROLE"));
  }
  if (parts[0] != kAnyCluster) CISTERN_RETURN_IF_ERROR(CheckName(parts[0]));
  CISTERN_ASSIGN_OR_RETURN(const Role role, ParseRole(parts[1]));
  return Membership{parts[0], role};
}

bool Certificate::May(Role role, absl::string_view cluster) const {
  return std::any_of(roles.begin(), roles.end(), [&](const Membership& held) {
    return (held.cluster == kAnyCluster || held.cluster == cluster) && Permits(held.role, role);
  });
}

std::string Certificate::RolesOn(absl::string_view cluster) const {
  std::vector<absl::string_view> names;
  for (const Membership& held : roles) {
    if (held.cluster == kAnyCluster || held.cluster == cluster) names.push_back(NameOf(held.role));
  }
  return names.empty() ? "none" : absl::StrJoin(names, " and ");
}

absl::StatusOr<Certificate> ParseCertificate(absl::string_view pem) {
  const OpenSslPtr<X509> read = ReadCertificate(pem);
  if (read == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("holds no PEM certificate (", OpenSslError(), ")"));
  }
  Certificate certificate;
  certificate.name = CommonName(read.get());
  if (certificate.name.empty()) {
    return absl::InvalidArgumentError("the certificate has no common name");
  }
  AddAlternativeNames(read.get(), &certificate);
  certificate.valid_from = TimeOf(X509_get0_notBefore(read.get()));
  certificate.valid_until = TimeOf(X509_get0_notAfter(read.get()));
  certificate.serial = SerialOf(read.get());
  certificate.is_authority = X509_check_ca(read.get()) == 1;
  return certificate;
}

}  // namespace cistern
