import { createCipheriv, createHmac, hkdfSync } from 'node:crypto'
import { memorySecrets } from '@sluice/testkit/memory-store'
import { afterEach, describe, expect, test } from 'vitest'
import { readRecoveryKey } from './crypto/recovery.ts'
import { FEDCHAT_BOT, FEDCHAT_PASSWORD, FEDCHAT_PEOPLE, FEDCHAT_ROOM, type FedchatFake, startFedchatFake } from './testing/fake.ts'
import { Person } from './testing/person.ts'
import { NEVER, soon, startTestChannel, type TestChannel } from './testing/test-channel.ts'

const [ADA, BOB] = FEDCHAT_PEOPLE
const open: { close(): Promise<unknown> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close()
})

async function startFake(): Promise<FedchatFake> {
  const fake = await startFedchatFake({ isEncrypted: true })
  open.push(fake)
  return fake
}

async function startBot(fake: FedchatFake, secrets = memorySecrets(), config: object = {}): Promise<TestChannel> {
  const bot = startTestChannel(fake, config, { secrets })
  open.push({ close: () => bot.stop() })
  await bot.connected()
  return bot
}

test('a message whose key comes later is delivered then, also after a restart', async () => {
  const fake = await startFake()
  const secrets = memorySecrets()
  const first = await startBot(fake, secrets)
  const ada = await Person.start(fake, ADA)
  const id = await ada.say(FEDCHAT_ROOM, 'the key is late', { withKey: false })
  await soon(() => expect(first.host.logs.some(({ message }) => message === 'message waits for its key')).toBe(true))
  await soon(async () => expect(await secrets.list('event/', 10)).toHaveLength(1))
  await first.stop()
  const second = await startBot(fake, secrets)
  await ada.shareKey()
  await soon(() => expect(second.received).toMatchObject([{ id, sender: ADA, text: 'the key is late' }]))
  await soon(async () => expect(await secrets.list('event/', 10)).toEqual([]))
  expect(first.received).toEqual([])
})

test('a message that the homeserver repeats under another id is not delivered', async () => {
  const fake = await startFake()
  const bot = await startBot(fake)
  const ada = await Person.start(fake, ADA)
  const id = await ada.say(FEDCHAT_ROOM, 'only once')
  await soon(() => expect(bot.received).toHaveLength(1))
  const { event } = fake.state.rooms.find(fake.state.rooms.room(FEDCHAT_ROOM), id)
  fake.emit({ type: event.type, content: event.content, from: ADA })
  const later = await ada.say(FEDCHAT_ROOM, 'another one')
  await soon(() => expect(bot.received.map((inbound) => inbound.id)).toEqual([id, later]))
  expect(bot.host.logs.some(({ fields }) => String(fields.reason).includes('repeats the ciphertext'))).toBe(true)
})

test('the sender of a message without encryption in an encrypted room is unverified', async () => {
  const fake = await startFake()
  const bot = await startBot(fake)
  const ada = await Person.start(fake, ADA)
  await ada.say(FEDCHAT_ROOM, 'encrypted')
  await soon(() => expect(bot.received).toHaveLength(1))
  fake.emit({ type: 'm.room.message', content: { msgtype: 'm.text', body: 'forged by the homeserver' }, from: ADA })
  await soon(() => expect(bot.received).toHaveLength(2))
  expect(bot.received.map(({ text, unverified }) => [text, unverified])).toEqual([
    ['encrypted', undefined],
    ['forged by the homeserver', true],
  ])
})

test('the keys of the device stay the same over restarts, and no secret is stored with a name that shows users or rooms', async () => {
  const fake = await startFake()
  const secrets = memorySecrets()
  const first = await startBot(fake, secrets)
  const ada = await Person.start(fake, ADA)
  await first.channel.send({ to: FEDCHAT_ROOM }, { text: 'hello', clientId: 'c-1' }, NEVER)
  expect((await ada.sync()).at(-1)).toMatchObject({ type: 'm.room.message', content: { body: 'hello' } })
  const keys = await first.run('fedchat keys')
  await first.stop()
  const second = await startBot(fake, secrets)
  expect(await second.run('fedchat keys')).toBe(keys)
  expect(keys).toMatch(/fingerprint {2}(\S{4} ){10}\S{3}/)
  for (const { name } of await secrets.list('', 10_000)) expect(name).not.toMatch(/@|!|example/)
})

