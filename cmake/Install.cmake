# cmake --install: the program, the library with its headers (include/lockstep, as lib/ has them) and a package config for
# find_package(lockstep), documents, batch files, configs, man page and shell completion. cpack makes a .deb of them.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS lockstep RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
set(libraries train dist optim nn data comm backend core)
foreach(library ${libraries})
  install(TARGETS lockstep_${library} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/lockstep)
endforeach()
set(gpu_target $<IF:$<BOOL:${LOCKSTEP_HAS_CUDA}>,lockstep_gpu,lockstep_no_gpu>)
install(FILES $<TARGET_FILE:${gpu_target}> DESTINATION ${CMAKE_INSTALL_LIBDIR}/lockstep RENAME liblockstep_gpu.a)
install(DIRECTORY lib/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lockstep FILES_MATCHING PATTERN "*.h")

configure_package_config_file(cmake/lockstepConfig.cmake.in lockstepConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/lockstep
                              PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(lockstepConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/lockstepConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/lockstepConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/lockstep)

# What the program says about itself.
foreach(page man/lockstep.1 completion/lockstep)
  get_filename_component(what ${page} DIRECTORY)
  add_custom_command(OUTPUT ${page} DEPENDS lockstep
    COMMAND ${CMAKE_COMMAND} -E make_directory ${what}
    COMMAND $<TARGET_FILE:lockstep> describe --${what} > ${page})
  list(APPEND pages ${CMAKE_CURRENT_BINARY_DIR}/${page})
endforeach()
add_custom_target(lockstep_pages ALL DEPENDS ${pages})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/man/lockstep.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/completion/lockstep
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES README.md LICENSE CHANGELOG.md CITATION.cff DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY configs slurm examples DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME lockstep)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Data-parallel training of neural networks over MPI ranks, from a YAML file")
set(CPACK_PACKAGE_CONTACT "the lockstep developers <lockstep@example.org>")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS openmpi-bin)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_STRIP_FILES ON)
include(CPack)
