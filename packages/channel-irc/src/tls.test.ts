/** The channel over TLS: a proxy with a certificate for `localhost`, signed by itself, in front of the fake server. */
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect as connectPlain } from 'node:net'
import { createServer, getCACertificates, type Server, setDefaultCACertificates } from 'node:tls'
import type { Inbound } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { type Listening, startListening } from '@sluice/testkit/listening'
import * as v from 'valibot'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ircSection } from './config.ts'
import feature from './index.ts'
import { type IrcFake, testing } from './testing/index.ts'

const read = (name: string): string => readFileSync(new URL(`../fixtures/${name}`, import.meta.url), 'utf8')
const CERTIFICATE = read('localhost-cert.pem')

let fake: IrcFake
let section: object
let proxy: Server
/** How many bytes the proxy got from clients after the handshake. */
let bytes: number
let listening: Listening | undefined
const trusted = getCACertificates()

beforeEach(async () => {
  const connected = await testing.connect(Date.now)
  fake = connected.fake
  section = connected.section
  bytes = 0
  proxy = createServer({ key: read('localhost-key.pem'), cert: CERTIFICATE }, (client) => {
    const server = connectPlain(fake.port, '127.0.0.1')
    client.on('data', (chunk) => {
      bytes += chunk.length
    })
    for (const socket of [client, server]) socket.on('error', () => undefined)
    client.pipe(server).pipe(client)
  })
  proxy.on('tlsClientError', () => undefined)
  await new Promise<void>((done) => proxy.listen(0, '127.0.0.1', done))
})
afterEach(async () => {
  setDefaultCACertificates(trusted)
  await listening?.stop()
  listening = undefined
  proxy.close()
  await fake.close()
})

function listen(changes: object): readonly Inbound[] {
  const received: Inbound[] = []
  const { port } = proxy.address() as AddressInfo
  const host = testHost({ fetch })
  const config = v.parse(ircSection.schema, { ...section, port, tls: true, ...changes })
  const [channel] = feature.build(host, config).channels ?? []
  if (!channel) throw new Error('The section of the fake builds no channel.')
  listening = startListening(channel, host, async (inbound) => void received.push(inbound))
  return received
}

test('a certificate without a known authority is refused before a password is sent', async () => {
  listen({ server: 'localhost' })
  await expect.poll(() => listening?.health.detail).toContain('self-signed certificate')
  expect(bytes).toBe(0)
})

test('a certificate for another name is refused before a password is sent', async () => {
  setDefaultCACertificates([...trusted, CERTIFICATE])
  listen({ server: '127.0.0.1' })
  await expect.poll(() => listening?.health.detail).toMatch(/does not match certificate/)
  expect(bytes).toBe(0)
})

test.each([
  ['a trusted certificate for the name', { server: 'localhost' }, true],
  ['any certificate with verify_tls = false', { server: '127.0.0.1', verify_tls: false }, false],
])('connects with %s', async (_, changes, isTrusted) => {
  if (isTrusted) setDefaultCACertificates([...trusted, CERTIFICATE])
  const received = listen(changes)
  await expect.poll(() => listening?.health.state).toBe('ok')
  fake.say({ text: 'sluice: hello' })
  await expect.poll(() => received.map(({ text }) => text)).toEqual(['hello'])
})