test('a room that was encrypted once is never written to without encryption', async () => {
  const fake = await startFedchatFake()
  open.push(fake)
  const bot = await startBot(fake)
  await bot.channel.send({ to: FEDCHAT_ROOM }, { text: 'in plain text', clientId: 'c-1' }, NEVER)
  fake.state.rooms.encrypt(fake.state.rooms.room(FEDCHAT_ROOM), ADA)
  // A hostile homeserver then says that the room is not encrypted.
  fake.emit({ type: 'm.room.encryption', content: {}, stateKey: '' })
  fake.say({ text: 'go on' })
  await soon(() => expect(bot.received).toHaveLength(1))
  await bot.channel.send({ to: FEDCHAT_ROOM }, { text: 'secret', clientId: 'c-2' }, NEVER)
  expect(fake.sent().map(({ type }) => type)).toEqual(['m.room.message', 'm.room.encrypted'])
})

test('nothing leaves before the keys that it uses are stored', async () => {
  const fake = await startFake()
  const secrets = memorySecrets()
  let isBroken = false
  const bot = startTestChannel(
    fake,
    {},
    {
      secrets: { ...secrets, setAll: (changes) => (isBroken ? Promise.reject(new Error('the disk is full')) : secrets.setAll(changes)) },
    },
  )
  open.push({ close: () => bot.stop() })
  await bot.connected()
  await Person.start(fake, ADA)
  isBroken = true
  const sending = bot.channel.send({ to: FEDCHAT_ROOM }, { text: 'hello', clientId: 'c-1' }, NEVER)
  await expect(sending).rejects.toThrow('the disk is full')
  expect(fake.sent()).toEqual([])
  isBroken = false
  await bot.channel.send({ to: FEDCHAT_ROOM }, { text: 'hello', clientId: 'c-1' }, NEVER)
  expect(fake.sent()).toHaveLength(1)
})

test('a second program with the same device stops the channel with a clear reason', async () => {
  const fake = await startFake()
  await startBot(fake)
  const other = startTestChannel(fake, {}, { dataDir: '/other' })
  open.push({ close: () => other.stop() })
  await soon(() =>
    expect(other.listening.health).toMatchObject({ state: 'down', detail: expect.stringContaining('Another program uses the device') }),
  )
})

test('a person verifies the device with emoji, which the operator confirms', async () => {
  const fake = await startFake()
  const bot = await startBot(fake, memorySecrets(), { allowed_users: [ADA] })
  const ada = await Person.start(fake, ADA)
  await ada.say(FEDCHAT_ROOM, 'hello')
  const isQueried = ({ path, body, headers }: FedchatFake['requests'][number]): boolean =>
    path.endsWith('/keys/query') && body.includes(ADA) && headers.get('authorization')?.includes(fake.bot.token) === true
  await soon(() => expect(fake.requests.some(isQueried)).toBe(true))
  const flow = await ada.verify(FEDCHAT_BOT, fake.bot.deviceId)
  let emoji: string[] = []
  await soon(async () => {
    const sas = await ada.advance(FEDCHAT_BOT, flow)
    emoji = (sas?.emoji() ?? []).map(({ description }) => description)
    expect(emoji).toHaveLength(7)
  })
  await soon(async () => expect(await bot.run('fedchat verify')).toContain(emoji.at(-1)))
  await expect(bot.run('fedchat verify', BOB, 'yes')).rejects.toMatchObject({ code: 'not_found' })
  await bot.run('fedchat verify', ADA, 'yes')
  const sas = await ada.advance(FEDCHAT_BOT, flow)
  for (const request of (await sas?.confirm()) ?? []) await ada.request(request as never)
  await soon(async () => expect((await ada.advance(FEDCHAT_BOT, flow))?.isDone()).toBe(true))
  await soon(async () => expect(await bot.run('fedchat verify')).toContain('No verification is under way'))
})

