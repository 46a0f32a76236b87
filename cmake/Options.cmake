# Compile and link options shared by every target, as the interface library lockstep_options.
add_library(lockstep_options INTERFACE)
target_include_directories(lockstep_options INTERFACE ${PROJECT_SOURCE_DIR}/lib)
# -Wno-restrict: GCC 12 warns of std::string's own memcpy (its bug 105651). -Wno-missing-field-initializers: it warns of
# designated initialisers, whose point is to name some fields and leave the rest.
# -ffp-contract=off: PyTorch's rounding is reproduced by writing std::fma where its kernels fuse, and nowhere else.
set(options -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wundef -Wno-missing-field-initializers -Wno-restrict -ffp-contract=off
            -fno-math-errno -fopenmp-simd)
# nvcc's own: no contraction either; constexpr functions (backend/functors.h) may be called in kernels.
set(cuda_options -Xcompiler=-Wall,-Wextra -fmad=false --expt-relaxed-constexpr)
if(LOCKSTEP_WERROR)
  list(APPEND options -Werror)
  list(APPEND cuda_options -Werror=all-warnings)
endif()
if(LOCKSTEP_SANITIZE)
  list(JOIN LOCKSTEP_SANITIZE "," sanitizers)
  list(APPEND options -fsanitize=${sanitizers} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  target_link_options(lockstep_options INTERFACE -fsanitize=${sanitizers})
endif()
target_compile_options(lockstep_options INTERFACE "$<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:${options}>"
                                                  "$<$<COMPILE_LANGUAGE:CUDA>:${cuda_options}>")
target_link_options(lockstep_options INTERFACE LINKER:--as-needed)
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()
