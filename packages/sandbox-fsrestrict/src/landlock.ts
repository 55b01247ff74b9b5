/** Landlock (Linux 5.13 or newer): the access rights of each ABI version and the calls that restrict a thread. */
import type { SandboxPolicy } from '@sluice/sdk'
import { CALLS, type Machine } from './machine.ts'
import { packed, type SystemCall, text } from './system-calls.ts'

const EXECUTE = 1 << 0
const WRITE_FILE = 1 << 1
const READ_FILE = 1 << 2
const READ_DIR = 1 << 3
const MAKE_CHAR = 1 << 6
const MAKE_BLOCK = 1 << 11
const TRUNCATE = 1 << 14
const IOCTL_DEV = 1 << 15
/** The rights that a file other than a folder can have. */
const FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
/** The number of rights that each version knows, from the first bit on. */
const KNOWN_RIGHTS = [13, 14, 15, 15, 16]
const TCP_ABI = 4
const SCOPES_ABI = 6
/** Both network rights (bind and connect), or both scopes (abstract sockets and signals). */
const BOTH = 3

const VERSION_FLAG = 1
const PATH_BENEATH = 1
const AT_FDCWD = -100
const O_PATH_CLOEXEC = 0x280000

export const EXECUTABLE = READ_FILE | READ_DIR | EXECUTE
export const READABLE = READ_FILE | READ_DIR
/** For a device that stores nothing. */
export const USABLE = READ_FILE | WRITE_FILE | TRUNCATE
/** For a device that controls hardware, or a folder of such devices. */
export const CONTROLLABLE = USABLE | READ_DIR | IOCTL_DEV

/** A path that a command may use. */
export interface ShownPath {
  readonly path: string
  /** Rights of Landlock. `landlockCalls` removes the rights that the kernel's version does not know. */
  readonly rights: number
  readonly isFolder: boolean
}

/** Prints the version, or the negative error number. */
export const LANDLOCK_VERSION_CALL: SystemCall = {
  name: 'landlock_create_ruleset',
  number: CALLS.landlockCreateRuleset,
  args: [0, 0, VERSION_FLAG],
  failing: 'print',
}

/** Describes the protection of a version for the operator. */
export function coverage(abi: number): string {
  const parts = ['files', abi >= TCP_ABI && 'TCP', abi >= 5 && 'device control', abi >= SCOPES_ABI && 'scopes']
  return `Landlock ABI ${abi}: ${parts.filter(Boolean).join(', ')}`
}

/**
 * Returns the calls that restrict the thread to the shown paths, the writable folders and the network of the policy. `at` is
 * the index of the first call in the whole list. A shown path that no longer exists is skipped.
 */
export function landlockCalls(
  { openat }: Pick<Machine, 'openat'>,
  abi: number,
  shown: readonly ShownPath[],
  { writable, network }: Pick<SandboxPolicy, 'writable' | 'network'>,
  at: number,
): readonly SystemCall[] {
  const known = 2 ** (KNOWN_RIGHTS[Math.min(abi, KNOWN_RIGHTS.length) - 1] ?? 0) - 1
  const rules = [
    ...shown.map(({ path, rights, isFolder }) => ({
      path,
      rights: rights & (isFolder ? known : known & FILE_RIGHTS),
      failing: 'may' as const,
    })),
    ...writable.map((path) => ({ path, rights: known & ~(MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV), failing: 'must' as const })),
  ]
  return [
    ruleset(abi, known, network),
    ...rules.flatMap(({ path, rights, failing }, index): SystemCall[] => [
      { name: 'openat', number: openat, args: [AT_FDCWD, text(path), O_PATH_CLOEXEC], failing },
      {
        name: 'landlock_add_rule',
        number: CALLS.landlockAddRule,
        args: [{ result: at }, PATH_BENEATH, { bytes: packed([64, rights]), followedBy: at + 1 + 2 * index }, 0],
        failing,
      },
    ]),
    { name: 'landlock_restrict_self', number: CALLS.landlockRestrictSelf, args: [{ result: at }, 0] },
  ]
}

/** Creates the ruleset. Older versions accept only a shorter structure. */
function ruleset(abi: number, known: number, network: boolean): SystemCall {
  const attributes = packed(
    [64, known],
    ...(abi >= TCP_ABI ? [[64, network ? 0 : BOTH] as const] : []),
    ...(abi >= SCOPES_ABI ? [[64, BOTH] as const] : []),
  )
  return { name: 'landlock_create_ruleset', number: CALLS.landlockCreateRuleset, args: [{ bytes: attributes }, attributes.length, 0] }
}
