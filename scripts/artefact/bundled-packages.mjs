// Lists the packages of other authors whose code is in a bundle, and the optional packages that the bundle loads from its folder.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve, sep } from 'node:path'

const MODULES = `node_modules${sep}`
const LICENCE_FILE = /^(?:licen[cs]e|copying|notice)/i

/** Packages whose published files contain a copy of another package, at the version that they are developed with. */
const COPIES = { unpdf: { name: 'pdfjs-dist', licence: 'Apache-2.0', author: 'Mozilla', homepage: 'https://mozilla.github.io/pdf.js/' } }

/** Returns the folder of the package that an input of the bundle belongs to; undefined for a file of this repository. */
function packageFolder(root, input) {
  const path = resolve(root, input)
  const at = path.lastIndexOf(MODULES)
  if (at < 0) return undefined
  const start = at + MODULES.length
  const [first, second] = path.slice(start).split(sep)
  return join(path.slice(0, start), first.startsWith('@') ? join(first, second) : first)
}

/** Returns the SPDX expression in a `package.json`, in its present or in one of its two old forms; undefined without one. */
function licenceOf({ license, licenses }) {
  if (typeof license === 'string') return license
  const types = [license, ...(Array.isArray(licenses) ? licenses : [licenses])].flatMap((entry) => entry?.type ?? [])
  return types.length === 0 ? undefined : types.join(' OR ')
}

/** Returns the texts of the licence and notice files of a package, in the order of their names. */
const licenceTexts = (folder) =>
  readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && LICENCE_FILE.test(entry.name))
    .map((entry) => entry.name)
    .sort()
    .map((name) => readFileSync(join(folder, name), 'utf8').replaceAll('\r\n', '\n').trim())

/** Returns a description of the package in a folder, and one of the package that it contains a copy of, if there is one. */
function describePackages(folder) {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const { name, version, author, homepage, devDependencies = {} } = manifest
  const own = { key: `${name}@${version}`, name, version, licence: licenceOf(manifest), author, homepage, texts: licenceTexts(folder) }
  const copy = COPIES[name]
  if (!copy) return [{ ...own, dependsOn: new Set() }]
  const copied = devDependencies[copy.name].replace(/^[~^]/, '')
  const key = `${copy.name}@${copied}`
  return [
    { ...own, dependsOn: new Set([key]) },
    { ...copy, key, version: copied, texts: [], dependsOn: new Set() },
  ]
}

/**
 * Returns the packages with code in the bundle, sorted by `key`, which is `<name>@<version>`. `dependsOn` has the keys of the packages
 * that each imports; `imported` has the keys of the packages that files of this repository import.
 */
export function bundledPackages({ inputs, outputs }, root) {
  const used = new Set(
    Object.values(outputs).flatMap((output) =>
      Object.entries(output.inputs).flatMap(([input, { bytesInOutput }]) => (bytesInOutput > 0 ? [input] : [])),
    ),
  )
  const folders = new Map()
  for (const input of used) {
    const folder = packageFolder(root, input)
    if (folder && existsSync(join(folder, 'package.json')) && !folders.has(folder)) folders.set(folder, describePackages(folder))
  }
  const imported = new Set()
  for (const input of used) {
    const [importer] = folders.get(packageFolder(root, input)) ?? []
    for (const { path, external } of inputs[input]?.imports ?? []) {
      const [target] = (external ? undefined : folders.get(packageFolder(root, path))) ?? []
      if (target && target !== importer) (importer ? importer.dependsOn : imported).add(target.key)
    }
  }
  const packages = [...folders.values()].flat().map((one) => ({ ...one, dependsOn: [...one.dependsOn].sort() }))
  return { packages: packages.sort((a, b) => (a.key < b.key ? -1 : 1)), imported: [...imported].sort() }
}

/** Returns the names of those `optional` packages that the bundle imports from outside, sorted. */
export function importedOutside({ outputs }, optional) {
  const specifiers = Object.values(outputs).flatMap(({ imports }) => imports.flatMap(({ path, external }) => (external ? [path] : [])))
  return optional.filter((name) => specifiers.some((path) => path === name || path.startsWith(`${name}/`))).sort()
}
