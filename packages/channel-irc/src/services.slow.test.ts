/** The channel against Atheme on InspIRCd, from Debian's packages: SASL with a registered account, and senders by their accounts. */
import { type ChildProcess, spawn } from 'node:child_process'
import { globSync } from 'node:fs'
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '@sluice/kit'
import type { Channel, Inbound } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { startListening } from '@sluice/testkit/listening'
import * as v from 'valibot'
import { afterEach, expect, test, vi } from 'vitest'
import { debianProgram } from '../../../qa/src/debian-program.ts'
import { ircSection } from './config.ts'
import feature from './index.ts'

const SERVICES = 'services.test.local'
const LINK_PASSWORD = 'link-password-01'
const PASSWORD = 'account-password-01'
/** Both programs refuse to run as root. */
const NOBODY = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
const SERVER_MODULES =
  'cap sasl services_account spanningtree ircv3 ircv3_accounttag ircv3_servertime ircv3_msgid ircv3_ctctags ircv3_echomessage ircv3_batch hidechans globops chghost cban rline servprotect swhois'
const SERVICE_MODULES =
  'protocol/inspircd backend/opensex crypto/pbkdf2v2 nickserv/main nickserv/identify nickserv/register saslserv/main saslserv/plain'

const inspircd = await debianProgram({ packages: ['inspircd'], program: 'usr/sbin/inspircd' })
const atheme = await debianProgram({ packages: ['atheme-services'], program: 'usr/bin/atheme-services' })
const missing = 'missing' in inspircd || 'missing' in atheme
const soon = (check: () => void) => vi.waitFor(check, { timeout: 30_000, interval: 250 })
const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

const serverConfig = (root: string, folder: string, port: number, linkPort: number): string =>
  [
    '<server name="irc.test.local" description="test" network="Test" id="1AA">',
    '<admin name="a" nick="a" email="a@test.local">',
    `<bind address="127.0.0.1" port="${port}" type="clients">`,
    `<bind address="127.0.0.1" port="${linkPort}" type="servers">`,
    '<connect allow="*" timeout="60" resolvehostnames="no" useident="no" localmax="10" globalmax="10">',
    `<path moduledir="${join(root, 'usr/lib/inspircd/modules')}" configdir="${folder}" datadir="${folder}" logdir="${folder}" runtimedir="${folder}">`,
    `<link name="${SERVICES}" ipaddr="127.0.0.1" port="${linkPort}" allowmask="127.0.0.1/32" sendpass="${LINK_PASSWORD}" recvpass="${LINK_PASSWORD}">`,
    `<uline server="${SERVICES}" silent="yes">`,
    `<sasl target="${SERVICES}">`,
    ...SERVER_MODULES.split(' ').map((name) => `<module name="${name}">`),
  ].join('\n')

const servicesConfig = (root: string, linkPort: number): string => {
  const [modules = ''] = globSync('usr/lib/*/atheme/modules', { cwd: root })
  const about = 'user = "services"; host = "services.test.local";'
  return [
    ...SERVICE_MODULES.split(' ').map((name) => `loadmodule "${join(root, modules, name)}";`),
    `serverinfo { name = "${SERVICES}"; desc = "test"; numeric = "00A"; recontime = 10; netname = "Test"; adminname = "a"; adminemail = "a@test.local"; registeremail = "a@test.local"; auth = none; mta = "/bin/true"; casemapping = rfc1459; };`,
    `uplink "irc.test.local" { host = "127.0.0.1"; port = ${linkPort}; send_password = "${LINK_PASSWORD}"; receive_password = "${LINK_PASSWORD}"; };`,
    `nickserv { nick = "NickServ"; ${about} real = "NickServ"; };`,
    `saslserv { nick = "SaslServ"; ${about} real = "SaslServ"; };`,
    '',
  ].join('\n')
}

