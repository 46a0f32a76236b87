// Slurm's variables; sbatch, salloc and srun set different ones, so each is optional.
#include "core/whole_number.h"
#include "train/doctor/facts.h"

namespace lockstep {
namespace {

std::optional<int64_t> number(const Environment& environment, const char* name) {
  const char* text = environment(name);
  return text == nullptr ? std::nullopt : whole_number<int64_t>(text);
}

std::string text_of(const Environment& environment, const char* name) {
  const char* text = environment(name);
  return text == nullptr ? "" : text;
}

std::optional<int64_t> first_of(std::optional<int64_t> one, std::optional<int64_t> other) { return one ? one : other; }

}  // namespace

SlurmFacts slurm_facts(const Environment& environment) {
  SlurmFacts facts;
  facts.job = number(environment, "SLURM_JOB_ID");
  facts.step = number(environment, "SLURM_STEP_ID");
  facts.nodes = first_of(number(environment, "SLURM_STEP_NUM_NODES"), number(environment, "SLURM_JOB_NUM_NODES"));
  facts.tasks = first_of(number(environment, "SLURM_STEP_NUM_TASKS"), number(environment, "SLURM_NTASKS"));
  facts.cpus_per_task = number(environment, "SLURM_CPUS_PER_TASK");
  facts.gpus_on_node = number(environment, "SLURM_GPUS_ON_NODE");
  facts.end_time = number(environment, "SLURM_JOB_END_TIME");
  facts.tasks_per_node = text_of(environment, "SLURM_STEP_TASKS_PER_NODE");
  if (facts.tasks_per_node.empty()) facts.tasks_per_node = text_of(environment, "SLURM_TASKS_PER_NODE");
  facts.cpu_bind = text_of(environment, "SLURM_CPU_BIND");
  facts.node_list = text_of(environment, "SLURM_JOB_NODELIST");
  return facts;
}

}  // namespace lockstep
