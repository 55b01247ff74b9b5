/**
 * A filter of system calls for what Landlock leaves open: sockets, memory and queues shared by a key, limits and schedules
 * of other processes, modes and attributes of files. It stands beside the filter all backends share.
 */
import {
  ALLOW,
  argumentAt,
  assembleFilter,
  type FilterInstruction,
  forCall,
  give,
  IF_ANY_BIT,
  IF_EQUAL,
  load,
  NUMBER_AT,
  refuse,
  when,
} from '@sluice/sandbox-common'
import { TAG_RESOURCE } from './command-tag.ts'
import type { Machine } from './machine.ts'

const EPERM = 1
const EOPNOTSUPP = 95
const EAFNOSUPPORT = 97

/** AF_INET, AF_INET6, AF_NETLINK: never Unix sockets, since Landlock does not see which path they lead to. */
const NETWORK_FAMILIES = [2, 10, 16]
/** Devices come and go by AF_NETLINK, and what reads them listens there. */
const DEVICE_FAMILIES = [16]
/** Set in the types of sockets that choose whom they send to with each packet. */
const PACKET_BIT = 2
const USERS = { setpriority: 2, ioprioSet: 3 }
const OTHERS_WRITE = 0o002
const OWNER_READS = 0o400
const EVERYBODY = 0xffffffff
/** FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR, FS_IOC_ENABLE_VERITY: they change a file that is open for reading. */
const FILE_REQUESTS = [0x40086602, 0x401c5820, 0x40806685]
const O_TRUNC = 0o1000
const O_ACCMODE = 0o3
/** The first version of Landlock that knows of truncating. */
const TRUNCATE_ABI = 3

export interface Reach {
  readonly network: boolean
  readonly hasDevices: boolean
}

export function ownFilter(machine: Machine, abi: number, { network, hasDevices }: Reach): Uint8Array {
  const families = network ? NETWORK_FAMILIES : hasDevices ? DEVICE_FAMILIES : []
  const denied = give(refuse(EPERM))
  const unlessZero = (index: number): readonly FilterInstruction[] => [load(argumentAt(index)), ...when(IF_EQUAL, 0, ALLOW), denied]
  /** By kind of target and its id, where 0 is the caller; one kind means everything of a user. */
  const ofTarget = (users: number): readonly FilterInstruction[] => [
    load(argumentAt(0)),
    ...when(IF_EQUAL, users, refuse(EPERM)),
    ...unlessZero(1),
  ]
  return assembleFilter([
    load(NUMBER_AT),
    ...machine.sharedByKey.flatMap((number) => when(IF_EQUAL, number, refuse(EPERM))),
    ...machine.attributes.flatMap((number) => when(IF_EQUAL, number, refuse(EOPNOTSUPP))),
    ...machine.schedule.flatMap((number) => forCall(number, unlessZero(0))),
    ...machine.modes.flatMap(([number, argument]) =>
      forCall(number, [
        load(argumentAt(argument)),
        ...when(IF_ANY_BIT, OTHERS_WRITE, refuse(EPERM)),
        ...when(IF_ANY_BIT, OWNER_READS, ALLOW),
        denied,
      ]),
    ),
    ...forCall(machine.setpriority, ofTarget(USERS.setpriority)),
    ...forCall(machine.ioprioSet, ofTarget(USERS.ioprioSet)),
    ...forCall(machine.ioctl, [
      load(argumentAt(1)),
      ...FILE_REQUESTS.flatMap((request) => when(IF_EQUAL, request, refuse(EPERM))),
      give(ALLOW),
    ]),
    ...forCall(machine.kill, [load(argumentAt(0)), ...when(IF_EQUAL, EVERYBODY, refuse(EPERM)), give(ALLOW)]),
    ...forCall(machine.setrlimit, [load(argumentAt(0)), ...when(IF_EQUAL, TAG_RESOURCE, refuse(EPERM)), give(ALLOW)]),
    ...forCall(machine.prlimit64, [load(argumentAt(1)), ...when(IF_EQUAL, TAG_RESOURCE, refuse(EPERM)), ...unlessZero(0)]),
    ...forCall(machine.socket, [
      load(argumentAt(0)),
      ...families.flatMap((family) => when(IF_EQUAL, family, ALLOW)),
      give(refuse(EAFNOSUPPORT)),
    ]),
    ...forCall(machine.socketpair, [load(argumentAt(1)), ...when(IF_ANY_BIT, PACKET_BIT, refuse(EPERM)), give(ALLOW)]),
    ...(abi < TRUNCATE_ABI ? truncating(machine) : []),
    give(ALLOW),
  ])
}

/** Truncating without the right to write: by a path, or while opening for reading. */
function truncating({ truncate, opens }: Machine): readonly FilterInstruction[] {
  return [
    ...when(IF_EQUAL, truncate, refuse(EPERM)),
    ...opens.flatMap(([number, argument]) =>
      forCall(number, [
        load(argumentAt(argument)),
        ...when(IF_ANY_BIT, O_ACCMODE, ALLOW),
        ...when(IF_ANY_BIT, O_TRUNC, refuse(EPERM)),
        give(ALLOW),
      ]),
    ),
  ]
}
