// One line per rank, in order: "rank R of N, local rank L of M, on HOST, memory own|shared". The memory is "own" when
// no other rank's file is in this node's /dev/shm, which is how the test knows that its nodes really are separate.
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

std::string marker(int rank) { return "/dev/shm/lockstep-placement-" + std::to_string(rank); }

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
  int local_rank = 0;
  int local_size = 0;
  MPI_Comm_rank(node, &local_rank);
  MPI_Comm_size(node, &local_size);
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);

  std::ofstream(marker(rank)) << rank;
  MPI_Barrier(MPI_COMM_WORLD);
  bool shared = false;
  for (int other = 0; other < size; ++other)
    shared = shared || (other != rank && std::filesystem::exists(marker(other)));
  for (int turn = 0; turn < size; ++turn) {
    if (turn == rank) {
      std::printf("rank %d of %d, local rank %d of %d, on %s, memory %s\n", rank, size, local_rank, local_size, host,
                  shared ? "shared" : "own");
      std::fflush(stdout);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  std::filesystem::remove(marker(rank));
  MPI_Comm_free(&node);
  MPI_Finalize();
  return 0;
}
