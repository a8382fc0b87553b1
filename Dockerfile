# escape=`
# OpMill as a Windows container. docs/windows.md has the lines that build and run it.
#
#   runtime (the default)  builds with Visual Studio's tools and vcpkg, runs the unit tests, packs
#   packed                 packs what `./dev windows build` built and `./dev windows test` tested
ARG WINDOWS=ltsc2022

# --- what both run on: an image that has Direct3D 12, which Server Core and Nano Server lack ---
FROM mcr.microsoft.com/windows/server:${WINDOWS} AS base
SHELL ["cmd", "/S", "/C"]
# A container that is stopped gets CTRL_SHUTDOWN_EVENT, and by default 5 seconds. The server drains
# for up to 30 (--drain_timeout).
RUN reg add HKLM\SYSTEM\CurrentControlSet\Services\cexecsvc /v ProcessShutdownTimeoutSeconds /t REG_DWORD /d 40 /f && `
    reg add HKLM\SYSTEM\CurrentControlSet\Control /v WaitToKillServiceTimeout /t REG_SZ /d 40000 /f && `
    mkdir C:\opmill\cache && `
    icacls C:\opmill\cache /grant "Users:(OI)(CI)M"
ENV OPMILL_ADDRESS=0.0.0.0:50051 `
    OPMILL_LOG_FORMAT=json `
    OPMILL_SHADER_CACHE=C:\opmill\cache
EXPOSE 50051
VOLUME C:\opmill\cache
# hadolint ignore=DL3066
USER ContainerUser
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s `
    CMD ["C:\\opmill\\opmill.exe", "health", "--server", "127.0.0.1:50051"]
ENTRYPOINT ["C:\\opmill\\opmill-server.exe"]

FROM base AS packed
COPY build/windows/server/opmill-server.exe build/windows/client/opmill.exe build/windows/redist/d3dcompiler_47.dll C:/opmill/

# --- Visual Studio's build tools and the libraries, in layers of their own ---
FROM mcr.microsoft.com/windows/server:${WINDOWS} AS libraries
SHELL ["powershell", "-NoProfile", "-ExecutionPolicy", "Bypass", "-Command"]
WORKDIR C:/s
COPY dev.ps1 ./
RUN ./dev.ps1 setup
COPY vcpkg.json ./
RUN ./dev.ps1 libraries

FROM libraries AS build
COPY . .
RUN ./dev.ps1 test --label-exclude 'conformance|big'

FROM base AS runtime
COPY --from=build C:/s/build/msvc/server/opmill-server.exe C:/s/build/msvc/client/opmill.exe C:/opmill/
# The redistributable copy of the compiler: not every Windows has one.
COPY --from=build ["C:/Program Files (x86)/Windows Kits/10/Redist/D3D/x64/d3dcompiler_47.dll", "C:/opmill/"]
