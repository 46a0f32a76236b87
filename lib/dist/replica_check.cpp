#include "dist/replica_check.h"

#include <bit>
#include <cstring>
#include <numeric>

#include "comm/gather.h"
#include "comm/run_agreed.h"
#include "core/error.h"

namespace lockstep {
namespace {

// FNV-1a: not against malice, only against mistakes.
uint64_t hash_bytes(std::span<const std::byte> bytes) {
  uint64_t hash = 14695981039346656037ULL;
  for (std::byte b : bytes) hash = (hash ^ static_cast<uint64_t>(b)) * 1099511628211ULL;
  return hash;
}

// The same, four bytes at a time.
uint64_t hash_floats(std::span<const float> values) {
  uint64_t hash = 14695981039346656037ULL;
  for (float value : values) hash = (hash ^ std::bit_cast<uint32_t>(value)) * 1099511628211ULL;
  return hash;
}

// The positions of 0, 1, 2, ... in the stored slice tell two layouts apart whatever made them.
uint64_t layout_hash(const Parameter& p) {
  if (!p.format) return 0;
  std::vector<float> ramp(static_cast<size_t>(p.shape.numel())), stored(p.count);
  std::iota(ramp.begin(), ramp.end(), 1.0f);
  p.format->store(ramp, stored);
  return hash_bytes(std::as_bytes(std::span<const float>(stored)));
}

using Facts = std::vector<std::pair<std::string, std::string>>;  // what, value

Facts facts_of(const ParameterStore& store, const std::string& build, const std::string& config) {
  Facts facts{{"the build", build}};
  size_t begin = 0;
  while (begin < config.size()) {  // line by line, so that the message can show the line
    const size_t end = std::min(config.find('\n', begin), config.size());
    facts.emplace_back("the config", config.substr(begin, end - begin));
    begin = end + 1;
  }
  for (const Parameter& p : store.parameters()) {
    facts.emplace_back("a parameter", p.name + " " + p.shape.str());
    facts.emplace_back(
        "the storage layout of " + p.name + " (unlike CPUs? LOCKSTEP_MAX_ISA and ONEDNN_MAX_CPU_ISA make them alike)",
        fmt::format("{:016x}", layout_hash(p)));
  }
  return facts;
}

std::string serialise(const Facts& facts) {
  std::string text;
  for (const auto& [what, value] : facts) text += value + "\n";
  return text;
}

std::string line_of(std::string_view text, size_t index) {
  size_t begin = 0;
  while (index-- > 0 && begin < text.size()) begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
  return std::string(text.substr(begin, text.find('\n', begin) - begin));
}

}  // namespace

void broadcast_values(const Memory& memory, std::span<float> values, Communicator& communicator) {
  if (memory.host()) return communicator.broadcast(std::as_writable_bytes(values), 0);
  std::vector<float> copy(values.size());
  if (communicator.rank() == 0) memory.download(copy, values);
  communicator.broadcast(std::as_writable_bytes(std::span(copy)), 0);
  if (communicator.rank() != 0) memory.upload(values, copy);
}

void broadcast_model(ParameterStore& store, Communicator& communicator) {
  broadcast_values(store.memory(), store.values(), communicator);
  broadcast_buffers(store, communicator);
}

void broadcast_buffers(ParameterStore& store, Communicator& communicator) {
  if (!store.buffer_values().empty()) broadcast_values(store.memory(), store.buffer_values(), communicator);
}

void check_replicas_alike(const ParameterStore& store, const std::string& build, const std::string& config,
                          Communicator& communicator) {
  const Facts facts = facts_of(store, build, config);
  const std::vector<std::string> texts = gather_texts(serialise(facts), communicator);
  for (size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] == texts[0]) continue;
    size_t index = 0;
    while (line_of(texts[rank], index) == line_of(texts[0], index)) ++index;
    const std::string what = index < facts.size() ? facts[index].first : "the number of parameters";
    throw PoliteError(fmt::format("ranks 0 and {} differ in {}: '{}' against '{}'", rank, what,
                                  line_of(texts[0], index), line_of(texts[rank], index)));
  }
}

void check_parameters_equal(const ParameterStore& store, Communicator& communicator, int64_t steps) {
  std::vector<uint64_t> hashes;
  std::vector<float> scratch;
  for (size_t id = 0; id < store.parameters().size(); ++id)
    hashes.push_back(hash_floats(store.memory().readable(store.value(static_cast<ParameterId>(id)), scratch)));
  const auto all = communicator.all_gather(std::as_bytes(std::span<const uint64_t>(hashes)));
  for (size_t id = 0; id < hashes.size(); ++id) {
    for (size_t rank = 1; rank < all.size(); ++rank) {
      if (std::memcmp(all[rank].data() + id * 8, all[0].data() + id * 8, 8) == 0) continue;
      throw_error("after {} steps the replicas are not equal: parameter {} differs between rank 0 and rank {}", steps,
                  store.parameters()[id].name, rank);
    }
  }
}

}  // namespace lockstep
