#include "worker/data/format/file_list.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/io/file.h"
#include "common/io/new_file.h"
#include "worker/data/format/bad_data.h"
#include "worker/data/format/byte_stream.h"
#include "worker/data/storage/path_list.h"
#include "worker/data/storage/storage.h"

namespace cistern::data {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";  // some editors write it

// Enough that a tar header, which can begin with a long name of digits, shows its zero bytes.
constexpr size_t kFirstBytesOfList = 512;
constexpr size_t kListBytesMax = size_t{64} << 20;

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// A list is text that begins with a number. Data files have zero bytes near the start (Norm, Raw,
// tar) or begin with letters (Parquet).
bool LooksLikeList(absl::string_view begin) {
  absl::ConsumePrefix(&begin, kByteOrderMark);
  if (begin.find('\0') != absl::string_view::npos) return false;
  begin = absl::StripLeadingAsciiWhitespace(begin);
  return !begin.empty() && absl::ascii_isdigit(begin[0]);
}

// The path of `name` from `list`; empty if no such file exists. Remote files are not looked up: a
// list can have thousands.
std::string Resolve(const std::string& list, const std::string& name) {
  if (IsRemote(name)) return name;
  const fs::path folder = fs::path(list).parent_path();
  if (IsRemote(list)) return absl::StrCat(list.substr(0, list.rfind('/') + 1), name);
  const fs::path path(name);
  if (path.is_absolute()) return Exists(path) ? name : "";
  const std::string beside = (folder / path).string();
  const bool bare = name.find('/') == std::string::npos;
  const std::string& first = bare ? beside : name;
  const std::string& second = bare ? name : beside;
  return Exists(first) ? first : Exists(second) ? second : "";
}

absl::Status AppendList(const std::string& list, absl::string_view text, bool keep_missing,
                        std::vector<std::string>* paths) {
  absl::ConsumePrefix(&text, kByteOrderMark);
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  uint64_t count = 0;
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(lines[0]), &count)) {
    return absl::DataLossError(
        absl::StrCat(list, ": line 1 of a file list must be the number of files, not '",
                     absl::StripAsciiWhitespace(lines[0]).substr(0, 40), "'"));
  }
  uint64_t found = 0;
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::string name(absl::StripAsciiWhitespace(lines[i]));
    if (name.empty()) continue;
    if (++found > count) continue;
    std::string path = Resolve(list, WithoutFileScheme(name));
    if (path.empty() && keep_missing) path = name;
    if (path.empty()) {
      const absl::Status opened = OpenFile(name).status();
      if (absl::IsInvalidArgument(opened)) {  // not only missing: the name is too long, or so
        return AddContext(opened, absl::StrCat(list, ": line ", i + 1));
      }
      return absl::NotFoundError(
          absl::StrCat(list, ": line ", i + 1, ": no file '", name,
                       "' in the current directory or in the list's folder"));
    }
    paths->push_back(std::move(path));
  }
  if (found == count) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(list, ": line 1 declares ", count, " files, but ", found,
                                          " paths follow: correct the number"));
}

// Opens `source` and reads its first bytes, of which it has at least one.
absl::StatusOr<std::unique_ptr<ByteStream>> OpenNotEmpty(const std::string& source) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> stream, ByteStream::Open(source));
  CISTERN_RETURN_IF_ERROR(stream->Fill(kFirstBytesOfList));
  if (stream->available() > 0) return stream;
  return absl::DataLossError(
      absl::StrCat(source, " is empty: neither a file list nor a data file"));
}

// keep_missing: for what a list in `source` names. keep_bad: `source` itself stays in the result if
// its first bytes cannot be read, so that its reader reports it.
absl::Status AppendSource(const std::string& source, bool keep_missing, bool keep_bad,
                          std::vector<std::string>* paths) {
  absl::StatusOr<std::unique_ptr<ByteStream>> opened = OpenNotEmpty(source);
  if (keep_bad && IsBadData(opened.status())) {
    paths->push_back(source);
    return absl::OkStatus();
  }
  CISTERN_RETURN_IF_ERROR(opened.status());
  const std::unique_ptr<ByteStream> stream = *std::move(opened);
  if (!LooksLikeList({stream->data(), std::min<size_t>(kFirstBytesOfList, stream->available())})) {
    paths->push_back(source);
    return absl::OkStatus();
  }
  CISTERN_RETURN_IF_ERROR(stream->Fill(kListBytesMax));
  if (!stream->at_end()) {
    return absl::DataLossError(absl::StrCat(source, ": too long for a file list (64 MiB)"));
  }
  return AppendList(source, {stream->data(), stream->available()}, keep_missing, paths);
}

// The files of a pattern are data files, in the order of the braces, then of their names.
absl::Status AppendPattern(const std::string& pattern, std::vector<std::string>* paths) {
  CISTERN_ASSIGN_OR_RETURN(std::vector<std::string> names, ExpandBraces(pattern));
  for (std::string& name : names) {
    if (!IsPattern(name)) {
      paths->push_back(std::move(name));
      continue;
    }
    CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> found, MatchingFiles(name));
    paths->insert(paths->end(), found.begin(), found.end());
  }
  return absl::OkStatus();
}

