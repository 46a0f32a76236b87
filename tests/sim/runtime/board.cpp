#include "sim/runtime/board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <new>
#include <stdexcept>

namespace lockstep::sim {

struct Board::Shared {
  struct Rank {
    std::atomic<uint64_t> posted{0}, read{0};  // sequence numbers, from 1
    std::atomic<int> joined{0}, left{0};
    Claim claims[2];
  };
  Rank ranks[most_ranks];
};

namespace {

constexpr size_t header = 64 << 10;

size_t total_bytes() { return header + 2 * Board::most_ranks * Board::most_bytes; }

void* map(int file) {
  void* memory = mmap(nullptr, total_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return memory;
}

}  // namespace

void Board::create(const std::string& name) {
  const int file = shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600);
  if (file < 0 || ftruncate(file, static_cast<off_t>(total_bytes())) != 0) throw std::runtime_error("shm_open " + name);
  static_assert(sizeof(Shared) <= header);
  void* memory = map(file);
  new (memory) Shared;
  munmap(memory, total_bytes());
}

void Board::discard(const std::string& name) { shm_unlink(name.c_str()); }

Board::Board(const std::string& name, int ranks, int rank) : name_(name), ranks_(ranks), rank_(rank) {
  const int file = shm_open(name.c_str(), O_RDWR, 0600);
  if (file < 0 || ranks > most_ranks) throw std::runtime_error("no such id");
  shared_ = static_cast<Shared*>(map(file));
}

Board::~Board() {
  if (rank_ == 0) shm_unlink(name_.c_str());
  munmap(shared_, total_bytes());
}

void Board::join() { shared_->ranks[rank_].joined = 1; }
void Board::leave() { shared_->ranks[rank_].left = 1; }

bool Board::all_joined() const {
  for (int r = 0; r < ranks_; ++r)
    if (shared_->ranks[r].joined == 0) return false;
  if (rank_ == 0) shm_unlink(name_.c_str());  // everybody holds it
  return true;
}

bool Board::all_left() const {
  for (int r = 0; r < ranks_; ++r)
    if (shared_->ranks[r].left == 0) return false;
  return true;
}

const std::byte* Board::slot(uint64_t sequence, int rank) const {
  const size_t index = sequence % 2 * most_ranks + static_cast<size_t>(rank);
  return reinterpret_cast<const std::byte*>(shared_) + header + index * most_bytes;
}

bool Board::post(const Claim& claim, const void* data, size_t bytes) {
  for (int r = 0; r < ranks_ && claim.sequence > 2; ++r)
    if (shared_->ranks[r].read < claim.sequence - 2) return false;
  std::memcpy(const_cast<std::byte*>(slot(claim.sequence, rank_)), data, bytes);
  shared_->ranks[rank_].claims[claim.sequence % 2] = claim;
  shared_->ranks[rank_].posted = claim.sequence;
  return true;
}

bool Board::all_posted(uint64_t sequence) const {
  for (int r = 0; r < ranks_; ++r)
    if (shared_->ranks[r].posted < sequence) return false;
  return true;
}

bool Board::alike(const Claim& claim) const {
  for (int r = 0; r < ranks_; ++r)
    if (!(shared_->ranks[r].claims[claim.sequence % 2] == claim)) return false;
  return true;
}

const std::byte* Board::data(uint64_t sequence, int rank) const { return slot(sequence, rank); }
void Board::done_reading(uint64_t sequence) { shared_->ranks[rank_].read = sequence; }

}  // namespace lockstep::sim
