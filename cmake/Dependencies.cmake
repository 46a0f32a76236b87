# Every library the program cannot do without, each as one imported target; for CUDA and NCCL see Gpu.cmake.
find_package(MPI REQUIRED COMPONENTS CXX)
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PNG REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)

# Chart.js, which `lockstep report` puts into its page. Debian's package: libjs-chart.js
find_file(LOCKSTEP_CHART_JS chart.min.js PATHS /usr/share/javascript/chart.js /usr/share/nodejs/chart.js/dist)
if(NOT LOCKSTEP_CHART_JS)
  message(FATAL_ERROR "Chart.js not found, which is put into the pages of `lockstep report`: install Debian's libjs-chart.js "
                      "(apt-get install libjs-chart.js), or give its file with -DLOCKSTEP_CHART_JS=PATH/chart.min.js")
endif()

find_path(ONEDNN_INCLUDE dnnl.h HINTS ${LOCKSTEP_ONEDNN_ROOT}/include REQUIRED)
find_library(ONEDNN_LIBRARY dnnl HINTS ${LOCKSTEP_ONEDNN_ROOT}/lib REQUIRED)
add_library(onednn INTERFACE)
target_include_directories(onednn SYSTEM INTERFACE ${ONEDNN_INCLUDE})
target_link_libraries(onednn INTERFACE ${ONEDNN_LIBRARY} OpenMP::OpenMP_CXX)

# libjpeg-turbo's own interface, which reports damage by return codes (libjpeg's jumps).
find_path(TURBOJPEG_INCLUDE turbojpeg.h REQUIRED)
find_library(TURBOJPEG_LIBRARY turbojpeg REQUIRED)
add_library(turbojpeg INTERFACE)
target_include_directories(turbojpeg SYSTEM INTERFACE ${TURBOJPEG_INCLUDE})
target_link_libraries(turbojpeg INTERFACE ${TURBOJPEG_LIBRARY})

# The messages of ONNX files, made by its project from onnx.proto.
find_package(Protobuf REQUIRED)
find_path(ONNX_INCLUDE onnx/onnx_pb.h REQUIRED)
find_library(ONNX_PROTO_LIBRARY onnx_proto REQUIRED)
add_library(onnx_proto INTERFACE)
target_include_directories(onnx_proto SYSTEM INTERFACE ${ONNX_INCLUDE})
target_compile_definitions(onnx_proto INTERFACE ONNX_NAMESPACE=onnx ONNX_ML=1)
target_link_libraries(onnx_proto INTERFACE ${ONNX_PROTO_LIBRARY} protobuf::libprotobuf)
