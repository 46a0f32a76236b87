#include "backend/cuda/library.h"

#include <dlfcn.h>

#include "core/error.h"

namespace lockstep::cuda {

void* find_function(const char* library, const char* function) {
  void* loaded = dlopen(library, RTLD_LAZY | RTLD_LOCAL);  // the same one on every call
  if (loaded == nullptr) throw_error("device.kind cuda: cannot load {}: {}", library, dlerror());
  void* found = dlsym(loaded, function);
  if (found == nullptr) throw_error("device.kind cuda: {} has no {}: its version is another one", library, function);
  return found;
}

}  // namespace lockstep::cuda
