#include "cli/command/commands.h"

#include <memory>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "app/certs/certificate_folder.h"
#include "cli/terminal/aligned_text.h"

namespace cistern::cli {
namespace {

std::string DateOf(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d", time, absl::UTCTimeZone());
}

std::string RolesText(const Certificate& certificate) {
  if (certificate.is_authority) return "authority";
  return absl::StrJoin(certificate.roles, " ", [](std::string* to, const Membership& held) {
    absl::StrAppend(to, NameOf(held.role), "@", held.cluster);
  });
}

nlohmann::ordered_json JsonOf(const Certificate& certificate) {
  nlohmann::ordered_json json;
  json["name"] = certificate.name;
  json["authority"] = certificate.is_authority;
  json["roles"] = nlohmann::ordered_json::array();
  for (const Membership& held : certificate.roles) {
    json["roles"].push_back({{"role", std::string(NameOf(held.role))}, {"cluster", held.cluster}});
  }
  json["hosts"] = certificate.hosts;
  json["serial"] = certificate.serial;
  json["valid_from"] =
      absl::FormatTime(absl::RFC3339_sec, certificate.valid_from, absl::UTCTimeZone());
  json["valid_until"] =
      absl::FormatTime(absl::RFC3339_sec, certificate.valid_until, absl::UTCTimeZone());
  return json;
}

Report MadeReport(const std::string& folder, const std::string& file,
                  const Certificate& certificate) {
  Report report;
  report.json = JsonOf(certificate);
  report.json["cert"] = absl::StrCat(folder, "/", file, ".crt");
  report.json["key"] = absl::StrCat(folder, "/", file, ".key");
  report.text =
      absl::StrCat(folder, "/", file, ".crt and .key: ", RolesText(certificate),
                   certificate.hosts.empty() ? "" : ", at ", absl::StrJoin(certificate.hosts, ", "),
                   ", until ", DateOf(certificate.valid_until), "\n");
  return report;
}

void AddFolderFlag(Command& command, std::string* folder) {
  *folder = "certs";
  command.Flag("--certs", folder,
               {"DIR", "The folder of the authority and its certificates.", "--certs certs"});
}

void AddDaysFlag(Command& command, uint64_t* days) {
  command.Flag("--days", days, {"INT", "Days until it expires.", "--days 30"});
}

void AddInit(Command& certs) {
  auto options = std::make_shared<app::InitCertificatesOptions>();
  Command& command = certs.Add("init", "Makes an authority: the folder, ca.crt and ca.key.",
                               "cistern certs init --certs certs");
  AddFolderFlag(command, &options->folder);
  command.Flag("--name", &options->name,
               {"NAME", "The name of the authority.", "--name 'Ads fleet'"});
  AddDaysFlag(command, &options->days);
  command.Does([options](Console&) -> absl::StatusOr<Report> {
    LocalFileSystem files;
    CISTERN_ASSIGN_OR_RETURN(const Certificate made, app::InitCertificates(files, *options));
    return MadeReport(options->folder, "ca", made);
  });
}

void AddIssue(Command& certs) {
  auto options = std::make_shared<app::IssueCertificateOptions>();
  Command& command = certs.Add("issue", "Signs a certificate for a server, a worker or a person.",
                               "cistern certs issue server-0 --role server --hosts ps-0,10.0.0.7");
  command.Argument(
      "NAME", &options->name,
      {"NAME", "Whose certificate it is; also the name of its files.", "server-0", kRequired});
  command.List("--role", &options->roles, true,
               {"ROLE,...",
                "server: answers calls; reader: pulls and asks for the status; worker: also "
                "trains; admin: also saves, loads, clears, shrinks and scrubs.",
                "--role worker", kRequired});
  command.List("--hosts", &options->hosts, true,
               {"HOST,...", "Host names and IP addresses at which callers reach a server.",
                "--hosts ps-0,10.0.0.7"});
  command.List("--cluster", &options->clusters, true,
               {"NAME,...", "The clusters on which it has its role; *: all.", "--cluster ads"});
  AddDaysFlag(command, &options->days);
  AddFolderFlag(command, &options->folder);
  command.Does([options](Console&) -> absl::StatusOr<Report> {
    LocalFileSystem files;
    CISTERN_ASSIGN_OR_RETURN(const Certificate made, app::IssueCertificate(files, *options));
    return MadeReport(options->folder, options->name, made);
  });
}

Report ListReport(const std::vector<app::ListedCertificate>& listed) {
  Report report;
  report.json["certificates"] = nlohmann::ordered_json::array();
  std::vector<std::vector<std::string>> rows = {{"NAME", "ROLES", "HOSTS", "UNTIL", "STATE"}};
  for (const app::ListedCertificate& entry : listed) {
    nlohmann::ordered_json json = JsonOf(entry.certificate);
    json["file"] = entry.file;
    json["accepted"] = entry.state.ok();
    if (!entry.state.ok()) json["error"] = std::string(entry.state.message());
    report.json["certificates"].push_back(json);
    rows.push_back({entry.file, RolesText(entry.certificate),
                    absl::StrJoin(entry.certificate.hosts, ","),
                    DateOf(entry.certificate.valid_until),
                    entry.state.ok() ? "accepted" : std::string(entry.state.message())});
  }
  report.text = AlignedText(rows);
  return report;
}

void AddLs(Command& certs) {
  auto folder = std::make_shared<std::string>();
  Command& command = certs.Add("ls",
                               "Lists certificates: roles, hosts, expiry, and whether they "
                               "are accepted now.",
                               "cistern certs ls --certs certs");
  AddFolderFlag(command, folder.get());
  command.Does([folder](Console&) -> absl::StatusOr<Report> {
    LocalFileSystem files;
    CISTERN_ASSIGN_OR_RETURN(const std::vector<app::ListedCertificate> listed,
                             app::ListCertificates(files, *folder));
    return ListReport(listed);
  });
}

void AddRenew(Command& certs) {
  auto options = std::make_shared<app::RenewCertificatesOptions>();
  Command& command = certs.Add("renew", "Signs certificates anew, with the same keys.",
                               "cistern certs renew --within 30");
  command.Arguments(
      "NAME", &options->names,
      {"NAME,...", "Which; by default all that expire soon. ca: the authority.", "server-0"});
  command.Flag("--within", &options->within_days,
               {"INT", "Without names: those that expire within this many days.", "--within 14"});
  AddDaysFlag(command, &options->days);
  AddFolderFlag(command, &options->folder);
  command.Footer(
      "Running servers and workers read replaced files by themselves; new connections use them.");
  command.Does([options](Console&) -> absl::StatusOr<Report> {
    LocalFileSystem files;
    CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> renewed,
                             app::RenewCertificates(files, *options));
    Report report;
    report.json["renewed"] = renewed;
    report.text = renewed.empty() ? "none expires soon\n"
                                  : absl::StrCat("renewed: ", absl::StrJoin(renewed, ", "), "\n");
    return report;
  });
}

}  // namespace

void AddCertsCommand(Command& root) {
  Command& certs =
      root.Add("certs", "Makes and renews the certificates of a fleet behind TLS.", "");
  AddInit(certs);
  AddIssue(certs);
  AddLs(certs);
  AddRenew(certs);
}

}  // namespace cistern::cli
