// Functions of a library that is loaded when they are wanted: cuBLAS and cuDNN take longer to load than a small run to
// train, and a machine without GPUs need not have them.
#pragma once

namespace lockstep::cuda {

// The address of `function` in `library`, a file name that the loader finds ("libcudnn.so.9"), which is loaded and
// stays so. Throws Error where one of the two is missing.
void* find_function(const char* library, const char* function);

// Sets a pointer to a function: find(table.create, kLibrary, "cublasLtCreate"), where table.create is a
// decltype(&cublasLtCreate).
template <class Function>
void find(Function*& function, const char* library, const char* name) {
  function = reinterpret_cast<Function*>(find_function(library, name));
}

}  // namespace lockstep::cuda
