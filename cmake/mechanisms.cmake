# Compiles seeds/mechanisms/mechanisms.json into the program, so that it needs no data folder to know its mechanisms.
# A string literal has a size limit in some compilers, so the text goes in as one literal a line.

set(MECHANISMS_JSON "${CMAKE_SOURCE_DIR}/seeds/mechanisms/mechanisms.json")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${MECHANISMS_JSON}")
file(READ "${MECHANISMS_JSON}" INFRARSI_MECHANISMS)
string(REPLACE "\n" ")json\"\n    R\"json(" INFRARSI_MECHANISMS "${INFRARSI_MECHANISMS}")
configure_file("${CMAKE_SOURCE_DIR}/core/mechanisms/shipped_json.cpp.in" "${CMAKE_BINARY_DIR}/generated/shipped_json.cpp" @ONLY)
