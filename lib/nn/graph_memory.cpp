// Memory of a bound graph: node i runs forward at time i, the loss at time n, node i's backward at time 2n - i.
#include <algorithm>

#include "nn/graph.h"
#include "nn/memory_plan.h"

namespace lockstep {

// In-place execution destroys the input's value, so nobody may want it afterwards: not a later forward, of the input or
// of another tensor in the same memory, and not the backward of the layers that made or read that memory.
bool Graph::may_overwrite_input(int index) const {
  const Node& self = node(index);
  const int source = self.inputs[0];
  if (!self.binding.in_place || source == kNetworkInput) return false;
  if (node(source).storage == kNetworkInput || desc(source).bytes() != desc(index).bytes()) return false;
  for (int other = 0; other < index; ++other) {
    const auto read_later = [&](const Use& use) { return use.node > index; };
    if (node(other).storage == node(source).storage && std::ranges::any_of(node(other).uses, read_later)) return false;
  }
  if (phase_ == Phase::inference) return true;
  if (self.binding.backward_reads_input) return false;
  for (int other = 0; other < index; ++other) {
    const Node& member = node(other);
    if (member.storage != node(source).storage) continue;
    if (member.binding.backward_reads_output) return false;
    for (const Use& use : member.uses) {
      if (use.node != index && node(use.node).binding.backward_reads_input && !node(use.node).binding.alias)
        return false;
    }
  }
  return true;
}

void Graph::share_storage() {
  for (int i = 0; i <= last(); ++i) {
    Node& self = node(i);
    const int source = self.inputs[0];
    const bool shared = self.binding.alias || may_overwrite_input(i);
    self.storage = !shared ? i : source == kNetworkInput ? kNetworkInput : node(source).storage;
  }
  for (int i = last(); i >= 0; --i) {
    Node& self = node(i);
    self.gradient_storage = i;
    if (!self.needs_gradient || self.uses.size() != 1) continue;
    const Node& user = node(self.uses[0].node);
    const bool can_share = user.binding.alias || (user.binding.in_place && user.inputs.size() == 1);
    if (!can_share || desc(i).bytes() != user.binding.output.bytes()) continue;
    self.gradient_storage = user.gradient_storage;
    node(self.uses[0].node).share_gradient = true;
  }
}

// Backward runs the uses of a tensor from the last to the first. The first of these writes the tensor's gradient, the
// others write blocks of their own, which are then added.
void Graph::place_gradients_of_uses() {
  for (int i = 0; i <= last(); ++i) node(i).extra_offset.assign(node(i).inputs.size(), kNone);
  for (int i = 0; i <= last(); ++i) {
    if (!node(i).needs_gradient) continue;
    std::vector<Use>& uses = node(i).uses;
    std::ranges::sort(
        uses, [](const Use& a, const Use& b) { return a.node != b.node ? a.node > b.node : a.input < b.input; });
    for (size_t k = 1; k < uses.size(); ++k) node(uses[k].node).extra_offset[static_cast<size_t>(uses[k].input)] = 0;
  }
}

void Graph::plan_arena() {
  const int n = static_cast<int>(nodes_.size());
  const bool training = phase_ == Phase::training;
  std::vector<MemoryBlock> blocks;
  std::vector<size_t*> offsets;
  const auto add = [&](size_t bytes, int first, int last_use, size_t* offset) {
    blocks.push_back({bytes, first, last_use, 0});
    offsets.push_back(offset);
    return blocks.size() - 1;
  };

  std::vector<size_t> value_block(nodes_.size()), gradient_block(nodes_.size(), kNone);
  size_t workspace = 0;
  for (int i = 0; i < n; ++i) {
    Node& self = node(i);
    const int backward = 2 * n - i;
    int last_use = i == last() ? n : i;
    for (const Use& use : self.uses) {
      last_use = std::max(last_use, use.node);
      const Node& user = node(use.node);
      if (training && user.binding.backward_reads_input && !user.binding.alias)
        last_use = std::max(last_use, 2 * n - use.node);
    }
    if (training && self.binding.backward_reads_output) last_use = std::max(last_use, backward);
    workspace = std::max(workspace, self.binding.workspace_bytes);
    if (self.storage == i) {
      value_block[static_cast<size_t>(i)] = add(self.binding.output.bytes(), i, last_use, &self.value_offset);
    } else if (self.storage != kNetworkInput) {
      MemoryBlock& block = blocks[value_block[static_cast<size_t>(self.storage)]];
      block.last = std::max(block.last, last_use);
    }
    if (self.binding.saved_bytes > 0) add(self.binding.saved_bytes, i, training ? backward : i, &self.saved_offset);
  }
  for (int i = last(); training && i >= 0; --i) {
    Node& self = node(i);
    if (!self.needs_gradient) continue;
    const int first = i == last() ? n : 2 * n - self.uses[0].node;
    const int read = 2 * n - i;
    size_t& block = gradient_block[static_cast<size_t>(self.gradient_storage)];
    if (block == kNone) {
      block = add(self.binding.output.bytes(), first, read, &node(self.gradient_storage).gradient_offset);
    } else {
      blocks[block].first = std::min(blocks[block].first, first);
      blocks[block].last = std::max(blocks[block].last, read);
    }
    for (size_t k = 0; k < self.inputs.size(); ++k) {
      if (self.extra_offset[k] != kNone && !self.binding.alias)
        add(desc(self.inputs[k]).bytes(), read, read, &self.extra_offset[k]);
    }
  }
  workspace_offset_ = plan_memory(blocks);
  for (size_t b = 0; b < blocks.size(); ++b) *offsets[b] = blocks[b].offset;
  arena_bytes_ = workspace_offset_ + align_up(workspace);
}

}  // namespace lockstep
