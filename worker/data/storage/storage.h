// Where data sets are: files of this machine, object stores and HDFS, by the path's scheme.
//
//   data/part-0.norm, file:///data/part-0.norm    this machine
//   s3://bucket/data/part-0.norm                  S3; AWS_ENDPOINT_URL names another server, and so
//   do
//                                                 options: s3://bucket/x?scheme=http&region=y
//   gs://bucket/data/part-0.norm                  Google Cloud Storage
//   hdfs://namenode:8020/data/part-0.norm         HDFS, through the libhdfs of an installed Hadoop
//
// Credentials come from the environment, as the vendors' own tools read them, and never appear in a
// message; a path that contains credentials is refused. Remote errors have the codes of local ones:
// kNotFound, kPermissionDenied; kUnavailable if the server gives no usable answer after retries;
// kUnimplemented in builds without Arrow.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/io/byte_source.h"

namespace cistern::data {

// Whether `path` has the scheme of an object store or of HDFS.
bool IsRemote(absl::string_view path);
// `path` without a leading "file://".
std::string WithoutFileScheme(absl::string_view path);

// Closes the connections to remote servers. A program calls it once, at the end of main, after the
// last reader of remote files is gone; later uses of s3:// fail.
void CloseRemoteStorage();

// Opens a file, or "-" for standard input, and unpacks it if it is compressed
// (common/io/decompressor.h).
absl::StatusOr<std::unique_ptr<ByteSource>> OpenSource(const std::string& path);

// The files that `pattern` matches, sorted by name: *, ? and [...] match within one name between
// slashes. Folders do not match. kNotFound if there is none.
absl::StatusOr<std::vector<std::string>> MatchingFiles(const std::string& pattern);

// Whether `path` has one of the characters * ? [ of a pattern. In a remote path, ? begins options.
bool IsPattern(absl::string_view path);

// Expands braces, as bash does: part-{000..127}.tar, {a,b}/x, {0..100..10}, {c..a}. A range keeps
// the width of its bounds; {x}, without a choice, stays as it is. kInvalidArgument: braces that do
// not match, a range that is neither of numbers nor of letters, or more than a million names.
absl::StatusOr<std::vector<std::string>> ExpandBraces(absl::string_view text);

// Splits at commas outside braces.
std::vector<std::string> SplitOutsideBraces(absl::string_view text);

}  // namespace cistern::data
