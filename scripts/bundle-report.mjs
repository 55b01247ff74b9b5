// What a build is made of: bytes per package, loaded at start or on demand, from esbuild's metafile.

/** The package an input file belongs to: `@sluice/gateway`, `hono`, `@ai-sdk/provider`. */
function packageOf(input) {
  const own = /(?:^|\/)packages\/([^/]+)\//.exec(input)
  if (own) return `@sluice/${own[1]}`
  const path = input.slice(input.lastIndexOf('node_modules/') + 'node_modules/'.length)
  if (path === input) return 'profile'
  const [scope, name] = path.split('/')
  return scope?.startsWith('@') ? `${scope}/${name}` : (scope ?? input)
}

/** Output files that load when the entry does, following static imports and the profile the entry loads first. */
function startFiles(outputs) {
  const entry = Object.keys(outputs).find((file) => outputs[file].entryPoint?.endsWith('entry'))
  const profile = Object.keys(outputs).find(
    (file) =>
      outputs[file].entryPoint && outputs[file].entryPoint !== outputs[entry]?.entryPoint && /profile/.test(outputs[file].entryPoint),
  )
  const found = new Set()
  const visit = (file) => {
    if (!file || found.has(file) || !outputs[file]) return
    found.add(file)
    for (const { path, kind } of outputs[file].imports) if (kind === 'import-statement') visit(path)
  }
  visit(entry)
  visit(profile)
  return found
}

export function bundleReport({ outputs }, profile) {
  const atStart = startFiles(outputs)
  const packages = new Map()
  const totals = { startBytes: 0, totalBytes: 0 }
  for (const [file, output] of Object.entries(outputs)) {
    if (file.endsWith('.map')) continue
    totals.totalBytes += output.bytes
    if (atStart.has(file)) totals.startBytes += output.bytes
    for (const [input, { bytesInOutput }] of Object.entries(output.inputs)) {
      const name = packageOf(input)
      const row = packages.get(name) ?? { package: name, startBytes: 0, laterBytes: 0 }
      row[atStart.has(file) ? 'startBytes' : 'laterBytes'] += bytesInOutput
      packages.set(name, row)
    }
  }
  const rows = [...packages.values()].sort((a, b) => b.startBytes + b.laterBytes - a.startBytes - a.laterBytes)
  return { profile, ...totals, files: Object.keys(outputs).length, packages: rows }
}

const kilobytes = (bytes) => (bytes / 1000).toFixed(1).padStart(9)

export function printReport(report) {
  console.log(
    `${report.profile}: ${report.files} files, ${kilobytes(report.totalBytes).trim()} kB in all, ${kilobytes(report.startBytes).trim()} kB loaded at start`,
  )
  console.log(`${'kB at start'.padStart(11)} ${'kB later'.padStart(9)}  package`)
  for (const row of report.packages) console.log(`${kilobytes(row.startBytes).padStart(11)} ${kilobytes(row.laterBytes)}  ${row.package}`)
}
