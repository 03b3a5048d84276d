#include "app/certs/certificate_folder.h"

#include <algorithm>

#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/base/names.h"
#include "common/tls/tls_files.h"

namespace cistern::app {
namespace {

constexpr char kAuthority[] = "ca";
constexpr uint64_t kMaxFileBytes = 1 << 20;
constexpr uint64_t kMaxDays = 36500;

std::string CertOf(const std::string& folder, const std::string& name) {
  return absl::StrCat(folder, "/", name, ".crt");
}
std::string KeyOf(const std::string& folder, const std::string& name) {
  return absl::StrCat(folder, "/", name, ".key");
}

absl::StatusOr<absl::Duration> Lifetime(uint64_t days) {
  if (days >= 1 && days <= kMaxDays) return absl::Hours(24 * days);
  return WithOptions(
      absl::InvalidArgumentError(absl::StrCat(days, " days: expected 1 to ", kMaxDays)), {"days"});
}

// Writes a file under its name at once.
absl::Status WriteFile(FileSystem& files, const std::string& path, const std::string& text,
                       bool is_private, bool replace) {
  const std::string draft = path + ".new";
  CISTERN_RETURN_IF_ERROR(RemoveTree(files, draft));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                           is_private ? files.CreatePrivate(draft) : files.Create(draft));
  CISTERN_RETURN_IF_ERROR(file->Append(text));
  CISTERN_RETURN_IF_ERROR(file->Sync());
  CISTERN_RETURN_IF_ERROR(file->Close());
  const absl::Status named = replace ? files.Replace(draft, path) : files.Publish(draft, path);
  if (!named.ok()) static_cast<void>(files.Remove(draft));
  CISTERN_RETURN_IF_ERROR(named);
  return files.SyncFolder(ParentFolder(path));
}

absl::Status WritePair(FileSystem& files, const std::string& folder, const std::string& name,
                       const KeyedCertificate& pair) {
  CISTERN_RETURN_IF_ERROR(WriteFile(files, KeyOf(folder, name), pair.key, true, false));
  return WriteFile(files, CertOf(folder, name), pair.cert, false, false);
}

absl::StatusOr<KeyedCertificate> ReadPair(FileSystem& files, const std::string& folder,
                                          const std::string& name) {
  KeyedCertificate pair;
  CISTERN_ASSIGN_OR_RETURN(pair.cert, ReadWhole(files, CertOf(folder, name), kMaxFileBytes));
  CISTERN_ASSIGN_OR_RETURN(pair.key, ReadWhole(files, KeyOf(folder, name), kMaxFileBytes));
  return pair;
}

absl::StatusOr<KeyedCertificate> AuthorityOf(FileSystem& files, const std::string& folder) {
  absl::StatusOr<KeyedCertificate> pair = ReadPair(files, folder, kAuthority);
  if (!absl::IsNotFound(pair.status())) return pair;
  return WithOptions(WithFix(absl::FailedPreconditionError(
                                 absl::StrCat(folder, " has no authority (ca.crt and ca.key)")),
                             "make one first, or name the folder that has one"),
                     {absl::StrCat("certs.init.certs=", folder)});
}

absl::Status CheckFileName(const std::string& name) {
  CISTERN_RETURN_IF_ERROR(CheckName(name));
  if (name != kAuthority) return absl::OkStatus();
  return absl::InvalidArgumentError("'ca' is the name of the authority; choose another one");
}

// What `certificate` asks for, to sign it again.
CertificateRequest RequestOf(const Certificate& certificate, absl::Duration lifetime) {
  return {certificate.name, certificate.roles, certificate.hosts, lifetime};
}

absl::Status Renew(FileSystem& files, const std::string& folder, const std::string& name,
                   absl::Duration lifetime) {
  CISTERN_ASSIGN_OR_RETURN(const KeyedCertificate authority, AuthorityOf(files, folder));
  CISTERN_ASSIGN_OR_RETURN(const KeyedCertificate before, ReadPair(files, folder, name));
  CISTERN_ASSIGN_OR_RETURN(const Certificate facts, ParseCertificate(before.cert));
  absl::StatusOr<KeyedCertificate> renewed =
      name == kAuthority ? MakeAuthority(facts.name, lifetime, before.key)
                         : Issue(authority, RequestOf(facts, lifetime), before.key);
  if (!renewed.ok()) return renewed.status();
  return WriteFile(files, CertOf(folder, name), renewed->cert, false, true);
}

// The names of the certificates in the folder, the authority first.
absl::StatusOr<std::vector<std::string>> NamesIn(FileSystem& files, const std::string& folder) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> entries, files.List(folder));
  std::vector<std::string> names;
  for (absl::string_view entry : entries) {
    if (absl::ConsumeSuffix(&entry, ".crt") && !entry.empty()) names.emplace_back(entry);
  }
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return name == kAuthority; });
  return names;
}

}  // namespace

