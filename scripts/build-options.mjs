// The options of `pnpm build`. bootstrap.mjs checks them before it installs anything, so this file needs nothing but Node.
import { readdirSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { nearestName, parseOptions } from './install/install.mjs'

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '..')

const USAGE = `usage: pnpm build <minimal|standard|full|profile.ts> [--features <flag,flag…>] [--name <name>] [--pack]
       pnpm build --only <flag,flag…> [--name <name>] [--pack]
`

export const PROFILE_FILE = /\.m?[jt]s$/

const text = { type: 'string' }
const flag = { type: 'boolean' }
const OPTIONS = { features: text, only: text, name: text, summary: flag, pack: flag, names: flag }

/** Prints what is wrong and ends the process. */
export function usage(message) {
  process.stderr.write(`${message}\n${USAGE}`)
  process.exit(2)
}

/** Returns the options and positionals of a build. A wrong option and an unknown profile end the process. */
export function readBuildOptions(args) {
  let read
  try {
    read = parseOptions({ args, options: OPTIONS, allowPositionals: true })
  } catch (error) {
    return usage(error.message)
  }
  const profiles = readdirSync(join(ROOT, 'profiles'))
    .filter((name) => PROFILE_FILE.test(name))
    .map((name) => name.replace(PROFILE_FILE, ''))
  const unknown = read.positionals.find((name) => !PROFILE_FILE.test(name) && !profiles.includes(name))
  if (unknown === undefined) return read
  const near = nearestName(unknown, profiles)
  return usage(`no profile '${unknown}'${near === undefined ? '' : `; did you mean ${near}?`}`)
}
