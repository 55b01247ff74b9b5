/**
 * The guard of file attributes. Landlock does not restrict changes of modes, owners and times. The filter therefore passes these calls
 * to the launcher, which stays outside of the sandbox and performs them only for files in the writable folders.
 */
import type { Machine } from './machine.ts'
import { encodeCalls, hex, type SystemCall } from './system-calls.ts'

/** A call that changes an attribute of a file. The numbers are indexes of its arguments. */
export interface AttributeCall {
  readonly number: number
  /** The attribute, and for times the form in which they are given. */
  readonly changes: 'mode' | 'owner' | 'seconds' | 'microseconds' | 'nanoseconds'
  /** The argument with the folder of a relative path, or with the file itself if the call has no path. */
  readonly folder?: number
  readonly path?: number
  /** The argument with the new value; the group of an owner is the argument after it. */
  readonly value: number
  readonly flags?: number
  /** The call changes a link itself. */
  readonly isOfLink?: true
}

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