describe('with a recovery key', () => {
  const KEY = Buffer.from(Array.from({ length: 32 }, (_, at) => at * 7 + 3))

  /** Stores secrets as "Secret storage" of the client-server API says. */
  function store(fake: FedchatFake, seeds: Readonly<Record<string, string>>): void {
    const data = fake.state.accounts.user(FEDCHAT_BOT).accountData
    const seal = (name: string, plain: Buffer) => {
      const keys = Buffer.from(hkdfSync('sha256', KEY, Buffer.alloc(32), name, 64))
      const iv = Buffer.alloc(16, 5)
      const ciphertext = createCipheriv('aes-256-ctr', keys.subarray(0, 32), iv).update(plain)
      return {
        iv: iv.toString('base64'),
        ciphertext: ciphertext.toString('base64'),
        mac: createHmac('sha256', keys.subarray(32)).update(ciphertext).digest('base64'),
      }
    }
    const { iv, mac } = seal('', Buffer.alloc(32))
    data.set('m.secret_storage.default_key', { key: 'k1' })
    data.set('m.secret_storage.key.k1', { algorithm: 'm.secret_storage.v1.aes-hmac-sha2', iv, mac })
    for (const [name, seed] of Object.entries(seeds)) data.set(name, { encrypted: { k1: seal(name, Buffer.from(seed)) } })
  }

  /** Encodes a key as "Key representation" of the client-server API says. */
  function encoded(key: Buffer): string {
    const bytes = [0x8b, 0x01, ...key]
    bytes.push(bytes.reduce((parity, byte) => parity ^ byte, 0))
    let value = BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
    let digits = ''
    for (; value > 0n; value /= 58n) digits = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'[Number(value % 58n)] + digits
    return digits.replaceAll(/.{4}/g, '$& ')
  }

  test('the bot verifies its own device', async () => {
    const fake = await startFake()
    const client = await Person.start(fake, FEDCHAT_BOT)
    const { master, selfSigning, userSigning } = await client.createCrossSigning(fake)
    store(fake, {
      'm.cross_signing.master': master,
      'm.cross_signing.self_signing': selfSigning,
      'm.cross_signing.user_signing': userSigning,
    })
    const bot = await startBot(fake, memorySecrets(), { recovery_key: encoded(KEY) })
    expect(await bot.run('fedchat keys')).toContain('verified     yes')
    expect(await bot.parts.check?.(NEVER)).toMatchObject([
      { status: 'ok' },
      { status: 'ok', detail: expect.stringContaining('is verified') },
    ])
    await client.machine.updateTrackedUsers([new client.sdk.UserId(FEDCHAT_BOT)])
    await client.sync()
    const device = await client.machine.getDevice(new client.sdk.UserId(FEDCHAT_BOT), new client.sdk.DeviceId(fake.bot.deviceId))
    expect(device?.isCrossSignedByOwner()).toBe(true)
  })

  test('a wrong key is reported, and the channel works without it', async () => {
    const fake = await startFake()
    store(fake, {})
    const bot = await startBot(fake, memorySecrets(), { recovery_key: encoded(Buffer.alloc(32, 9)) })
    expect(await bot.run('fedchat keys')).toContain('verified     no')
    expect(bot.host.logs.find(({ message }) => message.includes('not verified with the recovery key'))?.fields.reason).toMatch(
      /is not the key/,
    )
    expect(await bot.parts.check?.(NEVER)).toMatchObject([{ status: 'ok' }, { status: 'warn' }])
    expect(JSON.stringify(bot.host.logs)).not.toContain(encoded(Buffer.alloc(32, 9)))
  })

  test('a mistyped key is recognised by its parity', () => {
    const typed = encoded(KEY)
    expect(readRecoveryKey(typed)).toEqual(KEY)
    expect(() => readRecoveryKey(typed.replace('E', 'F'))).toThrow(/a character is wrong/)
    expect(() => readRecoveryKey('0OIl')).toThrow(/a character is wrong/)
  })
})

