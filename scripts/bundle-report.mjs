// Counts the bytes of each package in a bundle, loaded at start or later, from esbuild's metafile.

const MODULES = 'node_modules/'

/** Returns the package of an input file, such as `@sluice/http` or `hono`; `profile` for the entry and the profile. */
function packageOf(input) {
  const at = input.lastIndexOf(MODULES)
  const own = /(?:^|\/)packages\/([^/]+)\//.exec(input)
  if (at < 0) return own ? `@sluice/${own[1]}` : 'profile'
  const [scope = '', name] = input.slice(at + MODULES.length).split('/')
  return scope.startsWith('@') ? `${scope}/${name}` : scope
}

const hasInput = (output, pattern) => Object.keys(output.inputs).some((input) => pattern.test(input))

/**
 * Returns the output files that are loaded at start: the entry, the profile and the daemon command, with their static imports.
 * Every other file is loaded when it is first needed.
 */
function startFiles(outputs) {
  const roots = Object.keys(outputs).filter((file) => {
    const { entryPoint = '' } = outputs[file]
    return (
      /(?:scripts\/entry\.mjs|:profile|profiles\/[^/]+\.ts|commands\/daemon\.ts)$/.test(entryPoint) ||
      hasInput(outputs[file], /^sluice:profile$/)
    )
  })
  const found = new Set()
  const visit = (file) => {
    if (found.has(file) || !outputs[file]) return
    found.add(file)
    for (const { path, kind } of outputs[file].imports) if (kind === 'import-statement') visit(path)
  }
  for (const file of roots) visit(file)
  return found
}

/** Returns the totals and one row for each package, the largest first. */
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

/** Prints the totals; with `packages`, also the row of each package. */
export function printReport(report, { packages }) {
  console.log(
    `${report.profile}: ${report.files} files, ${kilobytes(report.totalBytes).trim()} kB in all, ${kilobytes(report.startBytes).trim()} kB loaded at start`,
  )
  if (!packages) return
  console.log(`${'kB at start'.padStart(11)} ${'kB later'.padStart(9)}  package`)
  for (const row of report.packages) console.log(`${kilobytes(row.startBytes).padStart(11)} ${kilobytes(row.laterBytes)}  ${row.package}`)
}
