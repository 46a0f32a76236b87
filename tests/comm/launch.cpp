// What the launcher says against what MPI says, thread levels, threads per rank.
#include <doctest/doctest.h>
#include <mpi.h>

#include <map>
#include <string>

#include "comm/cores.h"
#include "comm/launcher.h"
#include "comm/malloc_policy.h"
#include "comm/mpi_env.h"
#include "core/error.h"

using namespace lockstep;

namespace {

std::string mismatch(const std::map<std::string, std::string>& variables, int mpi_size) {
  return launch_mismatch(
      [&](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      mpi_size);
}

}  // namespace

TEST_CASE("every launcher is caught when MPI does not know of its ranks") {
  REQUIRE(launchers().size() == 4);
  for (const Launcher& launcher : launchers()) {
    CAPTURE(launcher.name);
    CHECK(mismatch({{launcher.size, "4"}, {launcher.rank, "2"}}, 4) == "");
    const std::string text = mismatch({{launcher.size, "4"}, {launcher.rank, "2"}}, 1);
    CHECK(text.find("MPI size is 1 but ") == 0);
    CHECK(text.find("has 4 tasks: ") != std::string::npos);
    CHECK(text.find(launcher.cure) != std::string::npos);
    CHECK(mismatch({{launcher.size, "4"}}, 1) == "");  // told to nobody in particular
  }
}

TEST_CASE("srun without PMIx says what to type") {
  CHECK(mismatch({{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "2"}}, 1) ==
        "MPI size is 1 but the Slurm step has 4 tasks: start with srun --mpi=pmix");
}

TEST_CASE("a Slurm step without PMI is told before MPI ends the program") {
  const auto text = [](std::map<std::string, std::string> variables) {
    return missing_pmi([&](const char* name) {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    });
  };
  const std::map<std::string, std::string> step = {{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "2"}};
  CHECK(text(step) ==
        "the Slurm step has 4 tasks and offers them no PMI; if MPI ends the program here: start with srun --mpi=pmix");
  CHECK(text({}) == "");
  CHECK(text({{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}}) == "");
  for (const char* variable : {"PMIX_RANK", "PMI_RANK", "PMI_FD"}) {
    auto with = step;
    with[variable] = "2";
    CHECK(text(with) == "");
  }
  auto mpirun = step;
  mpirun["OMPI_COMM_WORLD_SIZE"] = mpirun["OMPI_COMM_WORLD_RANK"] = "2";
  CHECK(text(mpirun) == "");
}

TEST_CASE("an sbatch script may run one process or an mpirun") {
  const std::map<std::string, std::string> batch = {
      {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "7"}};
  CHECK(mismatch(batch, 1) == "");
  CHECK(mismatch(batch, 2) == "");
}

TEST_CASE("mpirun's own count stands before that of the Slurm step that carried its daemons") {
  const std::map<std::string, std::string> variables = {{"SLURM_STEP_NUM_TASKS", "3"},
                                                        {"SLURM_PROCID", "1"},
                                                        {"OMPI_COMM_WORLD_SIZE", "2"},
                                                        {"OMPI_COMM_WORLD_RANK", "1"}};
  CHECK(mismatch(variables, 2) == "");
}

TEST_CASE("no launcher and unreadable numbers are no error") {
  CHECK(mismatch({}, 1) == "");
  CHECK(mismatch({{"PMI_SIZE", "many"}, {"PMI_RANK", "0"}}, 1) == "");
}

TEST_CASE("a thread level below multiple is refused by name") {
  CHECK_NOTHROW(check_thread_level(MPI_THREAD_MULTIPLE));
  CHECK_THROWS_WITH(
      check_thread_level(MPI_THREAD_SINGLE),
      "MPI offers MPI_THREAD_SINGLE, MPI_THREAD_MULTIPLE is needed: use an MPI library built with thread support");
  CHECK_THROWS_AS(check_thread_level(MPI_THREAD_SERIALIZED), Error);
}

TEST_CASE("threads per rank share the allowed cores") {
  CHECK(threads_per_rank(8, 2) == 4);
  CHECK(threads_per_rank(7, 2) == 3);
  CHECK(threads_per_rank(2, 4) == 1);
  CHECK(threads_per_rank(1, 1) == 1);
  CHECK(threads_per_rank(0, 1) == 1);
  CHECK(threads_per_rank(4, 0) == 4);
}

TEST_CASE("cpus of a mask are counted over all words") {
  CHECK(count_cpus({}) == 0);
  CHECK(count_cpus({0b1011, 0, 1ul << 63}) == 4);
  CHECK(count_cpus(allowed_cpus()) >= 1);
}

TEST_CASE("the C library takes the allocator's settings") {
#ifdef __SANITIZE_ADDRESS__
  MESSAGE("SKIPPED: the address sanitizer's allocator has no settings");
#else
  CHECK(keep_large_blocks());
#endif
}

TEST_CASE("the rank is known from the launcher before MPI has started") {
  const auto rank = [](const std::map<std::string, std::string>& variables) {
    return launcher_rank([&](const char* name) {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    });
  };
  CHECK(rank({}) == -1);
  CHECK(rank({{"SLURM_PROCID", "0"}}) == -1);  // sbatch's script
  CHECK(rank({{"SLURM_STEP_NUM_TASKS", "3"}, {"SLURM_PROCID", "2"}}) == 2);
  CHECK(rank({{"SLURM_STEP_NUM_TASKS", "3"},
              {"SLURM_PROCID", "2"},
              {"OMPI_COMM_WORLD_SIZE", "4"},
              {"OMPI_COMM_WORLD_RANK", "1"}}) == 1);
}

TEST_CASE("threads beyond the cores that a rank is bound to are named with the cure") {
  CHECK(thread_shortage(4, 4, 2, 8) == "");
  CHECK(thread_shortage(4, 1, 2, 8).find("device.threads is 4, but this rank is bound to 1 core(s): ") == 0);
  CHECK(thread_shortage(4, 8, 4, 8).find("device.threads is 4 for each of 4 ranks, but they share 8 core(s): ") == 0);
}