absl::StatusOr<Certificate> InitCertificates(FileSystem& files,
                                             const InitCertificatesOptions& options) {
  CISTERN_ASSIGN_OR_RETURN(const absl::Duration lifetime, Lifetime(options.days));
  CISTERN_ASSIGN_OR_RETURN(const KeyedCertificate made, MakeAuthority(options.name, lifetime));
  CISTERN_RETURN_IF_ERROR(files.MakeFolders(options.folder));
  CISTERN_ASSIGN_OR_RETURN(const bool taken, files.Exists(CertOf(options.folder, kAuthority)));
  absl::Status written = taken ? absl::AlreadyExistsError(CertOf(options.folder, kAuthority))
                               : WritePair(files, options.folder, kAuthority, made);
  if (absl::IsAlreadyExists(written)) {
    return WithOptions(
        WithFix(absl::AlreadyExistsError(absl::StrCat(options.folder, " already has an authority")),
                "issue certificates with it, or choose another folder"),
        {"certs"});
  }
  CISTERN_RETURN_IF_ERROR(written);
  return ParseCertificate(made.cert);
}

absl::StatusOr<Certificate> IssueCertificate(FileSystem& files,
                                             const IssueCertificateOptions& options) {
  CISTERN_RETURN_IF_ERROR(CheckFileName(options.name));
  CertificateRequest request;
  request.name = options.name;
  request.hosts = options.hosts;
  CISTERN_ASSIGN_OR_RETURN(request.lifetime, Lifetime(options.days));
  for (const std::string& role : options.roles) {
    absl::StatusOr<Role> parsed = ParseRole(role);
    if (!parsed.ok()) return WithOptions(parsed.status(), {"role"});
    for (const std::string& cluster : options.clusters) request.roles.push_back({cluster, *parsed});
  }
  CISTERN_ASSIGN_OR_RETURN(const KeyedCertificate authority, AuthorityOf(files, options.folder));
  CISTERN_ASSIGN_OR_RETURN(const KeyedCertificate made, Issue(authority, request));
  const absl::Status written = WritePair(files, options.folder, options.name, made);
  if (absl::IsAlreadyExists(written)) {
    return WithOptions(
        WithFix(absl::AlreadyExistsError(absl::StrCat(
                    options.folder, " already has a certificate or key of '", options.name, "'")),
                "renew it, or choose another name"),
        {absl::StrCat("certs.renew.certs=", options.folder)});
  }
  CISTERN_RETURN_IF_ERROR(written);
  return ParseCertificate(made.cert);
}

absl::StatusOr<std::vector<ListedCertificate>> ListCertificates(FileSystem& files,
                                                                const std::string& folder) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(files, folder));
  const absl::StatusOr<std::string> authority =
      ReadWhole(files, CertOf(folder, kAuthority), kMaxFileBytes);
  std::vector<ListedCertificate> listed;
  for (const std::string& name : names) {
    ListedCertificate entry;
    entry.file = name;
    const absl::StatusOr<std::string> pem = ReadWhole(files, CertOf(folder, name), kMaxFileBytes);
    const absl::StatusOr<Certificate> parsed =
        pem.ok() ? ParseCertificate(*pem) : absl::StatusOr<Certificate>(pem.status());
    entry.state = !parsed.ok()      ? parsed.status()
                  : !authority.ok() ? absl::FailedPreconditionError("there is no ca.crt")
                                    : CheckTrusted({*pem, "", *authority});
    if (parsed.ok()) entry.certificate = *parsed;
    listed.push_back(std::move(entry));
  }
  return listed;
}

absl::StatusOr<std::vector<std::string>> RenewCertificates(
    FileSystem& files, const RenewCertificatesOptions& options) {
  CISTERN_ASSIGN_OR_RETURN(const absl::Duration lifetime, Lifetime(options.days));
  CISTERN_RETURN_IF_ERROR(Lifetime(options.within_days).status());
  CISTERN_ASSIGN_OR_RETURN(const std::vector<ListedCertificate> listed,
                           ListCertificates(files, options.folder));
  std::vector<std::string> names = options.names;
  for (const std::string& name : names) {
    if (std::any_of(listed.begin(), listed.end(),
                    [&](const ListedCertificate& entry) { return entry.file == name; })) {
      continue;
    }
    return WithOptions(WithFix(absl::NotFoundError(absl::StrCat(
                                   options.folder, " has no certificate '", name, "'")),
                               "see which there are"),
                       {absl::StrCat("certs.ls.certs=", options.folder)});
  }
  if (names.empty()) {
    const absl::Time soon = absl::Now() + absl::Hours(24 * options.within_days);
    for (const ListedCertificate& entry : listed) {
      const bool signed_here = entry.certificate.valid_until < soon &&
                               !entry.certificate.is_authority && !entry.certificate.roles.empty();
      if (signed_here) names.push_back(entry.file);
    }
  }
  for (const std::string& name : names) {
    CISTERN_RETURN_IF_ERROR(AddContext(Renew(files, options.folder, name, lifetime), name));
  }
  return names;
}

}  // namespace cistern::app
