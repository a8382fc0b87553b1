"""The GPUs of the report, and how to run their drivers' compilers without the hardware."""

import dataclasses
import os
import pathlib


@dataclasses.dataclass(frozen=True)
class Gpu:
    name: str
    product: str
    driver: str  # RADV or NVK
    chip: str  # as the driver calls it
    compute_units: int  # AMD's compute units, NVIDIA's SMs
    processors: int  # that have `most_waves` waves each: AMD's SIMDs, NVIDIA's SMs
    most_waves: int
    wave_lanes: int
    bandwidth: float  # bytes a second
    multiply_rate: float  # FP32 lanes times the boost clock, without dual issue: multiplications a second
    cache_bytes: float = 0  # the last cache, and its bandwidth; of a GPU whose times are estimated
    cache_bandwidth: float = 0

    @property
    def bytes_needed(self):
        """The bytes that must be in flight to use the memory's bandwidth: bandwidth times latency."""
        return self.bandwidth * 700e-9

    def memory_share(self, input_bytes, multiplications):
        """The share of the bandwidth that a plan needs: 1, or less if it multiplies for longer than it reads."""
        memory_seconds = input_bytes / self.bandwidth
        return memory_seconds / max(memory_seconds, multiplications / self.multiply_rate)

    def resident_lanes(self, waves):
        return self.processors * waves * self.wave_lanes


GPUS = {gpu.name: gpu for gpu in (
    Gpu("navi31", "Radeon RX 7900 XTX", "RADV", "navi31", 96, 192, 16, 64, 0.96e12, 96 * 64 * 2.5e9),
    Gpu("navi21", "Radeon RX 6900 XT", "RADV", "navi21", 80, 160, 16, 64, 0.512e12, 80 * 64 * 2.25e9),
    Gpu("vega20", "Radeon VII", "RADV", "vega20", 60, 240, 10, 64, 1.02e12, 60 * 64 * 1.8e9),
    Gpu("gh100", "H200", "NVK", "180", 132, 132, 64, 32, 4.8e12, 132 * 128 * 1.98e9),
    Gpu("ad102", "GeForce RTX 4090", "NVK", "192", 128, 128, 48, 32, 1.01e12, 128 * 128 * 2.5e9),
)}

# GPUs whose times are estimated, from public numbers and the code for the GPU that each is made of. Intel's
# compiler is not at hand: the code for AMD's GPU stands in, on 512 vector engines of 8 lanes.
TIMED = {
    "h100": dataclasses.replace(GPUS["gh100"], product="H100 80GB HBM3", bandwidth=3.35e12,
                                cache_bytes=50e6, cache_bandwidth=5.5e12),
    "7900xtx": dataclasses.replace(GPUS["navi31"], cache_bytes=96e6, cache_bandwidth=3.5e12),
    "a770": dataclasses.replace(GPUS["navi31"], product="Arc A770", compute_units=32,
                                processors=512, wave_lanes=8, bandwidth=0.56e12,
                                multiply_rate=512 * 8 * 2.1e9, cache_bytes=16e6,
                                cache_bandwidth=2e12),
}


@dataclasses.dataclass(frozen=True)
class TimeModel:
    """What no data sheet tells: fitted by ./dev gpu-report --fit to every other row of h100_rows.txt."""
    run: float  # seconds that a run takes at least
    step: float  # seconds between a pass and the next
    memory: float  # share of the bandwidth that a kernel reaches
    straight: float  # share of the code outside of loops that runs: not all cases, nor all turns of loops


TIME_MODEL = TimeModel(run=5.2e-6, step=9.07e-6, memory=0.829, straight=0.556)


def command_for(gpu, deps, nvk, scratch):
    """Returns the start of the compiler's command line, and its environment."""
    environment = dict(os.environ, MESA_SHADER_CACHE_DISABLE="1", VKD3D_DEBUG="none",
                       VKD3D_SHADER_DEBUG="none")
    if gpu.driver == "NVK":
        return [str(pathlib.Path(nvk) / "run"), gpu.chip], environment
    manifest = pathlib.Path(scratch) / "radv.json"
    library = next(pathlib.Path(deps).resolve().glob("root/usr/lib/*/libvulkan_radeon.so"))
    manifest.write_text('{"ICD": {"api_version": "1.4.305", "library_path": "%s"}, '
                        '"file_format_version": "1.0.0"}' % library)
    environment |= {"RADV_FORCE_FAMILY": gpu.chip, "VK_DRIVER_FILES": str(manifest),
                    "VK_ICD_FILENAMES": str(manifest)}
    return [], environment
