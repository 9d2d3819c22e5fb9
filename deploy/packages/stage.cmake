# SPDX-License-Identifier: Apache-2.0
# CPack runs this script on the files of all components. Packages have /etc, an installation elsewhere PREFIX/etc.
set(stage ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/server)
file(RENAME ${stage}/usr/etc ${stage}/etc)

# Each package has an SBOM of its programs.
foreach(component server client)
  set(usr ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}/usr)
  file(GLOB programs ${usr}/bin/*)
  execute_process(
    COMMAND /usr/bin/python3 ${CMAKE_CURRENT_LIST_DIR}/sbom.py baton-${component} ${CPACK_PACKAGE_VERSION} ${programs}
    OUTPUT_FILE ${usr}/share/doc/baton-${component}/sbom.spdx.json COMMAND_ERROR_IS_FATAL ANY)
endforeach()
