/**
 * The seccomp filter for operations that Landlock does not restrict: sockets, memory and queues shared by a key, limits and
 * scheduling of other processes, modes and attributes of files. It applies in addition to the filter of all backends.
 */
import {
  ALLOW,
  argumentAt,
  assembleFilter,
  type FilterInstruction,
  failWith,
  forCall,
  IF_ANY_BIT,
  IF_EQUAL,
  load,
  NOTIFY,
  NUMBER_AT,
  returns,
  returnsIf,
} from '@sluice/sandbox-common'
import { TAG_RESOURCE } from './command-tag.ts'
import type { Machine } from './machine.ts'
import type { AttributeCall } from './system-calls.ts'

const EPERM = 1
const EOPNOTSUPP = 95
const EAFNOSUPPORT = 97

/** AF_INET, AF_INET6, AF_NETLINK. Unix sockets are excluded, because Landlock does not restrict the paths they connect to. */
const NETWORK_FAMILIES = [2, 10, 16]
/** AF_NETLINK, on which the kernel announces devices. */
const DEVICE_FAMILIES = [16]
/** A bit of the socket types that can name a receiver in each packet. */
const PACKET_BIT = 2
/** The kind of target that means all processes of a user. */
const USERS = { setpriority: 2, ioprioSet: 3 }
const OTHERS_WRITE = 0o002
const OWNER_READS = 0o400
/** The process id -1, with which `kill` signals every process. */
const ALL_PROCESSES = 0xffffffff
/** FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR, FS_IOC_ENABLE_VERITY, which change a file even if it is open only for reading. */
const FILE_REQUESTS = [0x40086602, 0x401c5820, 0x40806685]
const O_TRUNC = 0o1000
const O_ACCMODE = 0o3
/** The first version of Landlock that restricts truncating. */
const TRUNCATE_ABI = 3

export interface Reach {
  readonly network: boolean
  readonly hasDevices: boolean
  /** Whether the launcher performs the calls that change attributes of files. */
  readonly isGuarded: boolean
}

/** Returns the filter for a version of Landlock. Below version 3 it also refuses to truncate files. */
export function supplementaryFilter(machine: Machine, abi: number, { network, hasDevices, isGuarded }: Reach): Uint8Array {
  const families = network ? NETWORK_FAMILIES : hasDevices ? DEVICE_FAMILIES : []
  const denied = returns(failWith(EPERM))
  const unlessZero = (index: number): readonly FilterInstruction[] => [load(argumentAt(index)), ...returnsIf(IF_EQUAL, 0, ALLOW), denied]
  /** Decides by the kind of target and its id, of which 0 is the caller. */
  const ofTarget = (users: number): readonly FilterInstruction[] => [
    load(argumentAt(0)),
    ...returnsIf(IF_EQUAL, users, failWith(EPERM)),
    ...unlessZero(1),
  ]
  return assembleFilter([
    load(NUMBER_AT),
    ...machine.sharedByKey.flatMap((number) => returnsIf(IF_EQUAL, number, failWith(EPERM))),
    ...machine.extended.flatMap((number) => returnsIf(IF_EQUAL, number, failWith(EOPNOTSUPP))),
    ...machine.schedule.flatMap((number) => forCall(number, unlessZero(0))),
    ...machine.attributes.flatMap((call) => (isGuarded ? returnsIf(IF_EQUAL, call.number, NOTIFY) : changing(call))),
    ...forCall(machine.setpriority, ofTarget(USERS.setpriority)),
    ...forCall(machine.ioprioSet, ofTarget(USERS.ioprioSet)),
    ...forCall(machine.ioctl, [
      load(argumentAt(1)),
      ...FILE_REQUESTS.flatMap((request) => returnsIf(IF_EQUAL, request, failWith(EPERM))),
      returns(ALLOW),
    ]),
    ...forCall(machine.kill, [load(argumentAt(0)), ...returnsIf(IF_EQUAL, ALL_PROCESSES, failWith(EPERM)), returns(ALLOW)]),
    ...forCall(machine.setrlimit, [load(argumentAt(0)), ...returnsIf(IF_EQUAL, TAG_RESOURCE, failWith(EPERM)), returns(ALLOW)]),
    ...forCall(machine.prlimit64, [load(argumentAt(1)), ...returnsIf(IF_EQUAL, TAG_RESOURCE, failWith(EPERM)), ...unlessZero(0)]),
    ...forCall(machine.socket, [
      load(argumentAt(0)),
      ...families.flatMap((family) => returnsIf(IF_EQUAL, family, ALLOW)),
      returns(failWith(EAFNOSUPPORT)),
    ]),
    ...forCall(machine.socketpair, [load(argumentAt(1)), ...returnsIf(IF_ANY_BIT, PACKET_BIT, failWith(EPERM)), returns(ALLOW)]),
    ...(abi < TRUNCATE_ABI ? truncating(machine) : []),
    returns(ALLOW),
  ])
}

/**
 * Decides a call that changes an attribute where no launcher performs it. Modes are limited, because programs do not work without them.
 * By its path, the owner of a file cannot be changed, and setting its times has no effect; by an open file, both can.
 */
function changing({ number, changes, path, value }: AttributeCall): readonly FilterInstruction[] {
  if (changes === 'mode')
    return forCall(number, [
      load(argumentAt(value)),
      ...returnsIf(IF_ANY_BIT, OTHERS_WRITE, failWith(EPERM)),
      ...returnsIf(IF_ANY_BIT, OWNER_READS, ALLOW),
      returns(failWith(EPERM)),
    ])
  if (path === undefined) return []
  if (changes === 'owner') return returnsIf(IF_EQUAL, number, failWith(EPERM))
  // Without a path, the call is for an open file.
  const [low, high] = [argumentAt(path), argumentAt(path) + 4]
  return forCall(number, [
    load(low),
    [IF_EQUAL, 1, 0, 0],
    returns(failWith(0)),
    load(high),
    [IF_EQUAL, 1, 0, 0],
    returns(failWith(0)),
    returns(ALLOW),
  ])
}

/** Refuses to truncate a file by its path or while opening it for reading, which needs no right to write. */
function truncating({ truncate, opens }: Machine): readonly FilterInstruction[] {
  return [
    ...returnsIf(IF_EQUAL, truncate, failWith(EPERM)),
    ...opens.flatMap(([number, argument]) =>
      forCall(number, [
        load(argumentAt(argument)),
        ...returnsIf(IF_ANY_BIT, O_ACCMODE, ALLOW),
        ...returnsIf(IF_ANY_BIT, O_TRUNC, failWith(EPERM)),
        returns(ALLOW),
      ]),
    ),
  ]
}
