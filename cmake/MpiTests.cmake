# lockstep_mpi_tests(FILE): an executable of FILE; each of its doctest cases becomes one ctest test per rank count.
# The file says its rank counts, "// ranks: 1 2 4", and the library it tests, "// links: comm". Another name (NAME) and a
# variable of the environment (ENVIRONMENT VARIABLE=VALUE) make the same file another test.
function(lockstep_mpi_tests source)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAME;ENVIRONMENT" "")
  get_filename_component(name ${source} NAME_WE)
  if(arg_NAME)
    set(name ${arg_NAME})
  endif()
  file(STRINGS ${source} ranks REGEX "^// ranks:" LIMIT_COUNT 1)
  string(REGEX MATCHALL "[0-9]+" ranks "${ranks}")
  file(STRINGS ${source} links REGEX "^// links:" LIMIT_COUNT 1)
  string(REGEX REPLACE "^// links: *([a-z]+).*" "lockstep_\\1" links "${links}")
  add_executable(mpi_${name} ${source} $<TARGET_OBJECTS:mpi_main>)
  target_link_libraries(mpi_${name} PRIVATE test_support ${links} MPI::MPI_CXX)
  if(TARGET lockstep)
    add_dependencies(mpi_${name} lockstep)
  endif()
  set(list_file ${CMAKE_CURRENT_BINARY_DIR}/mpi_${name}_tests.cmake)
  string(REPLACE ";" " " rank_list "${ranks}")
  add_custom_command(TARGET mpi_${name} POST_BUILD BYPRODUCTS ${list_file}
    COMMAND ${CMAKE_COMMAND} -DEXECUTABLE=$<TARGET_FILE:mpi_${name}> -DNAME=${name} "-DRANKS=${rank_list}" "-DENVIRONMENT=${arg_ENVIRONMENT}" -DOUTPUT=${list_file}
            -DMPIEXEC=${MPIEXEC_EXECUTABLE} -P ${PROJECT_SOURCE_DIR}/cmake/ListMpiTests.cmake VERBATIM)
  # The list exists once the executable is built; until then one test that cannot be run stands for all of them.
  set(include_file ${CMAKE_CURRENT_BINARY_DIR}/mpi_${name}_include.cmake)
  file(WRITE ${include_file} "if(EXISTS [==[${list_file}]==])\n  include([==[${list_file}]==])\nelse()\n"
                             "  add_test(mpi_${name}_NOT_BUILT mpi_${name}_NOT_BUILT)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${include_file})
endfunction()
