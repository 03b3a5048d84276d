// The local file system: the effect of each call, and its errors.
#include "common/io/file_system.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <iterator>
#include <thread>

#include "common/io/file.h"
#include "test/support/temp_folder.h"

namespace cistern {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class LocalFiles : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& bytes) {
    const auto file = files_.Create(folder_ / name);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Append(bytes).ok());
    ASSERT_TRUE((*file)->Sync().ok());
    ASSERT_TRUE((*file)->Close().ok());
  }

  void ExpectError(const absl::Status& status, absl::StatusCode code, const std::string& message) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }

  TempFolder folder_;
  LocalFileSystem files_;
};

TEST_F(LocalFiles, AppendedBytesCanBeReadInAnyPart) {
  auto file = files_.Create(folder_ / "a").value();
  for (const char* part : {"hello", "", " ", "world"}) ASSERT_TRUE(file->Append(part).ok());
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(file->Close().ok());
  EXPECT_EQ(ReadBytes(folder_ / "a"), "hello world");
  const auto read = files_.Open(folder_ / "a").value();
  EXPECT_EQ(read->bytes(), 11u);
  char bytes[5];
  ASSERT_TRUE(read->Read(6, 5, bytes).ok());
  EXPECT_EQ(std::string(bytes, 5), "world");
  ExpectError(read->Read(7, 5, bytes), absl::StatusCode::kDataLoss,
              (folder_ / "a") + " ends at byte 11");
}

TEST_F(LocalFiles, ClosedFileRefusesEveryCall) {
  auto file = files_.Create(folder_ / "a").value();
  ASSERT_TRUE(file->Close().ok());
  for (const absl::Status& status : {file->Append("x"), file->Sync(), file->Close()}) {
    ExpectError(status, absl::StatusCode::kFailedPrecondition, (folder_ / "a") + " is closed");
  }
}

TEST_F(LocalFiles, CreateNeverOpensAnExistingFile) {
  Write("a", "1");
  fs::create_symlink(folder_ / "nothing", folder_ / "link");
  for (const char* name : {"a", "link"}) {
    ExpectError(files_.Create(folder_ / name).status(), absl::StatusCode::kAlreadyExists, name);
  }
  EXPECT_EQ(ReadBytes(folder_ / "a"), "1");
  EXPECT_FALSE(fs::exists(folder_ / "nothing"));
}

TEST_F(LocalFiles, OpenAcceptsRegularFilesOnly) {
  Write("a", "1");
  fs::create_directory(folder_ / "folder");
  fs::create_symlink(folder_ / "a", folder_ / "link");
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  for (const char* name : {"folder", "link", "pipe", "a/b"}) {
    ExpectError(files_.Open(folder_ / name).status(), absl::StatusCode::kInvalidArgument,
                folder_ / name == folder_ / "a/b" ? folder_ / "a" : folder_ / name);
  }
  for (const char* name : {"absent", "absent/a"}) {
    ExpectError(files_.Open(folder_ / name).status(), absl::StatusCode::kNotFound, "absent");
  }
}

TEST_F(LocalFiles, PathsMustEndWithAName) {
  for (const FilePath& path : {FilePath(""), FilePath(folder_ / ""), FilePath(folder_ / "."),
                               FilePath(folder_ / ".."), PathBelow(folder_.path(), "../x"),
                               PathBelow(folder_.path(), "a/"), PathBelow(folder_.path(), "a//b"),
                               PathBelow(folder_.path(), "/a"), FilePath(std::string("a\0b", 3))}) {
    EXPECT_EQ(files_.Create(path).status().code(), absl::StatusCode::kInvalidArgument)
        << path.text();
    EXPECT_EQ(files_.Remove(path).code(), absl::StatusCode::kInvalidArgument) << path.text();
  }
}

