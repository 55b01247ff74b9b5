/** The packages that built modules and declarations import. */
import { globSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'

const IMPORT = /^(?:import|export)\b[^;'"]*?\bfrom ["']([^'"]+)["']|^import ["']([^'"]+)["']|\bimport\(["']([^'"]+)["']\)/gm

/** Returns the names of the packages that the files of a folder import, sorted, without built-in modules. Comments do not count. */
export function packagesIn(folder: string): string[] {
  const specifiers = globSync('dist/**/*.{js,d.ts}', { cwd: folder }).flatMap((file) => {
    const text = readFileSync(join(folder, file), 'utf8').replace(/\/\*[\s\S]*?\*\//g, '')
    return [...text.matchAll(IMPORT)].map(([, from, effect, late]) => from ?? effect ?? late ?? '')
  })
  const names = specifiers.filter((specifier) => !specifier.startsWith('.') && !isBuiltin(specifier)).map(packageOf)
  return [...new Set(names)].toSorted()
}

const packageOf = (specifier: string): string =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
