/** Attempts on the network: a command reaches nothing, serves nothing and sends no raw packets. */
import { randomUUID } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { Rules } from '@sluice/testkit/rules'
import type { InBench } from '@sluice/testkit/sandbox-rules/bench'
import { expect } from 'vitest'
import { SYSCALLS } from './syscalls.ts'

/** Waits for arrivals, which the server reports on a later tick. */
const settle = () => new Promise((resolve) => setTimeout(resolve, 20))

/** Reads the first bytes from the program that listens on a port. Resolves to nothing without a program, or after a second. */
const textFrom = (port: number): Promise<string> =>
  new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', timeout: 1000 })
    let text = ''
    socket.on('data', (bytes) => {
      text = bytes.toString()
      socket.destroy()
    })
    socket.on('timeout', () => socket.destroy())
    socket.on('error', () => undefined)
    socket.on('close', () => setTimeout(resolve, 10, text))
  })

/** Counts the connections to a port at `host` while `use` runs. */
export async function connectionsTo(host: string, use: (port: number) => Promise<unknown>): Promise<number> {
  let count = 0
  const server = createServer((socket) => {
    count++
    socket.on('error', () => undefined).destroy()
  }).listen(0, host)
  await once(server, 'listening')
  try {
    await use((server.address() as AddressInfo).port)
    await settle()
  } finally {
    server.close()
  }
  return count
}

async function packetsTo(kind: 'udp4' | 'udp6', host: string, use: (port: number) => Promise<unknown>): Promise<number> {
  let count = 0
  const socket = createSocket(kind).on('message', () => count++)
  socket.bind(0, host)
  await once(socket, 'listening')
  try {
    await use(socket.address().port)
    await settle()
  } finally {
    socket.close()
  }
  return count
}

const STREAM = `use IO::Socket::IP; my $s = IO::Socket::IP->new(PeerHost => $ARGV[0], PeerPort => $ARGV[1], Type => SOCK_STREAM, Timeout => 1); print $s 'x' if $s`
const PACKET = `use IO::Socket::IP; my $s = IO::Socket::IP->new(PeerHost => $ARGV[0], PeerPort => $ARGV[1], Type => SOCK_DGRAM); send $s, 'x', 0 if $s`
/** Serves one connection within a second at the address `$ARGV[0]` and port `$ARGV[1]`, with the word `$ARGV[2]`. */
const SERVE = `use IO::Socket::INET; my $s = IO::Socket::INET->new(Listen => 5, LocalAddr => $ARGV[0], LocalPort => $ARGV[1], ReuseAddr => 1) or exit; $s->timeout(1); my $c = $s->accept; print $c $ARGV[2] if $c`

const ownAddress = () =>
  Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .find(({ family, internal }) => family === 'IPv4' && !internal)?.address

const isOfThisMachine = (family: 'IPv4' | 'IPv6') =>
  Object.values(networkInterfaces()).some((each) => each?.some((address) => address.family === family))

/** Socket families and types that bypass the network stack or reach beyond the machine in another way. */
const SOCKETS: Readonly<Record<string, string>> = {
  'raw packets': '2, 3, 1',
  'raw packets of IPv6': '10, 3, 58',
  'raw frames': '17, 3, 768',
  'cooked frames': '17, 2, 768',
  'the hypervisor': '40, 1, 0',
  bluetooth: '31, 3, 1',
  'a CAN bus': '29, 3, 1',
}

export const networkEscapes = (inBench: InBench): Rules => ({
  'the network: no connection by IPv4': inBench(async ({ runPerl }) => {
    expect(await connectionsTo('127.0.0.1', (port) => runPerl(STREAM, ['127.0.0.1', String(port)]))).toBe(0)
  }),
  'the network: no connection by IPv6': inBench(async ({ runPerl }) => {
    if (isOfThisMachine('IPv6')) expect(await connectionsTo('::1', (port) => runPerl(STREAM, ['::1', String(port)]))).toBe(0)
  }),
  'the network: no connection to an address of this machine': inBench(async ({ runPerl }) => {
    const address = ownAddress()
    if (address) expect(await connectionsTo('0.0.0.0', (port) => runPerl(STREAM, [address, String(port)]))).toBe(0)
  }),
  'the network: no connection by host name': inBench(async ({ runPerl }) => {
    expect(await connectionsTo('127.0.0.1', (port) => runPerl(STREAM, ['localhost', String(port)]))).toBe(0)
  }),
  'the network: no connection by other spellings of an address': inBench(async ({ runPerl }) => {
    const ways = ['0', '127.1', '2130706433', '::ffff:127.0.0.1', '0.0.0.0']
    expect(
      await connectionsTo('127.0.0.1', async (port) => {
        for (const way of ways) await runPerl(STREAM, [way, String(port)])
      }),
    ).toBe(0)
  }),
  'the network: no packet by IPv4': inBench(async ({ runPerl }) => {
    expect(await packetsTo('udp4', '127.0.0.1', (port) => runPerl(PACKET, ['127.0.0.1', String(port)]))).toBe(0)
  }),
  'the network: no packet by IPv6': inBench(async ({ runPerl }) => {
    if (isOfThisMachine('IPv6')) expect(await packetsTo('udp6', '::1', (port) => runPerl(PACKET, ['::1', String(port)]))).toBe(0)
  }),
  'the network: no server of a command is reachable': inBench(async ({ runPerl }) => {
    const port = 20_000 + Math.floor(Math.random() * 10_000)
    const word = `word-${randomUUID()}`
    let isServing = true
    const serving = runPerl(SERVE, ['127.0.0.1', String(port), word]).finally(() => {
      isServing = false
    })
    let heard = ''
    while (isServing && heard !== word) heard = await textFrom(port)
    await serving
    expect(heard).not.toBe(word)
  }),
  ...Object.fromEntries(
    Object.entries(SOCKETS).map(([what, numbers]) => [
      `the network: no socket for ${what}`,
      inBench(async ({ runPerl }) => {
        expect((await runPerl(`${SYSCALLS}attempt('socket', ${numbers})`, [])).stdout).not.toContain('done')
      }),
    ]),
  ),
})
