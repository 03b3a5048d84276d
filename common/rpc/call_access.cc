#include "common/rpc/call_access.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/call_trace.h"

namespace cistern {
namespace {

// Far more than a fleet has at a time; renewed ones add up over months.
constexpr size_t kMaxParsed = 4096;

absl::string_view PemOf(const grpc::AuthContext& context) {
  const std::vector<grpc::string_ref> found =
      context.FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  return found.empty() ? absl::string_view() : absl::string_view(found[0].data(), found[0].size());
}

}  // namespace

std::string Caller::text() const {
  if (certificate == nullptr) return peer;
  return absl::StrCat("'", certificate->name, "' at ", peer);
}

Caller CallAccess::CallerOf(const grpc::ServerContextBase& context) {
  Caller caller = {context.peer(), nullptr, TraceIdOf(context)};
  if (!checks_) return caller;
  const std::shared_ptr<const grpc::AuthContext> shown = context.auth_context();
  const absl::string_view pem = PemOf(*shown);
  {
    absl::MutexLock lock(&mutex_);
    const auto found = parsed_.find(pem);
    if (found != parsed_.end()) caller.certificate = found->second;
  }
  if (caller.certificate != nullptr) return caller;
  absl::StatusOr<Certificate> parsed = ParseCertificate(pem);
  if (!parsed.ok()) {  // none, or one without a name: it has no roles
    parsed = Certificate();
    parsed->name = "a certificate without a name";
  }
  caller.certificate = std::make_shared<const Certificate>(*std::move(parsed));
  absl::MutexLock lock(&mutex_);
  if (parsed_.size() >= kMaxParsed) parsed_.clear();
  parsed_[pem] = caller.certificate;
  return caller;
}

absl::Status CallAccess::Check(const Caller& caller, absl::string_view method, Role role) const {
  if (!checks_ || caller.certificate->May(role, cluster_)) return absl::OkStatus();
  return WithOptions(WithFix(absl::PermissionDeniedError(absl::StrCat(
                                 method, " needs the role ", NameOf(role), " on cluster '",
                                 cluster_, "'; the certificate '", caller.certificate->name,
                                 "' gives ", caller.certificate->RolesOn(cluster_))),
                             "use a certificate with that role"),
                     {absl::StrCat("certs.issue.role=", NameOf(role))});
}

}  // namespace cistern