test.skipIf(missing)('logs in by SASL with an account of NickServ, and knows senders by their accounts', { timeout: 180_000 }, async () => {
  if ('missing' in inspircd || 'missing' in atheme) throw new Error('A program is missing.')
  const folder = await mkdtemp(join(tmpdir(), 'irc-services-'))
  closing.push(() => rm(folder, { recursive: true, force: true }))
  if (NOBODY.uid !== undefined) await chown(folder, NOBODY.uid, NOBODY.gid)
  const [port, linkPort] = [await freePort(), await freePort()]
  const files = { server: join(folder, 'inspircd.conf'), services: join(folder, 'atheme.conf') }
  await writeFile(files.server, serverConfig(inspircd.root, folder, port, linkPort))
  await writeFile(files.services, servicesConfig(atheme.root, linkPort))
  run(inspircd.path, ['--nofork', '--nolog', '--nopid', '--config', files.server], inspircd.env)
  await vi.waitFor(() => reachable(port), { timeout: 20_000, interval: 100 })
  const services = run(
    atheme.path,
    ['-n', '-c', files.services, '-D', folder, '-l', join(folder, 'services.log'), '-p', join(folder, 'services.pid')],
    atheme.env,
  )

  const owner = await person(port, 'sluice')
  await soon(() => {
    owner.write('PRIVMSG NickServ :HELP')
    expect(owner.heard(), services()).toContain(':NickServ!')
  })
  for (const client of [owner, await person(port, 'ada')]) {
    client.write(`PRIVMSG NickServ :REGISTER ${PASSWORD} ${client.nick}@example.com`)
    await soon(() => expect(client.heard(), services()).toMatch(/ 900 /))
  }
  owner.write('QUIT')
  await soon(() => expect(owner.isOpen()).toBe(false))

  const bot = botAt(port, PASSWORD)
  await soon(() => expect(bot.listening.health.state).toBe('ok'))
  const ada = await person(port, 'ada2')
  ada.write(`PRIVMSG NickServ :IDENTIFY ada ${PASSWORD}`)
  await soon(() => expect(ada.heard()).toMatch(/ 900 /))
  ada.write('PRIVMSG sluice :hello')
  await soon(() => expect(bot.received).toMatchObject([{ sender: 'account:ada', text: 'hello' }]))
  expect(bot.received[0]).not.toHaveProperty('unverified')
  ada.write('WHOIS sluice')
  await soon(() => expect(ada.heard()).toMatch(/ 330 \S+ sluice sluice /))

  const refused = botAt(port, 'a wrong password')
  await soon(() => expect(refused.listening.health.detail).toMatch(/SASL|904|password/i))
  expect(JSON.stringify(refused.listening.health)).not.toContain('a wrong password')
})

/** Starts a program. Returns a function that returns what it has printed. */
function run(path: string, args: readonly string[], env: Readonly<Record<string, string>>): () => string {
  let log = ''
  const child: ChildProcess = spawn(path, args, { env: { ...process.env, ...env }, ...NOBODY })
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (bytes) => {
      log += bytes
    })
  const ended = new Promise((resolve) => child.once('close', resolve))
  closing.push(() => (child.kill('SIGKILL') ? ended : undefined))
  return () => log
}

function botAt(port: number, sasl_password: string) {
  const section = { server: '127.0.0.1', port, tls: false, nickname: 'sluice', channels: [], allowed_users: ['*'], sasl_password }
  const host = { ...testHost(), clock: systemClock }
  const [channel]: readonly Channel[] = feature.build(host, v.parse(ircSection.schema, section)).channels ?? []
  if (!channel) throw new Error('The section builds no channel.')
  const received: Inbound[] = []
  const listening = startListening(channel, host, async (inbound) => void received.push(inbound))
  closing.push(() => listening.stop())
  return { channel, received, listening }
}

async function person(port: number, nick: string) {
  const socket: Socket = connect(port, '127.0.0.1')
  closing.push(() => void socket.destroy())
  let heard = ''
  let isOpen = true
  socket.on('close', () => {
    isOpen = false
  })
  socket.on('error', () => undefined)
  socket.setEncoding('utf8').on('data', (text) => {
    heard += text
    for (const [, token] of String(text).matchAll(/^PING (\S+)/gm)) socket.write(`PONG ${token}\r\n`)
  })
  socket.write(`NICK ${nick}\r\nUSER ${nick} 0 * :${nick}\r\n`)
  await soon(() => expect(heard).toContain(` 001 ${nick}`))
  return { nick, write: (line: string) => void socket.write(`${line}\r\n`), heard: () => heard, isOpen: () => isOpen }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

const reachable = (port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(void socket.destroy()))
    socket.once('error', reject)
  })