describe('with the password', () => {
  const login = { user_id: FEDCHAT_BOT, password: FEDCHAT_PASSWORD }

  test('an account without cross-signing keys gets them, and the bot signs its device', async () => {
    const fake = await startFake()
    const secrets = memorySecrets()
    const bot = await startBot(fake, secrets, login)
    expect(await bot.run('fedchat keys')).toContain('verified     yes')
    const uploads = () => fake.requests.filter(({ path }) => path.endsWith('/keys/device_signing/upload')).length
    expect(uploads()).toBe(2)
    await bot.stop()
    const again = await startBot(fake, secrets, login)
    expect(await again.run('fedchat keys')).toContain('verified     yes')
    expect(uploads()).toBe(2)
    expect(JSON.stringify(again.host.logs)).not.toContain(FEDCHAT_PASSWORD)
  })

  test('the keys of an account that has some are left alone, and log and doctor say what is missing', async () => {
    const fake = await startFake()
    const client = await Person.start(fake, FEDCHAT_BOT)
    await client.createCrossSigning(fake)
    const bot = await startBot(fake, memorySecrets(), login)
    expect(await bot.run('fedchat keys')).toContain('verified     no')
    expect(bot.host.logs.find(({ message }) => message.includes('the device is not verified'))?.fields.fix).toContain('recovery_key')
    expect(await bot.parts.check?.(NEVER)).toMatchObject([
      { status: 'ok' },
      { status: 'warn', detail: expect.stringContaining('not verified'), fix: expect.stringContaining('recovery_key') },
    ])
  })
})

test('a room of two needs no mention after a restart either, although the homeserver does not repeat how many are in it', async () => {
  const fake = await startFedchatFake()
  open.push(fake)
  const { id: room } = fake.addRoom({ people: [ADA] })
  const secrets = memorySecrets()
  const config = { mention_only: true, allowed_rooms: [room] }
  const first = await startBot(fake, secrets, config)
  fake.say({ room, text: 'before' })
  await soon(() => expect(first.received.map(({ text }) => text)).toEqual(['before']))
  await first.stop()
  const second = await startBot(fake, secrets, config)
  fake.say({ room, text: 'after' })
  await soon(() => expect(second.received).toMatchObject([{ text: 'after', addressed: 'direct' }]))
})

test('an invitation with an impossible user id does not keep the bot from answering in an encrypted room', async () => {
  const fake = await startFake()
  const bot = await startBot(fake)
  fake.emit({ type: 'm.room.member', stateKey: 'nobody at all', content: { membership: 'invite' } })
  fake.emit({ type: 'm.room.member', stateKey: '@eve:no server', content: { membership: 'invite' } })
  const ada = await Person.start(fake, ADA)
  await bot.channel.send({ to: FEDCHAT_ROOM }, { text: 'hello', clientId: 'c-1' }, NEVER)
  expect((await ada.sync()).at(-1)).toMatchObject({ content: { body: 'hello' } })
})

test('a message whose key belongs to another person than its sender is not delivered', async () => {
  const fake = await startFake()
  const secrets = memorySecrets()
  const first = await startBot(fake, secrets)
  const eve = await Person.start(fake, FEDCHAT_PEOPLE[2])
  await first.stop()
  const id = await eve.say(FEDCHAT_ROOM, 'of eve, and shown as of ada')
  Object.assign(fake.state.rooms.find(fake.state.rooms.room(FEDCHAT_ROOM), id).event, { sender: ADA })
  const second = await startBot(fake, secrets)
  const later = await eve.say(FEDCHAT_ROOM, 'of eve')
  await soon(() => expect(second.received.map((inbound) => inbound.id)).toContain(later))
  expect(second.received.map((inbound) => inbound.id)).toEqual([later])
  expect(second.host.logs.some(({ fields }) => String(fields.reason).includes('another user'))).toBe(true)
})

test.each([200, 6000])('a message to the device with lists that are nested %i times does not stop the bot', async (depth) => {
  const fake = await startFake()
  const nested = `${'['.repeat(depth)}${']'.repeat(depth)}`
  const bot = startTestChannel(
    fake,
    {},
    {
      async fetch(input, init) {
        const response = await fetch(input, init)
        // The fake cannot write such JSON itself.
        return String(input).includes('/sync') ? new Response((await response.text()).replace('"NESTED"', nested), response) : response
      },
    },
  )
  open.push({ close: () => bot.stop() })
  await bot.connected()
  fake.bot.inbox.push({ seq: fake.state.now() + 1, event: { type: 'm.dummy', sender: '@eve:evil.example', content: { list: 'NESTED' } } })
  fake.say({ text: 'first' })
  fake.say({ text: 'second' })
  await soon(() => expect(bot.received.map(({ text }) => text)).toEqual(['first', 'second']))
})
