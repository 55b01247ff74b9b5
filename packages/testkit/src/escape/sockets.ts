/** Attempts on the local sockets of other programs: a container engine, a key agent, a message bus. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Rules } from '../rules.ts'
import type { InBench } from '../sandbox-rules/bench.ts'

const KNOCK = `use IO::Socket::UNIX; for my $at (@ARGV) { my $s = IO::Socket::UNIX->new(Peer => $at) or next; print $s 'x' }`
const ABSTRACT = `use Socket; socket my $s, AF_UNIX, SOCK_STREAM, 0; connect $s, pack('S a*', AF_UNIX, "\\0$ARGV[0]") and print 'reached'`
const ABSTRACT_PACKET = `use Socket; socket my $s, AF_UNIX, SOCK_DGRAM, 0; send($s, 'x', 0, pack('S a*', AF_UNIX, "\\0$ARGV[0]")) and print 'reached'`
const LISTEN = `use Socket; my ($kind, $name) = @ARGV; socket my $s, AF_UNIX, $kind eq 'stream' ? SOCK_STREAM : SOCK_DGRAM, 0;
  bind $s, pack('S a*', AF_UNIX, "\\0$name") or die; listen $s, 5 if $kind eq 'stream'; $| = 1; print 'ready'; sleep 30`

/** Where such sockets are on most machines; nothing may answer at any. */
const WELL_KNOWN = [
  '/var/run/docker.sock',
  '/run/docker.sock',
  '/run/containerd/containerd.sock',
  '/run/podman/podman.sock',
  '/run/dbus/system_bus_socket',
  '/run/systemd/private',
  '/run/systemd/journal/stdout',
  '/run/udev/control',
  '/run/snapd.socket',
  '/dev/log',
]

async function connectionsAt(path: string, use: () => Promise<unknown>): Promise<number> {
  let count = 0
  const server = createServer((socket) => {
    count++
    socket.on('error', () => undefined).destroy()
  }).listen(path)
  await once(server, 'listening')
  try {
    await use()
    await new Promise((resolve) => setTimeout(resolve, 20))
  } finally {
    server.close()
  }
  return count
}

async function withAbstract(kind: 'stream' | 'packet', use: (name: string) => Promise<void>): Promise<void> {
  const name = `sluice-escape-${process.pid}-${Math.random()}`
  const listener = spawn('perl', ['-e', LISTEN, kind, name], { stdio: ['ignore', 'pipe', 'ignore'] })
  await once(listener.stdout, 'data')
  try {
    await use(name)
  } finally {
    listener.kill('SIGKILL')
  }
}

export const socketEscapes = (inBench: InBench): Rules => ({
  'sockets of others: none by a path': inBench(async ({ runPerl, outside }) => {
    for (const folder of outside) {
      const path = join(folder, 'docker.sock')
      expect(await connectionsAt(path, () => runPerl(KNOCK, [path, `/proc/self/root${path}`, `/proc/1/root${path}`]))).toBe(0)
    }
  }),
  'sockets of others: none by a link': inBench(async ({ run, outside }) => {
    const path = join(outside[0] ?? '', 's')
    const script = `ln -s "$1" s; perl -e '${KNOCK.replaceAll("'", '"')}' s ./s; ln "$1" h; perl -e '${KNOCK.replaceAll("'", '"')}' h`
    expect(await connectionsAt(path, () => run(script, { args: [path] }))).toBe(0)
  }),
  'sockets of others: none of a key agent': inBench(async ({ execute, outside }) => {
    const agent = join(outside[1] ?? '', 'agent')
    const given = { env: { SSH_AUTH_SOCK: agent, DBUS_SESSION_BUS_ADDRESS: `unix:path=${agent}` } }
    expect(await connectionsAt(agent, () => execute('perl', ['-e', `@ARGV = ($ENV{SSH_AUTH_SOCK}); ${KNOCK}`], given))).toBe(0)
  }),
  'sockets of others: none that every machine has': inBench(async ({ runPerl }) => {
    const script = `use IO::Socket::UNIX; for my $at (@ARGV) { for my $type (SOCK_STREAM, SOCK_DGRAM) { print "$at\\n" if IO::Socket::UNIX->new(Peer => $at, Type => $type) } }`
    expect((await runPerl(script, WELL_KNOWN)).stdout).toBe('')
  }),
  'sockets of others: none by an abstract name': inBench(async ({ runPerl }) => {
    await withAbstract('stream', async (name) => expect((await runPerl(ABSTRACT, [name])).stdout).toBe(''))
  }),
  'sockets of others: no packet to an abstract name': inBench(async ({ runPerl }) => {
    await withAbstract('packet', async (name) => expect((await runPerl(ABSTRACT_PACKET, [name])).stdout).toBe(''))
  }),
  'sockets of others: no abstract name is seen': inBench(async ({ run }) => {
    await withAbstract('stream', async (name) => expect((await run('cat /proc/net/unix')).stdout).not.toContain(name))
  }),
  'sockets of others: none is handed over in the workspace to be used later': inBench(async ({ runPerl, workspace }) => {
    // what it binds there is its own: gone with it
    const path = join(workspace, 'left')
    await runPerl(`use IO::Socket::UNIX; IO::Socket::UNIX->new(Local => $ARGV[0], Listen => 1)`, [path])
    const { promise, resolve } = Promise.withResolvers<boolean>()
    execFile('perl', ['-e', `use IO::Socket::UNIX; exit(IO::Socket::UNIX->new(Peer => $ARGV[0]) ? 0 : 1)`, path], (error) =>
      resolve(!error),
    )
    expect(await promise).toBe(false)
  }),
})
