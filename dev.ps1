<#
.SYNOPSIS
  Builds and tests OpMill on Windows: the verbs of ./dev, with MSVC and vcpkg.
.DESCRIPTION
  ./dev.ps1 VERB [arguments]

    help                     this page
    setup                    as an administrator: what is missing of Visual Studio's build tools, Git and vcpkg
    libraries                what vcpkg.json names, static, into vcpkg's binary cache
    build [TARGET...]        builds into build/msvc
    run                      builds, starts the server on port 50051, runs `opmill demo` against it,
                             stops it
    serve [FLAG...]          builds and runs the server (--address=127.0.0.1:50051 --device=software ...)
    test [CTEST ARGUMENTS]   builds, then runs every test
    conformance [CTEST ...]  builds, then runs the conformance tests over their full tables
    wheel FILE...            installs wheels in a new environment of Python, runs the worked examples with the
                             programs that they bring
    container                builds the container, waits until it is healthy, runs the worked examples in it
    clean                    removes build/msvc

  Environment:
    VCPKG_ROOT               where vcpkg is, or goes; C:\v where unset, since some paths below it are long
    OPMILL_REQUIRE_DEVICE=0  tests that find no Direct3D 12 device are skipped, and say so
#>
param(
  [Parameter(Position = 0)] [string] $Verb = 'help',
  [Parameter(Position = 1, ValueFromRemainingArguments = $true)] [string[]] $Arguments = @()
)

Set-StrictMode -Version Latest
$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'  # a progress bar makes downloads many times slower
Set-Location -LiteralPath $PSScriptRoot

$buildToolsUrl = 'https://aka.ms/vs/17/release/vs_BuildTools.exe'
$gitUrl = 'https://github.com/git-for-windows/git/releases/download/v2.47.1.windows.1/MinGit-2.47.1-64-bit.zip'
$vcpkgUrl = 'https://github.com/microsoft/vcpkg.git'
$gitRoot = 'C:\git'
$buildFolder = Join-Path $PSScriptRoot 'build\msvc'
if (-not $env:VCPKG_ROOT) { $env:VCPKG_ROOT = 'C:\v' }
if (Test-Path "$gitRoot\cmd\git.exe") { $env:PATH = "$gitRoot\cmd;$env:PATH" }

# Invoke-Tool COMMAND ARGUMENTS...: what PowerShell lets pass, a program's exit status, ends the script.
function Invoke-Tool {
  $command, $rest = $args
  & $command @rest
  if ($LASTEXITCODE -ne 0) { throw "$command $rest ended with $LASTEXITCODE." }
}

# Where Visual Studio 2022 with its C++ tools is; nothing where it is not.
function Find-VisualStudio {
  $vswhere = "${env:ProgramFiles(x86)}\Microsoft Visual Studio\Installer\vswhere.exe"
  if (-not (Test-Path $vswhere)) { return }
  & $vswhere -latest -products * -version '[17.0,)' -requires Microsoft.VisualStudio.Component.VC.Tools.x86.x64 -property installationPath
}

