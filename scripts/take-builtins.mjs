// Rewrites a bundle's imports of Node's own modules into plain look-ups.
//
// An ES import of a built-in module evaluates every export it has, and among those of `node:http` and `node:fs` are
// getters that load a second HTTP stack and the line reader: a third of the time the daemon takes to start.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const IMPORT = /(^|[;}\n])import\s*([^"';()]*?)\s*(?:from\s*)?"(node:[a-z0-9_/]+)"/g

/** `a as b, c` as a pattern for destructuring: `a:b,c`. */
const pattern = (names) =>
  names
    .split(',')
    .filter(Boolean)
    .map((name) => name.trim().replace(/\s+as\s+/, ':'))
    .join(',')

/** What is bound by `names` from the module `lookup` yields. */
function binding(names, lookup) {
  const declarations = []
  const braces = /\{([^}]*)\}/.exec(names)
  const rest = names.replace(/,?\s*\{[^}]*\}/, '')
  for (const name of rest.split(',').filter(Boolean)) declarations.push(`${name.replace(/\*\s*as\s*/, '').trim()}=${lookup}`)
  if (braces) declarations.push(`{${pattern(braces[1])}}=${lookup}`)
  return declarations.length === 0 ? lookup : `const ${declarations.join(',')}`
}

export function takeBuiltins(folder) {
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.mjs'))) {
    const path = join(folder, file)
    const text = readFileSync(path, 'utf8')
    const taken = text.replace(IMPORT, (_, before, names, module) => `${before}${binding(names, `process.getBuiltinModule("${module}")`)}`)
    if (taken !== text) writeFileSync(path, taken)
  }
}
