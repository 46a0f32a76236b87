# Script mode: asks EXECUTABLE for its doctest cases and writes one add_test per case and rank count to OUTPUT.
execute_process(COMMAND ${CMAKE_COMMAND} -E env LOCKSTEP_LIST_ONLY=1 ${EXECUTABLE} --list-test-cases --no-intro
                OUTPUT_VARIABLE listed RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "cannot list the cases of ${EXECUTABLE}: ${result}")
endif()
string(REGEX REPLACE "\n" ";" lines "${listed}")
separate_arguments(ranks UNIX_COMMAND "${RANKS}")
set(script "")
set(environment "")
if(ENVIRONMENT)
  set(environment " ENVIRONMENT ${ENVIRONMENT}")
endif()
foreach(line ${lines})
  if(line AND NOT line MATCHES "^(\\[doctest\\]|====)")
    string(REPLACE "," "\\\\," filter "${line}")
    foreach(np ${ranks})
      set(test "mpi/${NAME}: ${line} [${np} ranks]")
      string(APPEND script "add_test([==[${test}]==] \"${MPIEXEC}\" --allow-run-as-root --oversubscribe --bind-to none --timeout 100 -np ${np} "
             "\"${EXECUTABLE}\" --no-colors [==[--test-case=${filter}]==])\n"
             "set_tests_properties([==[${test}]==] PROPERTIES LABELS mpi TIMEOUT 120 PROCESSORS ${np} "
             "SKIP_REGULAR_EXPRESSION \"SKIPPED: .*Status: SUCCESS\"${environment})\n")
    endforeach()
  endif()
endforeach()
file(WRITE ${OUTPUT} "${script}")
