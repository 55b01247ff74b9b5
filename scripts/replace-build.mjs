// Puts a finished build in the place of the one before it, without a moment in which the folder holds half of each.
//
// A daemon loads parts of its bundle when it first needs them, so the files of the replaced build stay for a while: their
// names hold a hash of their content, and no file of the new build takes the place of one with other content.
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const KEEP_MS = 7 * 24 * 60 * 60 * 1000
const ENTRY = 'sluice.mjs'
/** When each file that is no longer part of the build was replaced, in milliseconds since 1970. */
const REPLACED = 'replaced.json'

function readReplaced(folder) {
  try {
    return JSON.parse(readFileSync(join(folder, REPLACED), 'utf8'))
  } catch {
    return {} // The first build of this folder, or a list that a crash cut short.
  }
}

/** Moves the files of `built` into `folder`, the entry last, and removes files that were replaced more than a week ago. */
export function replaceBuild(built, folder, nowMs) {
  mkdirSync(folder, { recursive: true })
  const fresh = readdirSync(built)
  const before = readReplaced(folder)
  const old = readdirSync(folder).filter((file) => file !== REPLACED && !fresh.includes(file))
  const replaced = Object.fromEntries(old.map((file) => [file, before[file] ?? nowMs]))
  const expired = old.filter((file) => nowMs - replaced[file] > KEEP_MS)
  for (const file of expired) delete replaced[file]
  if (Object.keys(replaced).length > 0) writeFileSync(join(built, REPLACED), JSON.stringify(replaced))
  else rmSync(join(folder, REPLACED), { force: true })
  for (const file of readdirSync(built).filter((name) => name !== ENTRY)) renameSync(join(built, file), join(folder, file))
  if (existsSync(join(built, ENTRY))) renameSync(join(built, ENTRY), join(folder, ENTRY))
  for (const file of expired) rmSync(join(folder, file), { recursive: true, force: true })
}
