# `./dev deb`: the two programs, and the server as a service, as a package for this Debian release.
set(service COMPONENT service EXCLUDE_FROM_ALL)  # `cmake --install` leaves it out
install(FILES deploy/systemd/opmill-server.service DESTINATION /usr/lib/systemd/system ${service})
install(FILES deploy/systemd/server.flags DESTINATION /etc/opmill ${service})
install(FILES deploy/systemd/sysusers.conf DESTINATION /usr/lib/sysusers.d RENAME opmill.conf ${service})
install(FILES README.md DESTINATION /usr/share/doc/opmill ${service})
install(FILES LICENSE DESTINATION /usr/share/doc/opmill RENAME copyright ${service})
install(FILES "${OPMILL_DEPS_DIR}/root/usr/share/doc/libvkd3d-dev/copyright"  # linked statically
  DESTINATION /usr/share/doc/opmill RENAME vkd3d.copyright OPTIONAL ${service})

set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL programs service)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_SOURCE_DIR}/build/deb")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_CONTACT "OpMill <opmill@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "server of DirectML's operators and ONNX models over gRPC")
set(CPACK_PACKAGE_DESCRIPTION
"The server opmill-server computes on a GPU, through Vulkan, or on the processor. The command line opmill
calls servers. The service opmill-server runs when the administrator has started it.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# For GPUs. The server looks for them when it starts.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libvulkan1, mesa-vulkan-drivers (>= 25)")
set(scripts "${PROJECT_SOURCE_DIR}/cmake/deb")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  "${scripts}/conffiles;${scripts}/postinst;${scripts}/postrm;${scripts}/prerm")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
