// MPI's return codes as Error, and a duplicate communicator as an object.
#pragma once

#include <mpi.h>

namespace lockstep::mpi {

// Throws Error with MPI's own text. Needs a communicator whose error handler is MPI_ERRORS_RETURN (OwnedComm's is).
void check(int code, const char* call);

int rank(MPI_Comm comm);
int size(MPI_Comm comm);

// A communicator of our own: its messages never meet those of other libraries. Freed while MPI runs and no exception
// is in flight; otherwise left to the end of the process, because freeing may wait for ranks that are gone.
class OwnedComm {
 public:
  OwnedComm() = default;
  explicit OwnedComm(MPI_Comm adopted);
  static OwnedComm duplicate(MPI_Comm comm);                        // collective
  static OwnedComm split(MPI_Comm comm, int color, int key);        // collective; MPI_UNDEFINED: none
  static OwnedComm split_by_shared_memory(MPI_Comm comm, int key);  // collective
  OwnedComm(OwnedComm&& other) noexcept;
  OwnedComm& operator=(OwnedComm&& other) noexcept;
  ~OwnedComm();
  MPI_Comm get() const { return comm_; }
  void abandon() { comm_ = MPI_COMM_NULL; }  // never freed: an operation on it will not end

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  int exceptions_ = 0;
};

}  // namespace lockstep::mpi
