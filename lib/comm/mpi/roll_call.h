// Small messages beside the collectives, for waits that take too long: who still answers, and who gave up and why.
// Nobody can see into another process, so a rank that waits too long asks all ranks; those that wait as well answer.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::mpi {

class RollCall {
 public:
  // On a communicator of our own, whose other messages have other tags.
  explicit RollCall(MPI_Comm comm);

  // Answers a rank that asks (once), and returns "rank 1 <its words>" if one gave up, else nothing. Never waits.
  std::string listen();
  // Asks all ranks and listens for a second: who is not heard is the one that all wait for.
  std::vector<int> find_missing();
  // Tells all ranks; the first words count. Never waits.
  void give_up(std::string_view words);

 private:
  static constexpr int longest_words = 400;
  void send_to_all(const void* data, int bytes, int tag);

  MPI_Comm comm_;
  int rank_, size_;
  bool called_ = false;
  std::unique_ptr<char[]> words_;  // once sent they stay until the process ends
};

}  // namespace lockstep::mpi
