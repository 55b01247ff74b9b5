// Writes a new package of this workspace from templates, and adds it to the root: what create-channel.mjs and create-feature.mjs share.
import { spawnSync } from 'node:child_process'
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '..')

/** Writes the files of the template folders, with `values` in place of `{{name}}` in their texts and paths. Returns their paths in the package. */
export function writePackage(folder, values, templates) {
  const fill = (text) => text.replaceAll(/\{\{(\w+)\}\}/g, (_, key) => values[key])
  return templates.flatMap((part) =>
    globSync('**/*.tmpl', { cwd: part }).map((template) => {
      const file = fill(template.slice(0, -'.tmpl'.length))
      mkdirSync(dirname(join(folder, file)), { recursive: true })
      writeFileSync(join(folder, file), fill(readFileSync(join(part, template), 'utf8')))
      return file
    }),
  )
}

/** Adds the package to the root, so that suites, builds and profiles find it. */
export function addToRoot(packageName) {
  const file = join(ROOT, 'package.json')
  const manifest = JSON.parse(readFileSync(file, 'utf8'))
  const entries = Object.entries({ ...manifest.devDependencies, [packageName]: 'workspace:*' })
  manifest.devDependencies = Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
  writeFileSync(file, `${JSON.stringify(manifest, null, 2)}\n`)
}

/** Runs a program in the root. Prints its output and the remaining command if it fails. Returns whether it succeeded. */
export function run(command, ...args) {
  const { status, error, stdout, stderr } = spawnSync(command, args, { cwd: ROOT, encoding: 'utf8', shell: process.platform === 'win32' })
  if (status === 0) return true
  process.stderr.write(`${stdout ?? ''}${stderr ?? ''}${error ? `${error.message}\n` : ''}Run '${command} ${args.join(' ')}' yourself.\n`)
  process.exitCode = 1
  return false
}