// The sources that `source` joins by commas.
std::vector<std::string> PartsOfSource(const std::string& source) {
  if (Exists(source)) return {source};  // as it stands, even with a space at an end
  std::vector<std::string> parts;
  for (const std::string& part : SplitPaths(source)) {
    parts.push_back(WithoutFileScheme(absl::StripAsciiWhitespace(part)));
  }
  return parts;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ReadFileList(const std::string& source,
                                                      bool keep_missing) {
  std::vector<std::string> paths;
  const std::vector<std::string> parts = PartsOfSource(source);
  const bool keep_bad = keep_missing && parts.size() > 1;
  for (const std::string& name : parts) {
    if (name.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("data source '", source, "' contains an empty name"));
    }
    if (Exists(name) || !(IsPattern(name) || absl::StrContains(name, '{'))) {
      CISTERN_RETURN_IF_ERROR(AppendSource(name, keep_missing, keep_bad, &paths));
    } else {
      CISTERN_RETURN_IF_ERROR(AppendPattern(name, &paths));
    }
  }
  return paths;
}

std::vector<std::string> FilesOfSource(const std::string& source) {
  std::vector<std::string> files = PartsOfSource(source);
  const absl::StatusOr<std::vector<std::string>> named = ReadFileList(source);
  if (named.ok()) files.insert(files.end(), named->begin(), named->end());
  return files;
}

std::string BinaryHint(absl::string_view begin) {
  const auto begins_with = [&](absl::string_view bytes) {
    return begin.substr(0, bytes.size()) == bytes;
  };
  if (begins_with("\x1f\x8b")) return "; it is compressed with gzip: decompress it";
  if (begins_with("\x28\xb5\x2f\xfd")) return "; it is compressed with zstd: decompress it";
  if (begins_with("\xfd"
                  "7zXZ"))
    return "; it is compressed with xz: decompress it";
  if (begins_with("BZh")) return "; it is compressed with bzip2: decompress it";
  if (begins_with("\x04\x22\x4d\x18")) return "; it is compressed with lz4: decompress it (lz4 -d)";
  if (begins_with("\x1f\x9d")) return "; it is compressed with compress: decompress it (gzip -d)";
  if (begins_with("\xff\x06") && absl::StrContains(begin, "sNaPpY")) {
    return "; it is compressed with snappy: decompress it";
  }
  if (begins_with("7z\xbc\xaf") || begins_with("Rar!\x1a")) return "; it is an archive: unpack it";
  constexpr size_t kTarMagic = 257;
  if (begin.size() > kTarMagic && absl::StartsWith(begin.substr(kTarMagic), "ustar")) {
    return "; it is a tar archive: unpack it (tar -xf)";
  }
  if (begins_with("PK\x03\x04") && (absl::StrContains(begin, "[Content_Types].xml") ||
                                    absl::StrContains(begin, "opendocument"))) {
    return "; it is a spreadsheet: save it as CSV";
  }
  if (begins_with("PK\x03\x04")) return "; it is a zip archive: unpack it";
  if (begins_with("PAR1")) return "; it is a Parquet file: set \"format\": \"Parquet\"";
  // These three could begin the names of columns, too.
  const bool is_text = begin.find('\0') == absl::string_view::npos;
  if (!is_text && (begins_with("ARROW1") || begins_with("FEA1"))) {
    return "; it is a Feather or Arrow file: write it as Parquet (in pandas: "
           "pd.read_feather(...).to_parquet(...))";
  }
  if (!is_text && begins_with("ORC")) {
    return "; it is an ORC file: write it as Parquet (in pandas: pd.read_orc(...).to_parquet(...))";
  }
  if (begins_with("Obj\x01")) return "; it is an Avro file: write it as Parquet or JSON Lines";
  if (begins_with("\x89HDF\r\n")) {
    return "; it is an HDF5 file: write it as Parquet (in pandas: "
           "pd.read_hdf(...).to_parquet(...))";
  }
  if (begins_with("SQLite format 3")) {
    return "; it is an SQLite database: write a table as CSV (sqlite3 -header -csv FILE 'select * "
           "from TABLE')";
  }
  if (begins_with("\x93NUMPY")) return "; it is a NumPy array: write it as CSV, with a header line";
  // Protocols 2 to 5, which Python writes since version 2.3.
  if (begin.size() > 1 && begin[0] == '\x80' && begin[1] >= 2 && begin[1] <= 5) {
    return "; it is a Python pickle: write it as Parquet (in pandas: "
           "pd.read_pickle(...).to_parquet(...))";
  }
  if (begins_with("\xff\xfe") || begins_with("\xfe\xff")) {
    return "; it may be UTF-16 text: save it as UTF-8 (iconv -f UTF-16 -t UTF-8)";
  }
  return "";
}

std::string KindHint(absl::string_view begin) {
  if (begin.empty()) return "";
  std::string binary = BinaryHint(begin);
  if (!binary.empty()) return binary;
  const bool is_text = std::all_of(begin.begin(), begin.end(), [](char c) {
    return absl::ascii_isprint(static_cast<unsigned char>(c)) ||
           absl::ascii_isspace(static_cast<unsigned char>(c));
  });
  if (!is_text) return "";
  return "; it is text: convert csv, tsv, libsvm and Criteo text to data files, or predict rows of "
         "text as such; if it is a file list, line 1 must be the "
         "number of files";
}

absl::Status WriteFileList(FileSystem& files, const std::string& path,
                           const std::vector<std::string>& names) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<NewFile> file, NewFile::Create(files, path));
  CISTERN_RETURN_IF_ERROR(file->Append(absl::StrCat(names.size(), "\n")));
  for (const std::string& name : names) {
    CISTERN_RETURN_IF_ERROR(file->Append(absl::StrCat(name, "\n")));
  }
  return file->Close();
}

}  // namespace cistern::data
