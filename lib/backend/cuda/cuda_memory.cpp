#include "backend/cuda/cuda_memory.h"

#include <algorithm>
#include <cstring>

#include "backend/cuda/cuda_check.h"

namespace lockstep {
namespace {

constexpr size_t piece_bytes = size_t{1} << 20;

std::byte* at(void* memory, size_t offset) { return static_cast<std::byte*>(memory) + offset; }
const std::byte* at(const void* memory, size_t offset) { return static_cast<const std::byte*>(memory) + offset; }

}  // namespace

CudaMemory::CudaMemory(const cuda::Context& context) : context_(context) {
  for (Piece& piece : pieces_) piece.host = context.pinned(piece_bytes);
}

const CudaMemory::Piece& CudaMemory::next_piece() const {
  const Piece& piece = pieces_[next_++ % pieces_.size()];
  context_.wait(piece.gone);
  return piece;
}

void CudaMemory::upload(void* to, const void* host, size_t bytes) const {
  for (size_t done = 0; done < bytes; done += piece_bytes) {
    const size_t count = std::min(piece_bytes, bytes - done);
    const Piece& piece = next_piece();
    std::memcpy(piece.host.data(), at(host, done), count);
    context_.to_device(context_.compute(), at(to, done), piece.host.data(), count);
    context_.compute().record(piece.gone);
  }
}

void CudaMemory::download(void* host, const void* from, size_t bytes) const {
  for (size_t done = 0; done < bytes; done += piece_bytes) {
    const size_t count = std::min(piece_bytes, bytes - done);
    const Piece& piece = next_piece();
    context_.to_host(context_.compute(), piece.host.data(), at(from, done), count);
    context_.compute().record(piece.gone);
    context_.wait(piece.gone);
    std::memcpy(at(host, done), piece.host.data(), count);
  }
}

void CudaMemory::copy(void* to, const void* from, size_t bytes) const {
  if (bytes == 0 || to == from) return;
  cuda::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, context_.compute().get()), "cudaMemcpyAsync");
}

void CudaMemory::zero(void* memory, size_t bytes) const {
  if (bytes != 0) context_.fill_zero(context_.compute(), memory, bytes);
}

}  // namespace lockstep
