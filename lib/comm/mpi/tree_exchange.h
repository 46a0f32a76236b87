// The sum of one array over a few ranks, by messages that are tested and never waited for: the part of a hierarchical
// all-reduce that crosses nodes, which goes on while this rank computes. Added in the order of comm/sum_tree.h.
//
// Each rank first sends every other one a header: what it is reducing, with the values behind it if they are few. Then
// two ranks, or few values: whole arrays are exchanged and each rank adds. Otherwise each rank adds the part that it
// owns and sends the sum to all. Either way a rank sends 2 (n-1)/n of a long array, the least that is possible.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "comm/failure.h"
#include "comm/mpi/mpi_call.h"
#include "core/buffer.h"

namespace lockstep::mpi {

class TreeExchange {
 public:
  static constexpr size_t in_header_bytes = 4 << 10;      // arrays that travel with their header
  static constexpr size_t whole_bytes = 64 << 10;         // what a rank sends at most to save a second exchange
  static constexpr size_t default_round_bytes = 2 << 20;  // of the array at a time; bounds the staging

  // The communicator's ranks are the leaves; names[r] is what messages call rank r.
  // `activity`: what this rank is busy with, for messages; may be null, outlives this object.
  TreeExchange(OwnedComm comm, std::vector<int> names, const Activity* activity,
               size_t round_bytes = default_round_bytes);
  // In the middle of a sum, MPI may still be using its buffers: they stay until the process ends.
  ~TreeExchange();

  int size() const { return static_cast<int>(names_.size()); }
  bool idle() const { return phase_ == Phase::idle; }
  // Until advance() has said true, `values` belong to the sum. Needs idle().
  void start(std::span<float> values, const Call& call);
  const Call& call() const { return call_; }
  // Does what can be done without waiting; true when `values` hold the sum. Throws PeerFailure when another rank is in
  // another collective.
  bool advance();
  // The names of those for whose messages this rank waits.
  std::vector<int> missing();

 private:
  enum class Phase { idle, headers, whole, scatter, gather };
  static constexpr size_t message_bytes = sizeof(Call) + in_header_bytes;

  std::byte* message(int rank) const { return static_cast<std::byte*>(messages_.data()) + rank * message_bytes; }
  bool in_header() const { return values_.size_bytes() <= in_header_bytes; }
  bool by_whole_arrays() const;
  void send(int peer, const void* data, size_t bytes);
  void receive(int peer, void* data, size_t bytes);
  void check_headers() const;
  void start_round();
  void start_gather();
  void finish_step();

  OwnedComm comm_;
  std::vector<int> names_;
  const Activity* activity_;
  int rank_;
  size_t round_;  // floats
  Phase phase_ = Phase::idle;
  std::span<float> values_, current_;  // the array, the round of it that is being exchanged
  size_t done_ = 0;                    // floats
  Call call_;
  Buffer messages_, staging_;
  std::vector<MPI_Request> requests_;  // receives by rank, then sends by rank
  std::vector<const float*> arrays_;
};

}  // namespace lockstep::mpi
