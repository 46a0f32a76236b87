#include "comm/gpu_placement.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "core/error.h"

namespace lockstep {
namespace {

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

// Fields end with \n; names of GPUs and hosts have none.
class Writer {
 public:
  Writer& operator<<(const std::string& field) { return text_ += field + '\n', *this; }
  Writer& operator<<(int64_t field) { return *this << std::to_string(field); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes)
      : text_(reinterpret_cast<const char*>(bytes.data()), bytes.size()) {}
  std::string field() {
    const size_t end = text_.find('\n');
    if (end == std::string_view::npos) throw_error("a rank's list of GPUs ends early");
    const std::string field(text_.substr(0, end));
    text_.remove_prefix(end + 1);
    return field;
  }
  int64_t number() {
    const std::string text = field();
    int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }

 private:
  std::string_view text_;
};

std::vector<std::vector<std::string>> seen_on_node(std::span<const RankGpus> ranks, int node,
                                                   std::vector<size_t>& members) {
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    if (ranks[rank].node == node) members.push_back(rank);
  std::ranges::sort(members, {}, [&](size_t rank) { return ranks[rank].local_rank; });
  std::vector<std::vector<std::string>> visible;
  for (const size_t rank : members) {
    auto& list = visible.emplace_back();
    for (const Gpu& gpu : ranks[rank].visible) list.push_back(gpu.uuid);
  }
  return visible;
}

// What hides the GPUs of a machine that has a driver for them.
std::string hidden_by_list(const GpuFacts& facts) {
  if (facts.driver == 0) return "";
  const char* text = std::getenv("CUDA_VISIBLE_DEVICES");
  return text == nullptr ? "" : fmt::format(": CUDA_VISIBLE_DEVICES={} shows none of this machine's", text);
}

}  // namespace

std::vector<RankGpus> gather_gpus(Communicator& communicator, const MpiEnvironment& environment,
                                  std::span<const Gpu> mine) {
  Writer writer;
  writer << environment.node_index() << environment.local_rank() << host_name() << static_cast<int64_t>(mine.size());
  for (const Gpu& gpu : mine)
    writer << gpu.name << gpu.bus_id << gpu.uuid << gpu.major << gpu.minor << static_cast<int64_t>(gpu.memory_bytes);
  std::vector<RankGpus> ranks;
  for (const auto& bytes : communicator.all_gather(std::as_bytes(std::span(writer.text())))) {
    Reader reader(bytes);
    RankGpus& rank = ranks.emplace_back();
    rank.node = static_cast<int>(reader.number());
    rank.local_rank = static_cast<int>(reader.number());
    rank.host = reader.field();
    for (int64_t left = reader.number(); left > 0; --left) {
      Gpu& gpu = rank.visible.emplace_back();
      gpu.name = reader.field();
      gpu.bus_id = reader.field();
      gpu.uuid = reader.field();
      gpu.major = static_cast<int>(reader.number());
      gpu.minor = static_cast<int>(reader.number());
      gpu.memory_bytes = static_cast<size_t>(reader.number());
    }
  }
  return ranks;
}

GpuPlacement place_on_gpus(std::span<const RankGpus> ranks, bool oversubscribe) {
  GpuPlacement placement;
  placement.choices.resize(ranks.size());
  int nodes = 0;
  for (const RankGpus& rank : ranks) nodes = std::max(nodes, rank.node + 1);
  for (int node = 0; node < nodes; ++node) {
    std::vector<size_t> members;
    const auto visible = seen_on_node(ranks, node, members);
    const std::vector<DeviceChoice> choices = choose_devices(visible, oversubscribe);
    for (size_t i = 0; i < members.size(); ++i) placement.choices[members[i]] = choices[i];
  }
  std::vector<PlacedGpu> placed;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (const int index = placement.choices[rank].index; index >= 0)
      placed.push_back({static_cast<int>(rank), ranks[rank].host, ranks[rank].visible[static_cast<size_t>(index)]});
  }
  placement.shared = shared_gpu_text(placed);
  return placement;
}

int take_gpu(Communicator& communicator, const MpiEnvironment& environment, bool oversubscribe) {
  const GpuFacts facts = gpu_facts();
  const std::vector<RankGpus> ranks = gather_gpus(communicator, environment, facts.visible);
  if (facts.visible.empty())
    throw_error("device.kind cuda: {}{}; device.kind auto takes the CPU where there is no GPU", facts.why_none,
                hidden_by_list(facts));
  std::vector<size_t> members;
  const auto visible = seen_on_node(ranks, environment.node_index(), members);
  const int index = pick_device(environment.local_rank(), visible, oversubscribe);
  if (const GpuPlacement placement = place_on_gpus(ranks, oversubscribe); !placement.shared.empty() && !oversubscribe)
    throw_error("device.kind cuda: {}: give every rank a GPU of its own, or set device.oversubscribe: true",
                placement.shared);
  return index;
}

}  // namespace lockstep
