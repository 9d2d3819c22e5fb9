# SPDX-License-Identifier: Apache-2.0
# Two Debian packages: `cpack --config build/release/CPackConfig.cmake -B FOLDER`.
set(folder ${CMAKE_CURRENT_LIST_DIR})
install(FILES ${folder}/systemd/baton-router.service ${folder}/systemd/baton-prefill@.service
              ${folder}/systemd/baton-decode@.service DESTINATION lib/systemd/system COMPONENT server)
set(config_files router.yaml prefill-0.yaml decode-0.yaml)
list(TRANSFORM config_files PREPEND ${folder}/etc/ OUTPUT_VARIABLE config_sources)
install(FILES ${config_sources} DESTINATION etc/baton COMPONENT server)
foreach(component server client)
  install(FILES ${folder}/copyright ${CMAKE_SOURCE_DIR}/NOTICE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/baton-${component}
          COMPONENT ${component})
endforeach()

list(TRANSFORM config_files PREPEND /etc/baton/)
string(REPLACE ";" "\n" conffiles "${config_files}\n")
file(WRITE ${CMAKE_BINARY_DIR}/packages/conffiles "${conffiles}")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The Baton authors <baton@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL server client)
set(CPACK_PRE_BUILD_SCRIPTS ${folder}/stage.cmake)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_SERVER_PACKAGE_NAME baton-server)
set(CPACK_DEBIAN_SERVER_PACKAGE_SECTION net)
set(CPACK_DEBIAN_SERVER_PACKAGE_RECOMMENDS "baton-client, ibverbs-providers")
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_EXTRA ${folder}/postinst ${folder}/prerm ${CMAKE_BINARY_DIR}/packages/conffiles)
set(CPACK_COMPONENT_SERVER_DESCRIPTION
    "Serves large language models with separate prefill and decode\nRouter, prefill worker, decode worker, systemd units and a small model.")
set(CPACK_DEBIAN_CLIENT_PACKAGE_NAME baton-client)
set(CPACK_DEBIAN_CLIENT_PACKAGE_SECTION net)
set(CPACK_COMPONENT_CLIENT_DESCRIPTION
    "Sends requests to a Baton router\nThe command baton: answers, chat, status, benchmarks, and work on models.")
include(CPack)
