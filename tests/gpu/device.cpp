// Built with CUDA: the first device takes a megabyte and gives it back unchanged. Without a device: skipped (77).
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

int main() {
  int count = 0;
  const cudaError_t found = cudaGetDeviceCount(&count);
  if (found != cudaSuccess || count == 0) {
    std::printf("SKIPPED: no CUDA device: %s\n",
                found != cudaSuccess ? cudaGetErrorString(found) : "the driver lists none");
    return 77;
  }
  std::vector<unsigned char> sent(1 << 20);
  std::vector<unsigned char> received(sent.size());
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<unsigned char>(i * 31 + 7);
  void* device = nullptr;
  cudaError_t status = cudaMalloc(&device, sent.size());
  if (status == cudaSuccess) status = cudaMemcpy(device, sent.data(), sent.size(), cudaMemcpyHostToDevice);
  if (status == cudaSuccess) status = cudaMemcpy(received.data(), device, sent.size(), cudaMemcpyDeviceToHost);
  if (status == cudaSuccess) status = cudaFree(device);
  if (status != cudaSuccess) {
    std::printf("device 0 of %d: %s\n", count, cudaGetErrorString(status));
    return 1;
  }
  if (received != sent) {
    std::printf("device 0 of %d: the copy that came back differs\n", count);
    return 1;
  }
  std::printf("device 0 of %d: %zu bytes there and back\n", count, sent.size());
  return 0;
}
