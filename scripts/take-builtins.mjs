// Rewrites a bundle's imports of built-in modules into calls of `process.getBuiltinModule`.
//
// An ES import of a built-in module evaluates each of its exports. Getters of `node:http` and `node:fs` load a second HTTP stack and
// the line reader: a third of the start time of the daemon. Functions of LATE modules are looked up at their first call, because most
// commands of the command line call none of them.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const IMPORT = /(^|[;}\n])import\s*([^"';()]*?)\s*(?:from\s*)?"(node:[a-z0-9_/]+)"/g

/** Modules whose functions are looked up at their first call. Loading one takes 6 to 8 ms of a processor. */
const LATE = new Set(['node:crypto', 'node:net'])

/** Returns the declarations of functions that load their module at the first call; undefined if not only functions are imported. */
function lateFunctions(names, module) {
  const imported = /^\s*\{([^}]*)\}\s*$/.exec(names)?.[1]?.split(',').filter(Boolean)
  if (!LATE.has(module) || !imported) return undefined
  const pairs = imported.map((name) => name.trim().split(/\s+as\s+/))
  const exported = process.getBuiltinModule(module)
  if (!pairs.every(([name]) => /^[a-z]/.test(name) && typeof exported[name] === 'function')) return undefined
  const variable = `$${module.slice('node:'.length)}`
  const calls = pairs.map(([name, local = name]) => `${local}=(...a)=>(${variable}??=process.getBuiltinModule("${module}")).${name}(...a)`)
  return `var ${variable};const ${calls.join(',')}`
}

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
    const taken = text.replace(
      IMPORT,
      (_, before, names, module) => `${before}${lateFunctions(names, module) ?? binding(names, `process.getBuiltinModule("${module}")`)}`,
    )
    if (taken !== text) writeFileSync(path, taken)
  }
}
