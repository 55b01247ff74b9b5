/** The seccomp filter of confined commands. It refuses system calls that ordinary programs do not need or that lead out of a sandbox. */
import {
  ALLOW,
  ARCH_AT,
  argumentAt,
  assembleFilter,
  type FilterInstruction,
  failWith,
  forCall,
  IF_ANY_BIT,
  IF_AT_LEAST,
  IF_EQUAL,
  load,
  NUMBER_AT,
  returns,
  returnsIf,
} from './filter-program.ts'

const EPERM = 1
const ENOSYS = 38
const EAFNOSUPPORT = 97

const SET_ID_BITS = 0o6000
/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
const NAMESPACE_BITS = 0x7e020000
const NEW_TIME_BIT = 0x80
const TIOCSTI = 0x5412
const TIOCLINUX = 0x541c
/** AF_UNIX, AF_INET, AF_INET6, AF_NETLINK. */
const FAMILIES = [1, 2, 10, 16]

interface Machine {
  readonly arch: number
  /** Numbers from here on belong to another calling convention. */
  readonly numbersEnd?: number
  readonly refused: readonly number[]
  /** Calls that fail as unknown, because a filter cannot read their arguments. Programs then use the older calls. */
  readonly unknown: readonly number[]
  /** The calls that take a file mode, with the index of that argument. */
  readonly modes: readonly (readonly [number: number, argument: number])[]
  readonly clone: number
  readonly unshare: number
  readonly ioctl: number
  readonly socket: number
}

/** clone3, openat2. */
const UNKNOWN = [435, 437]
/** io_uring ×3, the mount calls of 5.2 and later, pidfd_getfd, mount_setattr, quotactl_fd, lsm_set_self_attr. */
const REFUSED_EVERYWHERE = [425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 442, 443, 467]

const MACHINES: Partial<Record<string, Machine>> = {
  x64: {
    arch: 0xc000003e,
    numbersEnd: 0x40000000,
    refused: [
      ...[101, 103, 134, 136, 155, 161], // ptrace, syslog, uselib, ustat, pivot_root, chroot
      ...[163, 165, 166, 167, 168, 169], // acct, mount, umount2, swapon, swapoff, reboot
      ...[170, 171, 172, 173], // sethostname, setdomainname, iopl, ioperm
      ...[174, 175, 176, 179, 180], // create_module, init_module, delete_module, quotactl, nfsservctl
      ...[164, 159, 227, 305], // settimeofday, adjtimex, clock_settime, clock_adjtime
      ...[212, 246, 320, 153], // lookup_dcookie, kexec_load, kexec_file_load, vhangup
      ...[248, 249, 250, 298, 300], // add_key, request_key, keyctl, perf_event_open, fanotify_init
      ...[303, 304, 308], // name_to_handle_at, open_by_handle_at, setns
      ...[310, 311, 312, 313, 321], // process_vm_readv, process_vm_writev, kcmp, finit_module, bpf
      ...[323, 256, 279, 237], // userfaultfd, migrate_pages, move_pages, mbind
      ...REFUSED_EVERYWHERE,
    ],
    unknown: UNKNOWN,
    // open, creat, chmod, fchmod, mknod, openat, mknodat, fchmodat, fchmodat2
    modes: [
      [2, 2],
      [85, 1],
      [90, 1],
      [91, 1],
      [133, 1],
      [257, 3],
      [259, 2],
      [268, 2],
      [452, 2],
    ],
    clone: 56,
    unshare: 272,
    ioctl: 16,
    socket: 41,
  },
  arm64: {
    arch: 0xc00000b7,
    refused: [
      ...[117, 116, 41, 51], // ptrace, syslog, pivot_root, chroot
      ...[89, 40, 39, 224, 225, 142], // acct, mount, umount2, swapon, swapoff, reboot
      ...[161, 162], // sethostname, setdomainname
      ...[105, 106, 60, 42], // init_module, delete_module, quotactl, nfsservctl
      ...[170, 171, 112, 266], // settimeofday, adjtimex, clock_settime, clock_adjtime
      ...[18, 104, 294, 58], // lookup_dcookie, kexec_load, kexec_file_load, vhangup
      ...[217, 218, 219, 241, 262], // add_key, request_key, keyctl, perf_event_open, fanotify_init
      ...[264, 265, 268], // name_to_handle_at, open_by_handle_at, setns
      ...[270, 271, 272, 273, 280], // process_vm_readv, process_vm_writev, kcmp, finit_module, bpf
      ...[282, 238, 239, 235], // userfaultfd, migrate_pages, move_pages, mbind
      ...REFUSED_EVERYWHERE,
    ],
    unknown: UNKNOWN,
    // fchmod, fchmodat, openat, mknodat, fchmodat2
    modes: [
      [52, 1],
      [53, 2],
      [56, 3],
      [33, 2],
      [452, 2],
    ],
    clone: 220,
    unshare: 97,
    ioctl: 29,
    socket: 198,
  },
}

/**
 * Returns the filter for an architecture, or undefined if its call numbers are not known. The filter refuses calls that need
 * privileges or read other processes, new namespaces, set-id files, input injected into terminals, and all socket families
 * except Unix, IPv4, IPv6 and netlink.
 */
export function seccompFilter(arch: string = process.arch): Uint8Array | undefined {
  const machine = MACHINES[arch]
  if (!machine) return undefined
  const { refused, unknown, modes, clone, unshare, ioctl, socket } = machine
  const program: FilterInstruction[] = [
    load(ARCH_AT),
    [IF_EQUAL, 1, 0, machine.arch],
    returns(failWith(ENOSYS)),
    load(NUMBER_AT),
    ...(machine.numbersEnd === undefined ? [] : returnsIf(IF_AT_LEAST, machine.numbersEnd, failWith(ENOSYS))),
    ...refused.flatMap((number) => returnsIf(IF_EQUAL, number, failWith(EPERM))),
    ...unknown.flatMap((number) => returnsIf(IF_EQUAL, number, failWith(ENOSYS))),
    ...modes.flatMap(([number, argument]) =>
      forCall(number, [load(argumentAt(argument)), ...returnsIf(IF_ANY_BIT, SET_ID_BITS, failWith(EPERM)), returns(ALLOW)]),
    ),
    ...forCall(clone, [load(argumentAt(0)), ...returnsIf(IF_ANY_BIT, NAMESPACE_BITS, failWith(EPERM)), returns(ALLOW)]),
    ...forCall(unshare, [load(argumentAt(0)), ...returnsIf(IF_ANY_BIT, NAMESPACE_BITS | NEW_TIME_BIT, failWith(EPERM)), returns(ALLOW)]),
    ...forCall(ioctl, [
      load(argumentAt(1)),
      ...[TIOCSTI, TIOCLINUX].flatMap((request) => returnsIf(IF_EQUAL, request, failWith(EPERM))),
      returns(ALLOW),
    ]),
    ...forCall(socket, [
      load(argumentAt(0)),
      ...FAMILIES.flatMap((family) => returnsIf(IF_EQUAL, family, ALLOW)),
      returns(failWith(EAFNOSUPPORT)),
    ]),
    returns(ALLOW),
  ]
  return assembleFilter(program)
}
