// A GPU's memory as the rest of the program uses it: everything goes through the compute stream.
#pragma once

#include <array>

#include "backend/cuda/context.h"
#include "backend/memory.h"

namespace lockstep {

class CudaMemory final : public Memory {
 public:
  explicit CudaMemory(const cuda::Context& context);  // outlives this object

  bool host() const override { return false; }
  Buffer allocate(size_t bytes) const override { return context_.allocate(bytes); }
  // By way of pinned memory, piece by piece: the host waits only where the pieces before have not gone yet.
  void upload(void* to, const void* host, size_t bytes) const override;
  void download(void* host, const void* from, size_t bytes) const override;
  void copy(void* to, const void* from, size_t bytes) const override;
  void zero(void* memory, size_t bytes) const override;
  using Memory::copy, Memory::download, Memory::upload, Memory::zero;

 private:
  struct Piece {
    Buffer host;
    cuda::Event gone;
  };
  const Piece& next_piece() const;

  const cuda::Context& context_;
  std::array<Piece, 2> pieces_;
  mutable size_t next_ = 0;
};

}  // namespace lockstep
