// Rewrites a bundle's imports of built-in modules into calls of `process.getBuiltinModule`.
//
// An ES import of a built-in module evaluates each of its exports. Getters of `node:http` and `node:fs` load a second HTTP stack and
// the line reader: a third of the start time of the daemon.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const IMPORT = /(^|[;}\n])import\s*([^"';()]*?)\s*(?:from\s*)?"(node:[a-z0-9_/]+)"/g

/** Converts import names such as `a as b, c` into a destructuring pattern such as `a:b,c`. */
const pattern = (names) =>
  names
    .split(',')
    .filter(Boolean)
    .map((name) => name.trim().replace(/\s+as\s+/, ':'))
    .join(',')

/** Returns the declarations that bind the imported names to the module that the expression `lookup` returns. */
function binding(names, lookup) {
  const declarations = []
  const braces = /\{([^}]*)\}/.exec(names)
  const rest = names.replace(/,?\s*\{[^}]*\}/, '')
  for (const name of rest.split(',').filter(Boolean)) declarations.push(`${name.replace(/\*\s*as\s*/, '').trim()}=${lookup}`)
  if (braces) declarations.push(`{${pattern(braces[1])}}=${lookup}`)
  return declarations.length === 0 ? lookup : `const ${declarations.join(',')}`
}

/** Rewrites every `.mjs` file of the folder. */
export function takeBuiltins(folder) {
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.mjs'))) {
    const path = join(folder, file)
    const text = readFileSync(path, 'utf8')
    const taken = text.replace(IMPORT, (_, before, names, module) => `${before}${binding(names, `process.getBuiltinModule("${module}")`)}`)
    if (taken !== text) writeFileSync(path, taken)
  }
}