TEST_F(LocalFiles, PathBelowDoesNotFollowLinks) {
  TempFolder outside;
  WriteBytes(outside / "a", "1");
  fs::create_directory_symlink(outside.path(), folder_ / "t");
  EXPECT_TRUE(files_.Open(folder_ / "t/a").ok());  // a folder that the user chose may be a link
  const FilePath below = PathBelow(folder_.path(), "t/a");
  ExpectError(files_.Open(below).status(), absl::StatusCode::kInvalidArgument, folder_ / "t");
  ExpectError(files_.Create(PathBelow(folder_.path(), "t/b")).status(),
              absl::StatusCode::kInvalidArgument, folder_ / "t");
  ExpectError(files_.Remove(below), absl::StatusCode::kInvalidArgument, folder_ / "t");
  EXPECT_TRUE(fs::exists(outside / "a"));
  EXPECT_FALSE(fs::exists(outside / "b"));
  fs::create_directory(folder_ / "real");
  ASSERT_TRUE(files_.Create(PathBelow(folder_.path(), "real/a")).ok());
  EXPECT_TRUE(fs::exists(folder_ / "real/a"));
  // Below a path below: still none after the folder that the user chose.
  const FilePath deeper = PathBelow(PathBelow(folder_.path(), "t"), "a");
  EXPECT_EQ(deeper.text(), folder_ / "t/a");
  ExpectError(files_.Open(deeper).status(), absl::StatusCode::kInvalidArgument, folder_ / "t");
}

