// Replaces a build by a new one. At every moment, the folder holds one complete build.
//
// A running daemon loads parts of its bundle when it first needs them, so files of the replaced build stay for a week. File names
// contain a hash of the content, so a new file never overwrites one with other content.
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { filesBelow } from './files-below.mjs'

const LOCK_MS_MAX = 600_000
const KEEP_MS = 7 * 24 * 60 * 60 * 1000
const ENTRY = 'sluice.mjs'
/** The file with the times, in milliseconds since 1970, at which files left the build. */
const REPLACED = 'replaced.json'
/** Files of the folder that no build contains: this one, and the packages that `sluice native install` adds. */
const KEPT = [REPLACED, 'node_modules']

function readReplaced(folder) {
  try {
    return JSON.parse(readFileSync(join(folder, REPLACED), 'utf8'))
  } catch {
    return {} // The first build in this folder, or a file that a crash left incomplete.
  }
}

/**
 * Does `work` while no other process does so with the same file. The lock of an SQLite file ends with its process, however that ends.
 * Waits for ten minutes at most.
 */
export async function alone(file, work) {
  const lock = new DatabaseSync(file, { timeout: LOCK_MS_MAX })
  try {
    lock.exec('BEGIN EXCLUSIVE')
    return await work()
  } finally {
    lock.close()
  }
}

/** Moves the files of `built` into `folder`, the entry last, and removes files that were replaced more than a week ago. */
export function replaceBuild(built, folder, nowMs) {
  mkdirSync(folder, { recursive: true })
  const fresh = filesBelow(built)
  const before = readReplaced(folder)
  const old = filesBelow(folder, KEPT).filter((file) => !fresh.includes(file))
  const replaced = Object.fromEntries(old.map((file) => [file, before[file] ?? nowMs]))
  const expired = old.filter((file) => nowMs - replaced[file] > KEEP_MS)
  for (const file of expired) delete replaced[file]
  if (Object.keys(replaced).length > 0) writeFileSync(join(built, REPLACED), JSON.stringify(replaced))
  else rmSync(join(folder, REPLACED), { force: true })
  // The files that describe the build move right before its entry, so that a crash hardly ever mixes two builds.
  const isChunk = (name) => name.endsWith('.mjs') || name.includes('/assets/')
  const names = filesBelow(built).filter((name) => name !== ENTRY)
  const ordered = [...names.filter(isChunk), ...names.filter((name) => !isChunk(name))]
  for (const file of ordered) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    renameSync(join(built, file), join(folder, file))
  }
  if (existsSync(join(built, ENTRY))) renameSync(join(built, ENTRY), join(folder, ENTRY))
  for (const file of expired) rmSync(join(folder, file), { recursive: true, force: true })
}
