/** Attempts on other processes: a command can neither inspect nor affect them. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Rules } from '@sluice/testkit/rules'
import { CANARY, type InBench, type SandboxBench } from '@sluice/testkit/sandbox-rules/bench'
import { expect } from 'vitest'
import { SYSCALLS } from './syscalls.ts'

/** A process with the canary in its memory, environment, arguments, an open file, shared memory and a message queue. */
const TARGET = `
open my $file, '<', $ARGV[0]; my $held = join('', 'canary-that-', 'stays-where-it-is') x 4;
my $shared = shmget($ARGV[2], 4096, 01600); shmwrite($shared, $held, 0, length $held) if defined $shared;
my $queue = msgget($ARGV[2], 01600); msgsnd($queue, pack('l! a*', 1, $held), 04000) if defined $queue;
$SIG{TERM} = sub { shmctl($shared, 0, 0); msgctl($queue, 0, 0); exit 0 };
$| = 1; print 'ready'; sleep 1 for 1 .. 60`

interface Target {
  readonly child: ChildProcess
  readonly pid: number
  readonly key: number
}

async function withTarget(outside: string, use: (target: Target) => Promise<void>): Promise<void> {
  const key = 0x51_00_00_00 + Math.floor(Math.random() * 0xff_ff_ff)
  const child = spawn('perl', ['-e', TARGET, join(outside, 'canary'), `--secret=${CANARY}`, String(key)], {
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
    cwd: outside,
    env: { PATH: process.env.PATH, SECRET: CANARY },
  })
  await once(child.stdout, 'data')
  try {
    await use({ child, pid: child.pid ?? 0, key })
  } finally {
    const ended = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined
    child.kill('SIGCONT')
    child.kill('SIGTERM')
    await ended
  }
}

/** Scripts for `sh` with the target's id as `$1`; none may print the canary. */
const LOOKS: Readonly<Record<string, string>> = {
  'environment is read': 'cat "/proc/$1/environ" /proc/[0-9]*/environ',
  'arguments are read': 'cat "/proc/$1/cmdline" /proc/[0-9]*/cmdline',
  'open files are read': 'for each in /proc/$1/fd/3 /proc/[0-9]*/fd/3; do timeout 1 head -c 200 "$each"; done',
  'root is entered': 'cat "/proc/$1/root$2/canary"; ls "/proc/$1/root/" > /dev/null 2>&1 && echo canary-that-stays-where-it-is',
  'working directory is entered': 'cat "/proc/$1/cwd/canary"; cd "/proc/$1/cwd" 2> /dev/null && cat canary',
  'memory map is read': 'cat "/proc/$1/maps" > /dev/null 2>&1 && echo canary-that-stays-where-it-is',
  'threads are listed': 'ls /proc/$1/task/ > /dev/null 2>&1 && echo canary-that-stays-where-it-is',
}

