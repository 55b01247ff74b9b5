/** Sending to people over fake relays. */
import { createDecipheriv } from 'node:crypto'
import type { Address, Outbound } from '@sluice/sdk'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { finalizeEvent } from 'nostr-tools/pure'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type ChannelOptions, type RunningChannel, runChannel } from './testing/bench.ts'
import {
  type Event,
  pubkeyOf,
  type RelaynetFake,
  type RelaynetFakeOptions,
  read,
  secretKeyOfPerson,
  startRelaynetFake,
} from './testing/index.ts'

const START_MS = Date.UTC(2026, 0, 1)
const { signal } = new AbortController()
const ADA: Address = { to: pubkeyOf('ada') }
const LEGACY: Address = { ...ADA, more: { protocol: 'nip04' } }
const MESSAGE_ID = 'a'.repeat(64)
const hello: Outbound = { text: 'hello', clientId: 'c-1' }

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})
async function relay(options: RelaynetFakeOptions = {}): Promise<RelaynetFake> {
  const fake = await startRelaynetFake({ nowMs: () => START_MS, ...options })
  closing.push(() => fake.close())
  return fake
}
async function run(fakes: readonly RelaynetFake[], options: ChannelOptions = {}): Promise<RunningChannel> {
  const running = runChannel(fakes, options)
  closing.push(() => running.stop())
  await expect.poll(() => fakes.every((fake) => fake.subscriptions > 0)).toBe(true)
  await expect.poll(() => running.listening.health.state).toBe('ok')
  return running
}
const send = ({ channel }: RunningChannel, to: Address = ADA, message: Partial<Outbound> = {}) =>
  channel.send(to, { ...hello, ...message }, signal)
const codeOf = (sending: Promise<unknown>) =>
  sending.then(
    () => 'sent',
    (error: { code?: string }) => error.code,
  )
/** Has a person receive messages on other relays. */
const listFor = (name: string, ...urls: readonly string[]): Event =>
  finalizeEvent({ kind: 10_050, created_at: 1, tags: urls.map((url) => ['relay', url]), content: '' }, secretKeyOfPerson(name))
const loopback = { publicAddresses: async () => [{ address: '127.0.0.1', family: 4 }] }

