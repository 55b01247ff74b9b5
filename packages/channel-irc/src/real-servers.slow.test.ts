/** The channel against real servers from Debian's packages: ngIRCd, which has no tags, and InspIRCd, which has them. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '@sluice/kit'
import type { Channel, Inbound } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { type Listening, startListening } from '@sluice/testkit/listening'
import * as v from 'valibot'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { type DebianProgram, debianProgram } from '../../../qa/src/debian-program.ts'
import { ircSection } from './config.ts'
import feature from './index.ts'

/** A server that listens on a port of this machine. */
interface Server {
  readonly name: string
  readonly packages: readonly string[]
  readonly program: string
  config(port: number, program: DebianProgram, folder: string): string
  args(config: string): readonly string[]
  readonly givesIds: boolean
}

const NGIRCD: Server = {
  name: 'ngircd',
  packages: ['ngircd'],
  program: 'usr/sbin/ngircd',
  config: (port) =>
    `[Global]\nName = irc.test.local\nInfo = test\nListen = 127.0.0.1\nPorts = ${port}\nMotdPhrase = hello\n[Options]\nPAM = no\nIdent = no\nDNS = no\n`,
  args: (config) => ['-n', '-f', config],
  givesIds: false,
}

const MODULES = ['cap', 'ircv3', 'ircv3_accounttag', 'ircv3_servertime', 'ircv3_msgid', 'ircv3_ctctags', 'ircv3_echomessage', 'ircv3_batch']
const INSPIRCD: Server = {
  name: 'inspircd',
  packages: ['inspircd'],
  program: 'usr/sbin/inspircd',
  config: (port, { root }, folder) =>
    [
      '<server name="irc.test.local" description="test" network="Test" id="1AA">',
      '<admin name="a" nick="a" email="a@test.local">',
      `<bind address="127.0.0.1" port="${port}" type="clients">`,
      '<connect allow="*" timeout="60" resolvehostnames="no" useident="no" localmax="10" globalmax="10">',
      `<path moduledir="${join(root, 'usr/lib/inspircd/modules')}" configdir="${folder}" datadir="${folder}" logdir="${folder}" runtimedir="${folder}">`,
      ...MODULES.map((name) => `<module name="${name}">`),
    ].join('\n'),
  args: (config) => ['--nofork', '--nolog', '--nopid', '--config', config, ...(process.getuid?.() === 0 ? ['--runasroot'] : [])],
  givesIds: true,
}

const FOUND = await Promise.all(
  [NGIRCD, INSPIRCD].map(async (server) => ({
    ...server,
    found: await debianProgram({ packages: server.packages, program: server.program }),
  })),
)
const soon = (check: () => void) => vi.waitFor(check, { timeout: 20_000, interval: 20 })
const closing: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

describe.each(FOUND)('$name', ({ found, config, args, givesIds, name }) => {
  const run = async () => {
    if ('missing' in found) throw new Error(found.missing)
    const folder = await mkdtemp(join(tmpdir(), `${name}-`))
    const port = await freePort()
    const file = join(folder, 'server.conf')
    await writeFile(file, config(port, found, folder))
    let log = ''
    let child: ChildProcess | undefined
    const start = async () => {
      child = spawn(found.path, args(file), { env: { ...process.env, ...found.env } })
      for (const stream of [child.stdout, child.stderr]) {
        stream?.on('data', (bytes) => {
          log += bytes
        })
      }
      await vi
        .waitFor(() => reachable(port), { timeout: 20_000, interval: 50 })
        .catch(() => {
          throw new Error(`${name} does not run: ${log}`)
        })
    }
    const stop = async () => {
      const ended = new Promise((resolve) => child?.once('close', resolve))
      if (child?.kill('SIGKILL')) await ended
    }
    closing.push(() => rm(folder, { recursive: true, force: true }), stop)
    await start()
    return { port, start, stop }
  }

  test.skipIf('missing' in found)(
    'messages arrive and replies are confirmed, also after the server was away',
    { timeout: 120_000 },
    async () => {
      const server = await run()
      const { channel, received, listening } = bot(server.port)
      await soon(() => expect(listening.health.state).toBe('ok'))
      const ada = await person(server.port, 'ada')
      ada.write('JOIN #ops\r\n')
      await soon(() => expect(ada.heard()).toContain('366 ada #ops'))

      ada.write('PRIVMSG #ops :sluice: grüße 😀\r\nPRIVMSG sluice :direct\r\n')
      await soon(() => expect(received.map(({ text }) => text)).toEqual(['grüße 😀', 'direct']))
      expect(received[0]).toMatchObject({ sender: 'ada', unverified: true, to: { to: '#ops', more: { nick: 'ada' } } })
      const text = 'ä'.repeat(500)
      const { id } = await channel.send({ to: 'ada' }, { text, clientId: 'c-1' }, new AbortController().signal)
      expect(id.startsWith('sent:')).toBe(!givesIds)
      await soon(() => expect([...ada.heard().matchAll(/PRIVMSG ada :(ä+)\r/g)].map(([, part]) => part).join('')).toBe(text))
      const lost = channel.send({ to: 'nobody' }, { text: 'x', clientId: 'c-2' }, new AbortController().signal)
      await expect(lost).rejects.toMatchObject({ code: 'invalid_request' })

      await server.stop()
      await soon(() => expect(listening.health.state).not.toBe('ok'))
      await server.start()
      await soon(() => expect(listening.health.state).toBe('ok'))
      expect(listening.gaps).toHaveLength(1)
      const again = await person(server.port, 'ada')
      again.write('PRIVMSG sluice :back\r\n')
      await soon(() => expect(received.at(-1)?.text).toBe('back'))
    },
  )
})

function bot(port: number): { readonly channel: Channel; readonly received: readonly Inbound[]; readonly listening: Listening } {
  const section = { server: '127.0.0.1', port, tls: false, nickname: 'sluice', channels: ['#ops'], allowed_users: ['*'] }
  const host = { ...testHost(), clock: systemClock }
  const [channel] = feature.build(host, v.parse(ircSection.schema, section)).channels ?? []
  if (!channel) throw new Error('The section builds no channel.')
  const received: Inbound[] = []
  const listening = startListening(channel, host, async (inbound) => void received.push(inbound))
  closing.push(() => listening.stop())
  return { channel, received, listening }
}

/** Connects as a person. `heard` returns everything that the server has sent. */
async function person(port: number, nick: string): Promise<{ write(line: string): void; heard(): string }> {
  const socket: Socket = connect(port, '127.0.0.1')
  closing.push(() => void socket.destroy())
  let heard = ''
  socket.setEncoding('utf8').on('data', (text) => {
    heard += text
    for (const [, token] of String(text).matchAll(/^PING (\S+)/gm)) socket.write(`PONG ${token}\r\n`)
  })
  socket.on('error', () => undefined)
  socket.write(`NICK ${nick}\r\nUSER ${nick} 0 * :x\r\n`)
  await soon(() => expect(heard).toContain(` 001 ${nick} `))
  return { write: (line) => void socket.write(line), heard: () => heard }
}

const reachable = (port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve()
    })
    socket.once('error', reject)
  })

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