# The environment of Visual Studio's x64 prompt: cl, cmake, ninja, ctest.
function Enter-VisualStudio {
  if ($env:VSCMD_ARG_TGT_ARCH -eq 'x64') { return }
  $root = Find-VisualStudio
  if (-not $root) { throw 'No Visual Studio 2022 with C++ tools is installed; ./dev.ps1 setup installs them.' }
  $vcpkg = $env:VCPKG_ROOT  # Visual Studio's prompt names its own
  cmd /S /C "`"$root\VC\Auxiliary\Build\vcvars64.bat`" >nul && set" | ForEach-Object {
    $name, $value = $_ -split '=', 2
    Set-Item -LiteralPath "env:$name" -Value $value
  }
  $env:VCPKG_ROOT = $vcpkg
}

function Install-BuildTools {
  $installer = Join-Path $env:TEMP 'vs_BuildTools.exe'
  Invoke-WebRequest -UseBasicParsing -Uri $buildToolsUrl -OutFile $installer
  $process = Start-Process -Wait -PassThru -FilePath $installer -ArgumentList @(
    '--quiet', '--wait', '--norestart', '--nocache', '--installPath', 'C:\vs',
    '--add', 'Microsoft.VisualStudio.Component.VC.Tools.x86.x64',
    '--add', 'Microsoft.VisualStudio.Component.VC.CMake.Project',
    '--add', 'Microsoft.VisualStudio.Component.Windows11SDK.22621')
  Remove-Item $installer
  # 3010: it is done, and would like a restart, which a container does without.
  if ($process.ExitCode -notin 0, 3010) { throw "The installer of Visual Studio's build tools ended with $($process.ExitCode)." }
}

function Install-Git {
  $archive = Join-Path $env:TEMP 'git.zip'
  Invoke-WebRequest -UseBasicParsing -Uri $gitUrl -OutFile $archive
  Expand-Archive -Path $archive -DestinationPath $gitRoot
  Remove-Item $archive
  $env:PATH = "$gitRoot\cmd;$env:PATH"
}

function Invoke-Setup {
  # Some of gRPC's paths are longer than 260 characters.
  Set-ItemProperty -Path 'HKLM:\SYSTEM\CurrentControlSet\Control\FileSystem' -Name LongPathsEnabled -Type DWord -Value 1
  if (-not (Find-VisualStudio)) { Install-BuildTools }
  if (-not (Get-Command git -ErrorAction SilentlyContinue)) { Install-Git }
  if (-not (Test-Path "$env:VCPKG_ROOT\.git")) { Invoke-Tool git clone --quiet $vcpkgUrl $env:VCPKG_ROOT }
  if (-not (Test-Path "$env:VCPKG_ROOT\vcpkg.exe")) {
    Invoke-Tool "$env:VCPKG_ROOT\bootstrap-vcpkg.bat" -disableMetrics
  }
}

function Invoke-Libraries {
  Enter-VisualStudio
  Invoke-Tool "$env:VCPKG_ROOT\vcpkg.exe" install --triplet x64-windows-static "--x-install-root=$buildFolder\vcpkg_installed"
}

function Invoke-Build {
  param([string[]] $Targets = @())
  Enter-VisualStudio
  Invoke-Tool cmake --preset msvc
  $chosen = @()
  if ($Targets.Count -gt 0) { $chosen = @('--target') + $Targets }
  Invoke-Tool cmake --build --preset msvc @chosen
}

function Invoke-Tests {
  if (-not (Test-Path env:OPMILL_REQUIRE_DEVICE)) { $env:OPMILL_REQUIRE_DEVICE = '1' }
  Invoke-Tool ctest --preset msvc --parallel $env:NUMBER_OF_PROCESSORS @Arguments
}

# Runs the worked examples with these programs.
function Invoke-Demo {
  param([string] $Program, [string] $Client)
  $server = Start-Process -PassThru -NoNewWindow -FilePath $Program
  try {
    $serves = $false
    for ($i = 0; $i -lt 60 -and -not $serves; ++$i) {
      if ($server.HasExited) { throw "The server ended with $($server.ExitCode)." }
      Start-Sleep -Milliseconds 500
      & $Client health | Out-Null
      $serves = $LASTEXITCODE -eq 0
    }
    if (-not $serves) { throw 'The server does not serve after 30 s.' }
    Invoke-Tool $Client demo
  } finally {
    if (-not $server.HasExited) { Stop-Process -Id $server.Id }
  }
}

function Invoke-Wheel {
  $environment = Join-Path $PSScriptRoot 'build\wheel-venv'
  if (Test-Path $environment) { Remove-Item -Recurse -Force $environment }
  Invoke-Tool python -m venv $environment
  $wheels = $Arguments | ForEach-Object { (Get-ChildItem $_).FullName }
  Invoke-Tool "$environment\Scripts\python.exe" -m pip install --quiet @wheels
  Invoke-Demo -Program "$environment\Scripts\opmill-server.exe" -Client "$environment\Scripts\opmill.exe"
}

function Invoke-Container {
  Invoke-Tool docker build -m 4GB --tag opmill .
  Invoke-Tool docker run --detach --name opmill --env OPMILL_INSECURE=true --env OPMILL_DEVICE=software opmill
  try {
    for ($i = 0; (docker inspect --format '{{.State.Health.Status}}' opmill) -ne 'healthy'; ++$i) {
      if ($i -ge 300) { throw 'The container is not healthy after 300 s.' }
      Start-Sleep 1
    }
    Invoke-Tool docker exec opmill C:\opmill\opmill.exe demo --server 127.0.0.1:50051
    Invoke-Tool docker stop opmill
  } finally {
    docker logs opmill
    docker rm --force opmill
  }
}

switch ($Verb) {
  'setup' { Invoke-Setup }
  'libraries' { Invoke-Libraries }
  'build' { Invoke-Build -Targets $Arguments }
  'run' {
    Invoke-Build -Targets 'opmill-server', 'opmill'
    Invoke-Demo -Program "$buildFolder\server\opmill-server.exe" -Client "$buildFolder\client\opmill.exe"
  }
  'serve' {
    Invoke-Build -Targets 'opmill-server'
    & "$buildFolder\server\opmill-server.exe" @Arguments
    exit $LASTEXITCODE
  }
  'test' {
    Invoke-Build
    Invoke-Tests
  }
  'conformance' {
    Invoke-Build
    $env:OPMILL_CONFORMANCE = 'full'
    $Arguments = @('--label-regex', 'conformance') + $Arguments
    Invoke-Tests
  }
  'wheel' { Invoke-Wheel }
  'container' { Invoke-Container }
  'clean' { if (Test-Path $buildFolder) { Remove-Item -Recurse -Force $buildFolder } }
  'help' { Get-Help -Full $PSCommandPath }
  default { throw "dev.ps1: unknown verb '$Verb'; ./dev.ps1 help lists the verbs." }
}
