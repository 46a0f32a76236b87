#include "comm/mpi/mpi_call.h"

#include <exception>
#include <string>
#include <utility>

#include "core/error.h"

namespace lockstep::mpi {

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw_error("{} failed: {}", call, std::string_view(text, static_cast<size_t>(length)));
}

int rank(MPI_Comm comm) {
  int result = 0;
  check(MPI_Comm_rank(comm, &result), "MPI_Comm_rank");
  return result;
}

int size(MPI_Comm comm) {
  int result = 0;
  check(MPI_Comm_size(comm, &result), "MPI_Comm_size");
  return result;
}

OwnedComm::OwnedComm(MPI_Comm adopted) : comm_(adopted), exceptions_(std::uncaught_exceptions()) {
  if (comm_ != MPI_COMM_NULL) check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

OwnedComm OwnedComm::duplicate(MPI_Comm comm) {
  MPI_Comm made = MPI_COMM_NULL;
  check(MPI_Comm_dup(comm, &made), "MPI_Comm_dup");
  return OwnedComm(made);
}

OwnedComm OwnedComm::split(MPI_Comm comm, int color, int key) {
  MPI_Comm made = MPI_COMM_NULL;
  check(MPI_Comm_split(comm, color, key, &made), "MPI_Comm_split");
  return OwnedComm(made);
}

OwnedComm OwnedComm::split_by_shared_memory(MPI_Comm comm, int key) {
  MPI_Comm made = MPI_COMM_NULL;
  check(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, key, MPI_INFO_NULL, &made), "MPI_Comm_split_type");
  return OwnedComm(made);
}

OwnedComm::OwnedComm(OwnedComm&& other) noexcept
    : comm_(std::exchange(other.comm_, MPI_COMM_NULL)), exceptions_(other.exceptions_) {}

OwnedComm& OwnedComm::operator=(OwnedComm&& other) noexcept {
  std::swap(comm_, other.comm_);
  std::swap(exceptions_, other.exceptions_);
  return *this;
}

OwnedComm::~OwnedComm() {
  if (comm_ == MPI_COMM_NULL || std::uncaught_exceptions() > exceptions_) return;
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!finalized) MPI_Comm_free(&comm_);
}

}  // namespace lockstep::mpi
