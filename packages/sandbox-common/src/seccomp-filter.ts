/** A filter of system calls for confined commands, as the kernel takes it: what no ordinary program calls, and what leads out. */
import {
  ALLOW,
  ARCH_AT,
  argumentAt,
  assembleFilter,
  type FilterInstruction,
  forCall,
  give,
  IF_ANY_BIT,
  IF_AT_LEAST,
  IF_EQUAL,
  load,
  NUMBER_AT,
  refuse,
  when,
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
  /** Calls at or above it belong to another convention. */
  readonly numbersEnd?: number
  readonly refused: readonly number[]
  /** A program takes its other way where these are not known: their arguments cannot be looked at. */
  readonly unknown: readonly number[]
  /** By number, which argument is a mode. */
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
      // ptrace, syslog, personality's cousins uselib and ustat, pivot_root, chroot, acct, mount, umount2, swapon, swapoff, reboot
      101,
      103,
      134,
      136,
      155,
      161,
      163,
      165,
      166,
      167,
      168,
      169,
      // sethostname, setdomainname, iopl, ioperm, create_module, init_module, delete_module, quotactl, nfsservctl
      170,
      171,
      172,
      173,
      174,
      175,
      176,
      179,
      180,
      // settimeofday, adjtimex, clock_settime, clock_adjtime, lookup_dcookie, kexec_load, kexec_file_load, vhangup
      164,
      159,
      227,
      305,
      212,
      246,
      320,
      153,
      // add_key, request_key, keyctl, perf_event_open, fanotify_init, name_to_handle_at, open_by_handle_at, setns
      248,
      249,
      250,
      298,
      300,
      303,
      304,
      308,
      // process_vm_readv, process_vm_writev, kcmp, finit_module, bpf, userfaultfd, migrate_pages, move_pages, mbind
      310,
      311,
      312,
      313,
      321,
      323,
      256,
      279,
      237,
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
      117,
      116,
      41,
      51,
      89,
      40,
      39,
      224,
      225,
      142,
      161,
      162,
      105,
      106,
      60,
      42,
      170,
      171,
      112,
      266,
      18,
      104,
      294,
      58,
      217,
      218,
      219,
      241,
      262,
      264,
      265,
      268,
      270,
      271,
      272,
      273,
      280,
      282,
      238,
      239,
      235,
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
 * The filter for programs of this machine; `undefined` where none is known. Refuses calls that need privileges or see
 * into other processes, new namespaces, files that change who runs them, input put into terminals, and sockets of other
 * families than Unix, IPv4, IPv6 and netlink.
 */
export function seccompFilter(arch: string = process.arch): Uint8Array | undefined {
  const machine = MACHINES[arch]
  if (!machine) return undefined
  const { refused, unknown, modes, clone, unshare, ioctl, socket } = machine
  const program: FilterInstruction[] = [
    load(ARCH_AT),
    [IF_EQUAL, 1, 0, machine.arch],
    give(refuse(ENOSYS)),
    load(NUMBER_AT),
    ...(machine.numbersEnd === undefined ? [] : when(IF_AT_LEAST, machine.numbersEnd, refuse(ENOSYS))),
    ...refused.flatMap((number) => when(IF_EQUAL, number, refuse(EPERM))),
    ...unknown.flatMap((number) => when(IF_EQUAL, number, refuse(ENOSYS))),
    ...modes.flatMap(([number, argument]) =>
      forCall(number, [load(argumentAt(argument)), ...when(IF_ANY_BIT, SET_ID_BITS, refuse(EPERM)), give(ALLOW)]),
    ),
    ...forCall(clone, [load(argumentAt(0)), ...when(IF_ANY_BIT, NAMESPACE_BITS, refuse(EPERM)), give(ALLOW)]),
    ...forCall(unshare, [load(argumentAt(0)), ...when(IF_ANY_BIT, NAMESPACE_BITS | NEW_TIME_BIT, refuse(EPERM)), give(ALLOW)]),
    ...forCall(ioctl, [
      load(argumentAt(1)),
      ...[TIOCSTI, TIOCLINUX].flatMap((request) => when(IF_EQUAL, request, refuse(EPERM))),
      give(ALLOW),
    ]),
    ...forCall(socket, [load(argumentAt(0)), ...FAMILIES.flatMap((family) => when(IF_EQUAL, family, ALLOW)), give(refuse(EAFNOSUPPORT))]),
    give(ALLOW),
  ]
  return assembleFilter(program)
}
