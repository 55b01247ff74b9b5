/** Rules for the network, other processes and privileges. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Rules } from '../rules.ts'
import { CANARY, type InBench } from './bench.ts'

const TCP = `use IO::Socket::INET; my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $ARGV[0], Timeout => 2) or die; print $s "x"; close $s`
const UNIX = `use IO::Socket::UNIX; my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die; print $s "x"; close $s`

/** Listens while `use` runs; resolves to the number of connections. */
async function connectionsWhile(at: string | number, use: (server: Server) => Promise<unknown>): Promise<number> {
  let count = 0
  const server = createServer((socket) => {
    count++
    socket.on('error', () => undefined).destroy()
  })
  if (typeof at === 'string') server.listen(at)
  else server.listen(at, '127.0.0.1')
  await once(server, 'listening')
  try {
    await use(server)
    // The server reports connections on a later tick.
    await new Promise((resolve) => setTimeout(resolve, 20))
  } finally {
    server.close()
  }
  return count
}

const portOf = (server: Server): string => String((server.address() as AddressInfo).port)

export const reachRules = (inBench: InBench): Rules => ({
  'the network works where the policy allows it': inBench(async ({ runPerl }) => {
    expect(await connectionsWhile(0, (server) => runPerl(TCP, [portOf(server)], { network: true }))).toBe(1)
  }),

  'the network is unreachable where the policy forbids it': inBench(async ({ runPerl }) => {
    expect(await connectionsWhile(0, (server) => runPerl(TCP, [portOf(server)]))).toBe(0)
  }),

  'sockets of other programs are out of reach': inBench(async ({ runPerl, outside, workspace }) => {
    const [folder = ''] = outside
    expect(await connectionsWhile(join(workspace, 's'), () => runPerl(UNIX, [join(workspace, 's')]))).toBeLessThan(2)
    expect(await connectionsWhile(join(folder, 's'), () => runPerl(UNIX, [join(folder, 's')]))).toBe(0)
  }),

  'other processes cannot be signalled': inBench(async ({ run }) => {
    const other = spawn('cat', { stdio: ['pipe', 'pipe', 'ignore'] })
    await once(other, 'spawn')
    other.stdin.on('error', () => {})
    // A killed process never echoes, so the first event decides without a fixed wait.
    const outcome = Promise.race([once(other, 'exit').then(() => 'killed'), once(other.stdout, 'data').then(() => 'alive')])
    try {
      await run('kill -9 "$1"', { args: [String(other.pid)] })
      other.stdin.write('still there?')
      expect(await outcome).toBe('alive')
    } finally {
      other.kill('SIGKILL')
    }
  }),

  "other processes' environment cannot be read": inBench(async ({ run }) => {
    const other = spawn('sleep', ['20'], { stdio: 'ignore', env: { SECRET: CANARY, PATH: process.env.PATH } })
    await once(other, 'spawn')
    try {
      const { stdout } = await run('cat "/proc/$1/environ" /proc/[0-9]*/environ', { args: [String(other.pid)] })
      expect(stdout).not.toContain(CANARY)
    } finally {
      other.kill('SIGKILL')
    }
  }),

  'a command has no privileges and cannot gain any': inBench(async ({ run }) => {
    const { stdout } = await run('cat /proc/self/status')
    expect(stdout).toMatch(/^CapEff:\s+0+$/m)
    expect(stdout).toMatch(/^NoNewPrivs:\s+1$/m)
  }),
})
