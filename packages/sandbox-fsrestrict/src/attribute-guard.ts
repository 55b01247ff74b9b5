/**
 * The guard of file attributes. Landlock does not restrict changes of modes, owners and times. The filter therefore passes these calls
 * to the launcher, which stays outside of the sandbox and performs them only for files in the writable folders.
 */
import type { Machine } from './machine.ts'
import { encodeCalls, hex, type SystemCall } from './system-calls.ts'

/** The guard of one command. */
export interface AttributeGuard {
  readonly machine: Machine
  /** The folders in which files may be changed, as absolute resolved paths. */
  readonly writable: readonly string[]
  /** The calls by which the launcher drops its own privileges. */
  readonly privileges: readonly SystemCall[]
}

/** Encodes a guard for the launcher: a line each of call numbers, of folders and of guarded calls, and the calls to make. */
export function encodeGuard({ machine, writable, privileges }: AttributeGuard): string {
  const { clone, ioctl, openNoFollow, fchmodat, fchownat, utimensat } = machine
  const calls = machine.attributes.map(({ number, changes, folder = '-', path = '-', value, flags = '-', isOfLink }) =>
    [number, changes, folder, path, value, flags, isOfLink ? 1 : 0].join(' '),
  )
  return [
    [clone, ioctl, openNoFollow, fchmodat, fchownat, utimensat].join(' '),
    writable.map((path) => hex(Buffer.from(path))).join(' '),
    calls.join(','),
    encodeCalls(privileges),
  ].join('\n')
}