/** Scripts for `perl` with the target's id as `$ARGV[0]` and its key as `$ARGV[1]`; none may print the canary. */
const CALLED_LOOKS: Readonly<Record<string, string>> = {
  'memory is read by /proc': `
    open my $maps, '<', "/proc/$ARGV[0]/maps" or exit; open my $memory, '<:raw', "/proc/$ARGV[0]/mem" or exit;
    while (<$maps>) { next unless /^([0-9a-f]+)-([0-9a-f]+) rw.*(?:heap|stack)/; sysseek $memory, hex $1, 0; sysread $memory, my $found, hex($2) - hex($1); print $1 while $found =~ /(canary-[a-z-]+)/g }`,
  'memory is read by a system call': `
    open my $maps, '<', "/proc/$ARGV[0]/maps" or exit;
    while (<$maps>) { next unless /^([0-9a-f]+)-([0-9a-f]+) rw.*heap/; my $length = hex($2) - hex($1); my $found = "\\0" x $length;
      my $here = pack('P Q', $found, $length); my $there = pack('Q Q', hex $1, $length);
      call('process_vm_readv', $ARGV[0] + 0, $here, 1, $there, 1, 0); print $1 while $found =~ /(canary-[a-z-]+)/g }`,
  'descriptors are taken': `
    my $process = call('pidfd_open', $ARGV[0] + 0, 0); exit if $process < 0;
    my $fd = call('pidfd_getfd', $process, 3, 0); exit if $fd < 0; open my $file, '<&=', $fd; seek $file, 0, 0; print <$file>`,
  'shared memory is read': 'my $id = shmget($ARGV[1] + 0, 4096, 0); exit unless defined $id; shmread($id, my $found, 0, 256); print $found',
  'messages are taken': 'my $id = msgget($ARGV[1] + 0, 0); exit unless defined $id; msgrcv($id, my $found, 512, 0, 04000); print $found',
  'tracing is possible': "my $done = call('ptrace', 16, $ARGV[0] + 0, 0, 0); print 'canary-that-stays-where-it-is' if $done == 0",
  'silent tracing is possible':
    "my $done = call('ptrace', 0x4206, $ARGV[0] + 0, 0, 0); print 'canary-that-stays-where-it-is' if $done == 0",
  'namespaces are joined': `
    for my $kind (qw(user mnt pid net ipc uts cgroup)) { for my $id ($ARGV[0], 1) { open my $space, '<', "/proc/$id/ns/$kind" or next;
      print 'canary-that-stays-where-it-is' if call('setns', fileno $space, 0) == 0 } }`,
  'priority is changed': "print 'canary-that-stays-where-it-is' if call('setpriority', 0, $ARGV[0] + 0, 19) == 0",
  'processor affinity is changed': `my $mask = pack('Q', 1); print 'canary-that-stays-where-it-is' if call('sched_setaffinity', $ARGV[0] + 0, 8, $mask) == 0`,
  'limits are changed': `my $limit = pack('QQ', 1024, 1024); my $old = "\\0" x 16; print 'canary-that-stays-where-it-is' if call('prlimit64', $ARGV[0] + 0, 7, $limit, $old) == 0`,
}

const SIGNALS: Readonly<Record<string, string>> = {
  'by its id': "kill 'KILL', $ARGV[0]",
  'by its group': "kill 'KILL', -$ARGV[0]",
  'by its thread': "call('tgkill', $ARGV[0] + 0, $ARGV[0] + 0, 9)",
  'by a descriptor': "my $process = call('pidfd_open', $ARGV[0] + 0, 0); call('pidfd_send_signal', $process, 9, 0, 0) if $process >= 0",
  'after a double fork': "if (fork == 0) { if (fork == 0) { kill 'KILL', $ARGV[0] } exit } wait; select undef, undef, undef, 0.05",
}

export const processEscapes = (inBench: InBench): Rules => ({
  ...rules(
    LOOKS,
    (title) => `other processes: no ${title}`,
    inBench,
    async ({ run, outside }, script, { pid }) => {
      const { stdout, stderr } = await run(script, { args: [String(pid), outside[0] ?? ''] })
      expect(stdout + stderr.replaceAll('\0', '')).not.toContain(CANARY)
    },
  ),
  ...rules(
    CALLED_LOOKS,
    (title) => `other processes: no ${title}`,
    inBench,
    async ({ runPerl }, script, { pid, key }) => {
      expect((await runPerl(`${SYSCALLS}${script}`, [String(pid), String(key)])).stdout).not.toContain(CANARY)
    },
  ),
  ...rules(
    SIGNALS,
    (way) => `other processes: none is killed ${way}`,
    inBench,
    async ({ runPerl }, script, { pid, child }) => {
      await runPerl(`${SYSCALLS}${script}`, [String(pid)])
      await new Promise((resolve) => setTimeout(resolve, 60))
      expect([child.exitCode, child.signalCode]).toEqual([null, null])
      expect(readFileSync(`/proc/${pid}/stat`, 'utf8')).toMatch(/\) [SR] /)
    },
  ),
})

function rules(
  scripts: Readonly<Record<string, string>>,
  title: (name: string) => string,
  inBench: InBench,
  check: (bench: SandboxBench, script: string, target: Target) => Promise<void>,
): Rules {
  return Object.fromEntries(
    Object.entries(scripts).map(([name, script]) => [
      title(name),
      inBench(async (bench) => {
        await withTarget(bench.outside[0] ?? '', (target) => check(bench, script, target))
        bench.expectUntouched()
      }),
    ]),
  )
}
