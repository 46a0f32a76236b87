// The program's hold on MPI, owned by main: started with threads, ended only when it is safe to. Says where this rank
// is: in the world, on its node, and among the nodes.
#pragma once

#include <mpi.h>

#include <functional>

#include "comm/mpi/mpi_call.h"

namespace lockstep {

const char* thread_level_name(int level);
// Throws Error unless MPI granted MPI_THREAD_MULTIPLE.
void check_thread_level(int provided);

class MpiEnvironment {
 public:
  // Starts MPI (unless it runs already: then it is left running at the end, too). Throws Error when MPI lacks threads
  // or its size contradicts the launcher's (launcher.h). Collective. pretend: if given, ranks that share memory count
  // as of one node only where it gives them the same number: what several nodes do can then be seen on one machine.
  using Pretend = std::function<int(int rank, int size)>;
  explicit MpiEnvironment(const Pretend& pretend = {});
  // Ends MPI, unless an exception is in flight: other ranks may then never come to MPI_Finalize.
  ~MpiEnvironment();
  MpiEnvironment(const MpiEnvironment&) = delete;
  MpiEnvironment& operator=(const MpiEnvironment&) = delete;

  MPI_Comm world() const { return world_.get(); }  // our duplicate of MPI_COMM_WORLD
  MPI_Comm node() const { return node_.get(); }    // the ranks that share memory with this one, in world order
  int rank() const { return rank_; }
  int size() const { return size_; }
  int local_rank() const { return local_rank_; }  // from the shared-memory split, never from the environment
  int local_size() const { return local_size_; }
  int nodes() const { return nodes_; }
  int node_index() const { return node_index_; }        // nodes are numbered by their lowest rank
  int allowed_cores() const { return allowed_cores_; }  // of all ranks of this node together
  int threads() const { return threads_; }              // that this rank should compute with
  bool oversubscribed() const { return local_size_ > allowed_cores_; }

 private:
  struct Runtime {  // first to be made and last to go, so that a throwing constructor leaves MPI in order
    bool owned = false;
    int exceptions = 0;
    Runtime();
    ~Runtime();
  };
  Runtime runtime_;
  mpi::OwnedComm world_, node_;
  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1, nodes_ = 1, node_index_ = 0;
  int allowed_cores_ = 1, threads_ = 1;
};

}  // namespace lockstep
