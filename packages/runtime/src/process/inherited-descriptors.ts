/** The descriptors that this process inherited and that every child of it would inherit too. Found once, at the import. */
import { readdirSync, readFileSync } from 'node:fs'

/** The flag of `open` that keeps a descriptor from children. Node sets it on every descriptor that it opens. */
const O_CLOEXEC = 0o2000000
/** Standard input, output and error come before the first inherited descriptor. */
const STREAMS = 3
const FOLDER = '/proc/self/fdinfo'

/** Empty where there is no /proc: on macOS, a child gets only the descriptors that it is given. */
export const INHERITED: readonly number[] = find()

/** The `stdio` entries after the three streams: `nothing`, an open descriptor, replaces each inherited one in the child. */
export const standIns = (nothing: number): readonly (number | 'ignore')[] =>
  Array.from({ length: Math.max(...INHERITED) + 1 - STREAMS }, (_, index) => (INHERITED.includes(index + STREAMS) ? nothing : 'ignore'))

function find(): number[] {
  try {
    return readdirSync(FOLDER)
      .map(Number)
      .filter((fd) => fd >= STREAMS && isPassedOn(fd))
  } catch {
    return []
  }
}

function isPassedOn(fd: number): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)/m.exec(readFileSync(`${FOLDER}/${fd}`, 'utf8'))?.[1]
    return flags !== undefined && (Number.parseInt(flags, 8) & O_CLOEXEC) === 0
  } catch {
    // The descriptor with which the folder itself was read.
    return false
  }
}