describe('to one relay', () => {
  let fake: RelaynetFake
  let running: RunningChannel
  beforeEach(async () => {
    fake = await relay()
    running = await run([fake])
  })

  test('a message goes out by NIP-17, unless it answers a legacy message', async () => {
    const { id } = await send(running, { ...ADA, replyTo: MESSAGE_ID })
    const legacy = await send(running, { ...LEGACY, replyTo: MESSAGE_ID }, { text: 'legacy', clientId: 'c-2' })
    const at = START_MS / 1000
    expect(fake.heardBy('ada')).toEqual([
      {
        id,
        from: pubkeyOf('bot'),
        text: 'hello',
        protocol: 'nip17',
        kind: 14,
        createdAt: at,
        tags: [
          ['p', pubkeyOf('ada')],
          ['e', MESSAGE_ID, '', 'reply'],
        ],
      },
      {
        id: legacy.id,
        from: pubkeyOf('bot'),
        text: 'legacy',
        protocol: 'nip04',
        kind: 4,
        createdAt: at + 1,
        tags: [
          ['p', pubkeyOf('ada')],
          ['e', MESSAGE_ID],
        ],
      },
    ])
  })

  test('a copy of a private message goes to the bot itself', async () => {
    const { id } = await send(running)
    await expect.poll(() => fake.heardBy('bot').map((copy) => copy.id)).toEqual([id])
    expect(running.received).toEqual([])
  })

  test('each attempt makes the same event, also after a restart', async () => {
    const keyValue = memoryKeyValue()
    const sent: string[] = []
    for (const addresses of [ADA, LEGACY]) {
      const message = { clientId: `c-${addresses.more?.protocol}` }
      const first = await run([fake], { host: { keyValue } })
      sent.push((await send(first, addresses, message)).id, (await send(first, addresses, message)).id)
      const before = fake.requests.length
      await first.stop()
      const second = await run([fake], { host: { keyValue } })
      await second.host.advance(60_000)
      sent.push((await send(second, addresses, message)).id)
      await expect.poll(() => fake.requests.length).toBeGreaterThan(before)
    }
    expect(new Set(sent.slice(0, 3)).size).toBe(1)
    expect(new Set(sent.slice(3)).size).toBe(1)
    await expect.poll(() => fake.events.filter(({ kind }) => kind === 1059).length).toBe(2)
    expect(fake.events.filter(({ kind }) => kind === 4)).toHaveLength(1)
  })

  test('messages of one conversation have times in their order, because clients sort by seconds', async () => {
    for (const text of ['1', '2', '3']) await send(running, ADA, { text, clientId: text })
    expect(fake.heardBy('ada').map(({ text }) => text)).toEqual(['1', '2', '3'])
    expect(new Set(fake.heardBy('ada').map(({ createdAt }) => createdAt)).size).toBe(3)
  })

  test('a message to several members reaches each of them', async () => {
    const to = ['ada', 'bob', 'cleo'].map(pubkeyOf).toSorted().join(',')
    const { id } = await send(running, { to })
    for (const name of ['ada', 'bob', 'cleo'])
      expect(fake.heardBy(name)).toMatchObject([{ id, tags: to.split(',').map((key) => ['p', key]) }])
  })

  test.each([
    ['blocked: you are banned', 'forbidden'],
    ['invalid: event too large', 'invalid_request'],
    ['rate-limited: slow down', 'rate_limited'],
    ['error: could not connect to the database', 'unavailable'],
    ['something else', 'unavailable'],
    ['duplicate: have it', 'sent'],
  ])('a relay that answers %j', async (reason, code) => {
    fake.refuseEvents(reason, 4)
    expect(await codeOf(send(running))).toBe(code)
  })

  test.each(['restricted: members only', 'auth-required: log in'])(
    'a relay that answers %j without a challenge refuses',
    async (reason) => {
      fake.refuseEvents(reason, 2)
      const sending = codeOf(send(running))
      await expect.poll(() => fake.requests.length).toBe(1)
      await running.host.advance(6000)
      expect(await sending).toBe('forbidden')
    },
  )

  test('a relay that does not answer is unavailable', async () => {
    fake.fail({ fault: 'hang' })
    const sending = codeOf(send(running))
    await expect.poll(() => fake.requests.length).toBe(1)
    await running.host.advance(11_000)
    expect(await sending).toBe('unavailable')
  })

  test('a connection that breaks after the relay has accepted is repeated without a second message', async () => {
    fake.fail({ fault: 'lost' })
    expect(await codeOf(send(running))).toBe('unavailable')
    await expect.poll(() => running.listening.retryAtMs).toBeDefined()
    await running.host.advance(2000)
    await expect.poll(() => running.listening.health.state).toBe('ok')
    await send(running)
    expect(fake.heardBy('ada')).toHaveLength(1)
    expect(fake.events.filter((event) => read(event, 'ada'))).toHaveLength(1)
  })

  test('an address other than a key is refused', async () => {
    for (const to of ['', 'ada', `${pubkeyOf('ada')},`, '../x']) expect(await codeOf(send(running, { to }))).toBe('invalid_request')
  })

  test('control characters are left out', async () => {
    await send(running, ADA, { text: 'a\u0000\u001bb\n\tc' })
    expect(fake.heardBy('ada')).toMatchObject([{ text: 'ab\n\tc' }])
  })
})

describe('to several relays', () => {
  test('one that accepts is enough', async () => {
    const fakes = [await relay(), await relay()] as const
    const running = await run(fakes)
    fakes[0].refuseEvents('blocked: no', 2)
    await send(running)
    await expect.poll(() => fakes[1].heardBy('ada').length).toBe(1)
    expect(fakes[0].heardBy('ada')).toEqual([])
  })

  test('without a connection a message waits', async () => {
    const fake = await relay()
    fake.cut({ isDown: true })
    const running = runChannel([fake])
    closing.push(() => running.stop())
    expect(await codeOf(send(running))).toBe('unavailable')
  })
})

