// Built without CUDA: every test of a device is skipped (77), and says so.
#include <cstdio>

int main() {
  std::puts("SKIPPED: built without CUDA (CMake found no CUDA toolkit)");
  return 77;
}