// What each call that takes a folder does below a chosen one. outside: a folder that no call may
// reach; it holds the file "a".
void ExpectFolderCallsStayBelow(LocalFileSystem& files, const TempFolder& root,
                                const TempFolder& outside) {
  const auto below = [&](const std::string& name) { return PathBelow(root.path(), name); };
  for (const char* name : {"link", "link/b", "real/link", "real/link/b/c"}) {
    for (const absl::Status& status :
         {files.MakeFolders(below(name)), files.SyncFolder(below(name)),
          files.List(below(name)).status(), files.Create(below(absl::StrCat(name, "/x"))).status(),
          files.Exists(below(absl::StrCat(name, "/a"))).status()}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name << ": " << status;
    }
  }
  EXPECT_THAT(files.List(outside.path()).value(), ElementsAre("a"));
  EXPECT_TRUE(files.Exists(below("link")).value());  // the name itself
  EXPECT_FALSE(files.Exists(below("none/a")).value());
  EXPECT_EQ(files.List(below("none")).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(files.MakeFolders(below("real/made/b")).ok());
  ASSERT_TRUE(files.MakeFolders(below("real/made/b")).ok());
  EXPECT_TRUE(files.SyncFolder(below("real/made")).ok());
  EXPECT_THAT(files.List(below("real/made")).value(), ElementsAre("b"));
  EXPECT_TRUE(files.Create(below("real/made/b/file")).ok());
  EXPECT_EQ(files.MakeFolders(below("real/made/b/file")).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(files.MakeFolders(below("real/../x")).code(), absl::StatusCode::kInvalidArgument);
}

// Two folders and two links to `outside`.
void MakeLinksTo(const TempFolder& outside, const TempFolder& root) {
  WriteBytes(outside / "a", "1");
  fs::create_directory(root / "real");
  fs::create_directory_symlink(outside.path(), root / "link");
  fs::create_directory_symlink(outside.path(), root / "real/link");
}

TEST_F(LocalFiles, CallsOfFoldersStayBelowAChosenOne) {
  TempFolder outside;
  MakeLinksTo(outside, folder_);
  ExpectFolderCallsStayBelow(files_, folder_, outside);
}

// From now on openat2 fails in this process, as with kernels before 5.6.
bool ForbidOpenat2() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program = {std::size(code), code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return false;
  return syscall(SYS_openat2, AT_FDCWD, ".", nullptr, 0) == -1 && errno == ENOSYS;
}

TEST_F(LocalFiles, CallsOfFoldersStayBelowAChosenOneOnOldKernels) {
  TempFolder outside;
  MakeLinksTo(outside, folder_);
  const pid_t child = fork();
  if (child == 0) {
    if (!ForbidOpenat2()) _exit(2);
    ExpectFolderCallsStayBelow(files_, folder_, outside);
    _exit(HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "this process may not filter its system calls";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// A folder and a link to another one change places as fast as they can.
TEST_F(LocalFiles, LinksThatAppearMeanwhileAreNotFollowed) {
  TempFolder outside;
  fs::create_directory(outside / "deep");
  fs::create_directories(folder_ / "t/deep");
  fs::create_directory_symlink(outside.path(), folder_ / "link");
  std::atomic<bool> done = false;
  std::thread swapper([&] {
    const std::string folder = folder_ / "t", link = folder_ / "link";
    while (!done) {
      renameat2(AT_FDCWD, folder.c_str(), AT_FDCWD, link.c_str(), RENAME_EXCHANGE);
    }
  });
  const auto below = [&](const std::string& name) { return PathBelow(folder_.path(), name); };
  int reached = 0, refused = 0;
  for (int i = 0; i < 2000; ++i) {
    const absl::Status made = files_.MakeFolders(below(absl::StrCat("t/deep/", i % 100)));
    ++(made.ok() ? reached : refused);
    files_.Create(below(absl::StrCat("t/deep/file", i % 100))).IgnoreError();
    files_.Create(below(absl::StrCat("t/file", i % 100))).IgnoreError();
    if (const auto names = files_.List(below("t")); names.ok()) {
      EXPECT_THAT(*names, testing::Contains("deep"));
    }
  }
  done = true;
  swapper.join();
  EXPECT_GT(reached, 0);
  EXPECT_GT(refused, 0);
  EXPECT_THAT(files_.List(outside.path()).value(), ElementsAre("deep"));
  EXPECT_TRUE(fs::is_empty(outside / "deep"));
}

TEST_F(LocalFiles, TwoSlashesAreOne) {
  TempFolder outside;
  WriteBytes(outside / "a", "1");
  fs::create_directory_symlink(outside.path(), folder_ / "t");
  EXPECT_TRUE(files_.Open(folder_.path() + "//t//a").ok());
  EXPECT_TRUE(files_.Open(folder_ / "t///a").ok());
  ASSERT_TRUE(files_.MakeFolders(folder_.path() + "//t//made").ok());
  EXPECT_TRUE(fs::exists(outside / "made"));
  ASSERT_TRUE(files_.Replace(folder_.path() + "//t//a", folder_ / "t/b").ok());
  EXPECT_TRUE(fs::exists(outside / "b"));
}

TEST_F(LocalFiles, RemovesATreeBelowALinkThatTheUserChose) {
  TempFolder outside;
  fs::create_directories(outside / "a/b");
  WriteBytes(outside / "a/b/c", "1");
  fs::create_directory_symlink(outside.path(), folder_ / "t");
  ASSERT_TRUE(RemoveTree(files_, folder_.path() + "//t//a").ok());
  EXPECT_FALSE(fs::exists(outside / "a"));
}

TEST_F(LocalFiles, PublishNeverReplaces) {
  Write("new", "2");
  ASSERT_TRUE(files_.Publish(folder_ / "new", folder_ / "a").ok());
  EXPECT_EQ(ReadBytes(folder_ / "a"), "2");
  EXPECT_FALSE(fs::exists(folder_ / "new"));
  Write("new", "3");
  ExpectError(files_.Publish(folder_ / "new", folder_ / "a"), absl::StatusCode::kAlreadyExists,
              folder_ / "a");
  EXPECT_EQ(ReadBytes(folder_ / "a"), "2");
  EXPECT_EQ(ReadBytes(folder_ / "new"), "3");
  ExpectError(files_.Publish(folder_ / "absent", folder_ / "b"), absl::StatusCode::kNotFound, "b");
}

// If many processes publish the same name, exactly one succeeds.
TEST_F(LocalFiles, PublishHasOneWinner) {
  constexpr int kWriters = 8;
  for (int round = 0; round < 20; ++round) {
    const std::string name = absl::StrCat("round-", round);
    std::vector<pid_t> children;
    for (int i = 0; i < kWriters; ++i) {
      WriteBytes(folder_ / absl::StrCat(name, ".", i), absl::StrCat(i));
      const pid_t child = fork();
      if (child == 0) {
        LocalFileSystem files;
        const absl::Status status =
            files.Publish(folder_ / absl::StrCat(name, ".", i), folder_ / name);
        _exit(status.ok() ? 0 : absl::IsAlreadyExists(status) ? 1 : 2);
      }
      children.push_back(child);
    }
    std::vector<int> winners;
    for (int i = 0; i < kWriters; ++i) {
      int status = 0;
      waitpid(children[i], &status, 0);
      ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) < 2);
      if (WEXITSTATUS(status) == 0) winners.push_back(i);
    }
    ASSERT_EQ(winners.size(), 1u);
    EXPECT_EQ(ReadBytes(folder_ / name), absl::StrCat(winners[0]));
  }
}

TEST_F(LocalFiles, ReplaceOverwritesAnExistingName) {
  Write("new", "2");
  Write("a", "1");
  ASSERT_TRUE(files_.Replace(folder_ / "new", folder_ / "a").ok());
  EXPECT_EQ(ReadBytes(folder_ / "a"), "2");
  fs::create_directories(folder_ / "folder/inside");
  ASSERT_TRUE(files_.Replace(folder_ / "folder", folder_ / "other").ok());
  EXPECT_TRUE(fs::exists(folder_ / "other/inside"));
}

TEST_F(LocalFiles, RenameIntoAnotherFolderIsRefused) {
  fs::create_directory(folder_ / "t");
  Write("a", "1");
  for (const std::string& to : {folder_ / "t/a", folder_ / "t/", std::string("a")}) {
    EXPECT_EQ(files_.Publish(folder_ / "a", to).code(), absl::StatusCode::kInvalidArgument) << to;
    EXPECT_EQ(files_.Replace(folder_ / "a", to).code(), absl::StatusCode::kInvalidArgument) << to;
  }
}

TEST_F(LocalFiles, RemovesFilesAndEmptyFolders) {
  fs::create_directory(folder_ / "t");
  Write("t/a", "1");
  EXPECT_FALSE(files_.Remove(folder_ / "t").ok());
  ASSERT_TRUE(files_.Remove(folder_ / "t/a").ok());
  ASSERT_TRUE(files_.Remove(folder_ / "t").ok());
  ExpectError(files_.Remove(folder_ / "t"), absl::StatusCode::kNotFound, folder_ / "t");
}

TEST_F(LocalFiles, FoldersAreCreatedListedAndSynced) {
  EXPECT_EQ(files_.List(folder_ / "t").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(files_.SyncFolder(folder_ / "t").code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(files_.MakeFolders(folder_ / "t/u").ok());
  ASSERT_TRUE(files_.MakeFolders(folder_ / "t/u").ok());
  Write("t/c", "");
  Write("t/a", "");
  EXPECT_THAT(files_.List(folder_ / "t").value(), ElementsAre("a", "c", "u"));
  EXPECT_TRUE(files_.SyncFolder(folder_ / "t").ok());
  ExpectError(files_.MakeFolders(folder_ / "t/a/b"), absl::StatusCode::kInvalidArgument, "t/a");
  // A file system that does not support new folders returns ENOENT.
  ExpectError(files_.MakeFolders("s3://bucket/a"), absl::StatusCode::kInvalidArgument,
              "s3://bucket/a is not on this machine");
  ExpectError(files_.MakeFolders("/proc/cistern/a"), absl::StatusCode::kNotFound, "/proc/cistern");
}

TEST_F(LocalFiles, ExistsSeesEveryKindOfName) {
  Write("a", "");
  fs::create_symlink(folder_ / "nothing", folder_ / "link");
  EXPECT_TRUE(files_.Exists(folder_ / "a").value());
  EXPECT_TRUE(files_.Exists(folder_ / "link").value());
  EXPECT_TRUE(files_.Exists(folder_.path()).value());
  EXPECT_FALSE(files_.Exists(folder_ / "b").value());
  EXPECT_FALSE(files_.Exists(folder_ / "b/c").value());
}

TEST_F(LocalFiles, LockHasOneHolder) {
  auto lock = files_.Lock(folder_ / "lock");
  ASSERT_TRUE(lock.ok()) << lock.status();
  ExpectError(files_.Lock(folder_ / "lock").status(), absl::StatusCode::kFailedPrecondition,
              folder_ / "lock");
  lock->reset();
  EXPECT_TRUE(files_.Lock(folder_ / "lock").ok());
}

TEST_F(LocalFiles, LockEndsWithItsProcess) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    LocalFileSystem files;
    const auto lock = files.Lock(folder_ / "lock");
    if (write(ready[1], "", 1) != 1 || !lock.ok()) _exit(1);
    while (true) pause();
  }
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_FALSE(files_.Lock(folder_ / "lock").ok());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(files_.Lock(folder_ / "lock").ok());
  close(ready[0]);
  close(ready[1]);
}

TEST(LockError, SaysWhatToDoWhereFilesCannotBeLocked) {
  for (const int error : {ENOLCK, EOPNOTSUPP, ENOSYS}) {
    const std::string message(LockError(error, "state/lock-0").message());
    EXPECT_THAT(message, testing::AllOf(HasSubstr("state/lock-0"), HasSubstr("NFS as version 4"),
                                        HasSubstr("local_lock"), HasSubstr("choose a folder")));
  }
  EXPECT_EQ(std::string(LockError(EIO, "a").message()).find("NFS"), std::string::npos);
}

TEST(ErrnoStatus, CodesTellTheCause) {
  const auto code = [](int error) { return ErrnoStatus(error, "open", "x").code(); };
  EXPECT_EQ(code(ENOSPC), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code(EMFILE), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code(ENOENT), absl::StatusCode::kNotFound);
  for (const int error : {EACCES, EPERM, EROFS}) {
    EXPECT_EQ(code(error), absl::StatusCode::kPermissionDenied);
  }
  EXPECT_EQ(code(EIO), absl::StatusCode::kInternal);
}

// Opening never blocks, whatever process has the other end open.
TEST_F(LocalFiles, OnlyRegularFilesAreOpened) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  const int bound = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  const std::string socket_path = folder_ / "socket";
  ASSERT_LT(socket_path.size(), sizeof(name.sun_path));
  socket_path.copy(name.sun_path, socket_path.size());
  ASSERT_EQ(bind(bound, reinterpret_cast<const sockaddr*>(&name), sizeof(name)), 0);
  fs::create_symlink("pipe", folder_ / "link");
  const std::vector<std::pair<std::string, std::string>> kinds = {
      {folder_ / "pipe", "a FIFO (a named pipe)"},
      {folder_ / "link", "a FIFO (a named pipe)"},
      {socket_path, "a socket"},
      {folder_.path(), "a folder"},
      {"/dev/zero", "a device"}};
  for (const auto& [path, kind] : kinds) {
    ExpectError(OpenFile(path).status(), absl::StatusCode::kInvalidArgument,
                absl::StrCat(path, " is ", kind, ", not a regular file"));
  }
  for (const char* name_below : {"pipe", "socket"}) {
    ExpectError(files_.Open(folder_ / name_below).status(), absl::StatusCode::kInvalidArgument,
                "not a regular file");
  }
  close(bound);
}

TEST_F(LocalFiles, OverlongPathIsReportedWithTheLimits) {
  const std::string path = folder_ / std::string(5000, 'x');
  const std::string message = absl::StrCat("the path has ", path.size(), " bytes; the limit is ");
  ExpectError(OpenFile(path).status(), absl::StatusCode::kInvalidArgument, message);
  ExpectError(files_.MakeFolders(path), absl::StatusCode::kInvalidArgument, message);
  ExpectError(files_.Create(folder_ / std::string(300, 'x')).status(),
              absl::StatusCode::kInvalidArgument, "255 for each name in it");
}

TEST_F(LocalFiles, ReadFileIsBounded) {
  Write("a", "12345");
  EXPECT_EQ(ReadFile(folder_ / "a", 5).value(), "12345");
  ExpectError(ReadFile(folder_ / "a", 4).status(), absl::StatusCode::kResourceExhausted,
              "has 5 bytes; at most 4 are read");
}

TEST_F(LocalFiles, ReadWholeIsBounded) {
  Write("a", "12345");
  EXPECT_EQ(ReadWhole(files_, folder_ / "a", 5).value(), "12345");
  ExpectError(ReadWhole(files_, folder_ / "a", 4).status(), absl::StatusCode::kResourceExhausted,
              folder_ / "a");
}

// The first error is sticky: a file that lost bytes never appears complete again.
TEST_F(LocalFiles, ErrorOfAFileIsSticky) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {4096, 4096};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(1);
    LocalFileSystem files;
    for (const bool at_once : {true, false}) {
      auto file = files.Create(folder_ / (at_once ? "a" : "b")).value();
      if (at_once) file->WillBeRead();
      const absl::Status appended = file->Append(std::string(5000, 'x'));
      const absl::Status status = at_once ? appended : file->Sync();  // at the latest by Sync
      if (!absl::IsResourceExhausted(status)) _exit(2);
      for (const char* words : {"beyond byte 4096", "files of 4096 bytes", "ulimit -f"}) {
        if (status.message().find(words) == absl::string_view::npos) _exit(3);
      }
      if (file->Append("y") != status || file->Sync() != status) _exit(4);
      if (file->Close() != status) _exit(5);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace cistern