describe('to the relays of the recipient', () => {
  test('a private message goes only there, to an address that was checked, with a key that is used once', async () => {
    const [own, inbox] = [await relay(), await relay({ auth: 'required' })]
    own.publish(listFor('ada', inbox.relayUrl))
    const asked: string[] = []
    const publicAddresses = async (hostname: string) => {
      asked.push(hostname)
      return [{ address: '127.0.0.1', family: 4 }]
    }
    const running = await run([own], { host: { publicAddresses } })
    await send(running)
    expect(inbox.heardBy('ada')).toMatchObject([{ text: 'hello' }])
    expect(own.heardBy('ada')).toEqual([])
    expect(asked).toEqual(['127.0.0.1'])
    expect(inbox.entered).toHaveLength(1)
    expect(inbox.entered).not.toContain(pubkeyOf('bot'))
  })

  test('a relay at an address that is not public is never connected', async () => {
    const [own, inbox] = [await relay(), await relay()]
    own.publish(listFor('ada', inbox.relayUrl))
    const { AppError } = await import('@sluice/sdk')
    const publicAddresses = () => Promise.reject(new AppError('forbidden', 'the address is not public'))
    const running = await run([own], { host: { publicAddresses } })
    expect(await codeOf(send(running))).toBe('forbidden')
    expect(inbox.connections).toBe(0)
  })

  test('a relay that cannot be reached is tried again later, and its list is read again', async () => {
    const [own, inbox] = [await relay(), await relay()]
    own.publish(listFor('ada', 'ws://127.0.0.1:9'))
    const running = await run([own], { host: loopback })
    expect(await codeOf(send(running))).toBe('unavailable')
    own.publish({ ...listFor('ada', inbox.relayUrl) })
    await send(running)
    expect(inbox.heardBy('ada')).toHaveLength(1)
  })

  test('at most four relays of a list are used, and no addresses other than relays', async () => {
    const own = await relay()
    const inboxes = await Promise.all(Array.from({ length: 6 }, () => relay()))
    const odd = ['https://relay.example', 'ws://ada:secret@relay.example', 'relay', '']
    own.publish(listFor('ada', ...odd, ...inboxes.map(({ relayUrl }) => relayUrl)))
    const running = await run([own], { host: loopback })
    await send(running)
    await expect.poll(() => inboxes.filter((inbox) => inbox.heardBy('ada').length > 0).length).toBe(4)
  })

  test('a large conversation reaches each member, though their relays are more than the connections that are kept', async () => {
    const [own, inbox] = [await relay(), await relay()]
    const names = Array.from({ length: 12 }, (_, index) => `member ${index}`)
    for (const name of names)
      own.publish(listFor(name, ...[1, 2, 3, 4].map((number) => `${inbox.relayUrl}/${name.at(-1)}${name.length}/${number}`)))
    const running = await run([own], { host: loopback })
    await send(running, { to: names.map(pubkeyOf).toSorted().join(',') })
    for (const name of names) expect(inbox.heardBy(name)).toHaveLength(1)
  })

  test('a list that another key has signed is ignored', async () => {
    const [own, inbox] = [await relay(), await relay()]
    const forged = { ...listFor('mallory', inbox.relayUrl), pubkey: pubkeyOf('ada') }
    own.publish(forged)
    const running = await run([own], { host: loopback })
    await send(running)
    expect([own.heardBy('ada').length, inbox.connections]).toEqual([1, 0])
  })

  test('a connection closes after a minute without messages', async () => {
    const [own, inbox] = [await relay(), await relay()]
    own.publish(listFor('ada', inbox.relayUrl))
    const running = await run([own], { host: loopback })
    await send(running)
    expect(inbox.connections).toBe(1)
    await running.host.advance(121_000)
    await expect.poll(() => inbox.connections).toBe(0)
  })
})

