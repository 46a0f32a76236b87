# Compile and link options shared by every target, as the interface library lockstep_options.
add_library(lockstep_options INTERFACE)
target_include_directories(lockstep_options INTERFACE ${PROJECT_SOURCE_DIR}/lib)
# -Wno-restrict: GCC 12 warns of std::string's own memcpy (its bug 105651). -Wno-missing-field-initializers: it warns of
# designated initialisers, whose point is to name some fields and leave the rest.
# -ffp-contract=off: PyTorch's rounding is reproduced by writing std::fma where its kernels fuse, and nowhere else.
target_compile_options(lockstep_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wundef -Wno-missing-field-initializers -Wno-restrict -ffp-contract=off
                                                  -fno-math-errno -fopenmp-simd)
if(LOCKSTEP_WERROR)
  target_compile_options(lockstep_options INTERFACE -Werror)
endif()
if(LOCKSTEP_SANITIZE)
  list(JOIN LOCKSTEP_SANITIZE "," sanitizers)
  target_compile_options(lockstep_options INTERFACE -fsanitize=${sanitizers} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  target_link_options(lockstep_options INTERFACE -fsanitize=${sanitizers})
endif()
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
