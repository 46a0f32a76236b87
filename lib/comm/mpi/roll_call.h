// Small messages beside the collectives, for waits that take too long: who still answers, and who gave up and why.
// Nobody can see into another process, so a rank that waits too long asks all ranks; those that wait as well answer.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::mpi {

class RollCall {
 public:
  // On a communicator of our own, whose other messages have other tags.
  explicit RollCall(MPI_Comm comm);

  // While waiting in collective `sequence`: answers a rank that asks (once), and returns "rank 1 <its words>" once one
  // gave up, until then nothing. Never waits.
  const std::string& listen(uint64_t sequence);
  // Asks all ranks and listens for a second: who is not heard is the one that all wait for.
  std::vector<int> find_missing(uint64_t sequence);
  // Tells all ranks; the first words count. Never waits.
  void give_up(std::string_view words);

 private:
  static constexpr int longest_words = 400;
  void send_to_all(const void* data, int bytes, int tag);
  void call(uint64_t sequence);  // once in a collective

  MPI_Comm comm_;
  int rank_, size_;
  uint64_t called_in_ = 0;  // the collective
  std::string heard_;
  std::unique_ptr<char[]> words_;  // once sent they stay until the process ends
};

}  // namespace lockstep::mpi
