/** Descriptors this process was started with, by number, that all it starts would have too. Looked for once, at the import. */
import { readdirSync, readFileSync } from 'node:fs'

/** Of `open`: whoever has this mark is handed on to nobody. Node sets it on all it opens itself. */
const O_CLOEXEC = 0o2000000
const STREAMS = 3
const FOLDER = '/proc/self/fdinfo'

/** None where there is no /proc: macOS hands on only what is named. */
export const INHERITED: readonly number[] = find()

/** What `spawn` is given after the three streams, so that `nothing`, an open descriptor, stands wherever one would be handed on. */
export const standIns = (nothing: number): readonly (number | 'ignore')[] =>
  Array.from({ length: Math.max(...INHERITED) + 1 - STREAMS }, (_, index) => (INHERITED.includes(index + STREAMS) ? nothing : 'ignore'))

function find(): number[] {
  try {
    return readdirSync(FOLDER)
      .map(Number)
      .filter((fd) => fd >= STREAMS && isHandedOn(fd))
  } catch {
    return []
  }
}

function isHandedOn(fd: number): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)/m.exec(readFileSync(`${FOLDER}/${fd}`, 'utf8'))?.[1]
    return flags !== undefined && (Number.parseInt(flags, 8) & O_CLOEXEC) === 0
  } catch {
    // the one the folder was read by
    return false
  }
}
