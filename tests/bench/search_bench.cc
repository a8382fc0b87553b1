// Exact nearest-neighbour search on the processor, for search_bench.py, which measures FAISS beside
// it. One command a line, one line of JSON for each:
//
//   data TYPE N D PATH            the vectors, as a file of elements
//   run Q K METRIC THREADS PATH   microseconds of a run with the queries of the file, and the
//   indices
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "kernels/cpu/device/cpu_device.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/search/search_desc.h"
#include "kernels/program/program.h"

namespace opmill {
namespace {

class Bench {
 public:
  void Data(std::istream& words) {
    std::string type;
    std::string path;
    uint32_t rows = 0;
    uint32_t dims = 0;
    words >> type >> rows >> dims >> path;
    vectors_ = {type == "int8" ? DataType::kInt8 : DataType::kFloat32, {rows, dims}, {}};
    path_ = path;
    buffers_.clear();
    std::cout << "{}" << std::endl;
  }

  void Run(std::istream& words) {
    uint32_t queries = 0;
    uint32_t k = 0;
    uint32_t metric = 0;
    uint32_t threads = 0;
    std::string path;
    words >> queries >> k >> metric >> threads >> path;
    Device& device = DeviceOf(threads);
    TensorDesc tensor = vectors_;
    tensor.sizes[0] = queries;
    const OperatorDesc desc = Validate({.schema = &kSearchSchema,
                                        .inputs = {tensor, vectors_},
                                        .outputs = {std::nullopt, std::nullopt},
                                        .attributes = {k, metric}})
                                  .value();
    const auto compiled = device.Compile(ProgramOf(desc)).value();
    if (buffers_[threads] == nullptr) buffers_[threads] = Read(device, vectors_, path_);
    Bindings bindings = {.inputs = {Read(device, tensor, path), buffers_[threads]}};
    for (const auto& output : desc.outputs) {
      bindings.outputs.push_back(
          device.Allocate(RequiredBytes(*output), Residency::kReadback).value());
    }
    const RunStatistics run = device.RunAndWait(compiled, bindings).value();
    std::cout << "{\"microseconds\": " << absl::ToDoubleMicroseconds(run.executed)
              << ", \"scratch\": " << compiled->cost().scratch_bytes << ", \"indices\": [";
    const auto* const indices =
        reinterpret_cast<const uint32_t*>(bindings.outputs[1].bytes().data());
    for (uint32_t i = 0; i < queries * k; ++i) std::cout << (i > 0 ? "," : "") << indices[i];
    std::cout << "]}" << std::endl;
  }

 private:
  Device& DeviceOf(uint32_t threads) {
    auto& device = devices_[threads];
    if (device == nullptr) device = CreateCpuDevice({.threads = threads});
    return *device;
  }
  static std::shared_ptr<Buffer> Read(Device& device, const TensorDesc& tensor,
                                      const std::string& path) {
    auto buffer = device.Allocate(RequiredBytes(tensor), Residency::kUpload).value();
    std::ifstream(path, std::ios::binary)
        .read(reinterpret_cast<char*>(buffer->bytes().data()),
              static_cast<std::streamsize>(SpannedBytes(tensor)));
    return buffer;
  }

  std::map<uint32_t, std::unique_ptr<Device>> devices_;
  std::map<uint32_t, std::shared_ptr<Buffer>> buffers_;  // of the vectors
  TensorDesc vectors_;
  std::string path_;
};

int Main() {
  Bench bench;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    if (command == "data") {
      bench.Data(words);
    } else {
      bench.Run(words);
    }
  }
  return 0;
}

}  // namespace
}  // namespace opmill

int main() { return opmill::Main(); }