describe('files', () => {
  const bytes = new TextEncoder().encode('meow')
  const attachments = [{ kind: 'image', name: 'cat.png', mime: 'image/png', source: { bytes } }] as const

  test('are uploaded encrypted, and the message has what opens them', async () => {
    const fake = await relay()
    const running = await run([fake], { section: { blossom_url: fake.url } })
    await send(running, ADA, { text: 'look', attachments })
    const [text, file] = fake.heardBy('ada')
    expect(text).toMatchObject({ kind: 14, text: 'look' })
    const tags = Object.fromEntries(file?.tags.map(([name, value]) => [name, value]) ?? [])
    expect(file).toMatchObject({ kind: 15, text: `${fake.url}/${tags.x}` })
    expect(tags).toMatchObject({ 'file-type': 'image/png', 'encryption-algorithm': 'aes-gcm', name: 'cat.png' })
    const stored = fake.files.get(tags.x ?? '') ?? new Uint8Array()
    expect(Buffer.from(stored).includes('meow')).toBe(false)
    const decipher = createDecipheriv(
      'aes-256-gcm',
      Buffer.from(tags['decryption-key'] ?? '', 'hex'),
      Buffer.from(tags['decryption-nonce'] ?? '', 'hex'),
    )
    decipher.setAuthTag(stored.subarray(-16))
    expect(decipher.update(stored.subarray(0, -16), undefined, 'utf8') + decipher.final('utf8')).toBe('meow')
    await send(running, ADA, { text: 'look', attachments })
    expect([fake.files.size, fake.heardBy('ada').length]).toEqual([1, 2])
  })

  test('that people send are fetched from a public address and decrypted', async () => {
    const fake = await relay()
    const publicFetch = (url: string, init: { signal: AbortSignal }) => fetch(url, init)
    const running = await run([fake], { section: { blossom_url: fake.url }, host: { publicFetch } })
    await send(running, ADA, { text: '', attachments })
    const [sent] = fake.heardBy('ada')
    const from = (tags = sent?.tags ?? []) => fake.say({ text: sent?.text ?? '', kind: 15, tags: tags.filter(([name]) => name !== 'p') })
    from()
    from(sent?.tags.map(([name = '', value = '']) => [name, name === 'x' ? '0'.repeat(64) : value]))
    from(sent?.tags.map(([name = '', value = '']) => [name, name === 'decryption-key' ? '0'.repeat(64) : value]))
    from(sent?.tags.map(([name = '', value = '']) => [name, name === 'encryption-algorithm' ? 'rot13' : value]))
    await expect.poll(() => running.received.length).toBe(4)
    const fetched = running.received.map(async ({ attachments: [attachment] = [] }) => {
      if (!attachment) return 'no attachment'
      const media = await running.channel.fetchMedia?.(attachment, { bytesMax: 100, signal }).catch(({ code }) => code)
      return typeof media === 'object' ? `${attachment.kind} ${attachment.name} ${media.mime} ${Buffer.from(media.bytes)}` : media
    })
    expect(await Promise.all(fetched)).toEqual(['image cat.png image/png meow', 'invalid_request', 'invalid_request', 'no attachment'])
    expect(running.texts[3]).toContain('cannot be decrypted')
    const [first] = running.received[0]?.attachments ?? []
    if (first) await expect(running.channel.fetchMedia?.(first, { bytesMax: 2, signal })).rejects.toMatchObject({ code: 'too_large' })
  })

  test('are named in a legacy reply, and need a server', async () => {
    const fake = await relay()
    const running = await run([fake], { section: { blossom_url: fake.url } })
    await send(running, LEGACY, { text: 'look', attachments })
    expect(fake.heardBy('ada')).toMatchObject([{ text: expect.stringMatching(/^look\n\[cat\.png was not sent/) }])
    expect(fake.files.size).toBe(0)
    expect((await run([fake])).channel.limits.attachments).toBeUndefined()
  })
})
