// Names in /dev/shm: those that a killed program left are removed by the next one, and no others.
#include "comm/shm/shared_segment.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

using namespace lockstep;

namespace {

// A process that has made a segment's name, and locked it, and lives until it is killed.
class Creator {
 public:
  explicit Creator(const std::string& name) : path_("/dev/shm/" + name) {
    int ready[2];
    REQUIRE(pipe(ready) == 0);
    process_ = fork();
    if (process_ == 0) {
      const int file = shm_open(("/" + name).c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
      flock(file, LOCK_EX);
      if (write(ready[1], "r", 1) != 1) _exit(1);
      pause();
      _exit(0);
    }
    char word = 0;
    REQUIRE(read(ready[0], &word, 1) == 1);
    close(ready[0]), close(ready[1]);
  }
  ~Creator() {
    die();
    std::filesystem::remove(path_);
  }
  void die() {
    if (process_ > 0) kill(process_, SIGKILL), waitpid(process_, nullptr, 0);
    process_ = 0;
  }
  bool there() const { return std::filesystem::exists(path_); }

 private:
  std::string path_;
  pid_t process_ = 0;
};

std::string mine(const char* end) { return "lockstep-" + std::to_string(getpid()) + end; }

}  // namespace

TEST_CASE("names that a killed program left are removed when they are old and no others") {
  Creator left(mine("-0000aaaa")), used(mine("-0000bbbb")), foreign("other-" + mine("-0000cccc"));
  left.die();
  foreign.die();
  remove_leftover_segments();
  CHECK(left.there());  // too young: its creator might be about to lock it
  sleep(11);
  Creator young(mine("-0000dddd"));
  young.die();
  CHECK_GE(remove_leftover_segments(), 1);
  CHECK_FALSE(left.there());
  CHECK(used.there());
  CHECK(foreign.there());
  CHECK(young.there());
}
