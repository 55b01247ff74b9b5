import { expect, test } from 'vitest'
import { startSlackFake } from './testing/fake.ts'
import { createTestChannel, soon } from './testing/test-channel.ts'

test('a message has the display name of its writer, which is looked up once', async () => {
  const fake = await startSlackFake()
  const bot = createTestChannel(fake, { config: { allowed_users: ['UADA', 'UBEN'] } }).listen()
  try {
    await soon(() => expect(bot.health().state).toBe('ok'))
    for (const [text, user] of [
      ['one', 'UADA'],
      ['two', 'UADA'],
      ['three', 'UBEN'],
      ['four', 'UEVE'],
    ] as const)
      fake.say({ text, user })
    await soon(() => expect(bot.received).toHaveLength(4))
    expect(bot.received.map(({ text, name }) => [text, name])).toEqual([
      ['one', 'ada'],
      ['two', 'ada'],
      ['three', 'ben'],
      ['four', undefined],
    ])
    expect(fake.requests.filter(({ path }) => path === '/api/users.info')).toHaveLength(2)
  } finally {
    await bot.stop()
    await fake.close()
  }
})

test('a slash command of the app arrives as one of Sluice, and is acknowledged', async () => {
  const fake = await startSlackFake()
  const bot = createTestChannel(fake, { config: { allowed_users: ['UADA'] } }).listen()
  try {
    await soon(() => expect(bot.health().state).toBe('ok'))
    const use = (trigger_id: string, command: string, text: string) =>
      fake.socket.emit({ type: 'slash_commands', payload: { command, text, user_id: 'UADA', channel_id: 'C1', team_id: 'T1', trigger_id } })
    use('1.1', '/sluice', 'model gpt-5')
    use('1.2', '/sluice', '')
    use('1.3', '/compact', 'the dates')
    await soon(() => expect(bot.received).toHaveLength(3))
    const to = { to: 'C1' }
    expect(bot.received).toMatchObject([
      { id: 'cmd:1.1', sender: 'UADA', to, addressed: 'command', text: '/model gpt-5' },
      { text: '/help' },
      { text: '/compact the dates' },
    ])
    await soon(() => expect(fake.socket.acknowledged).toHaveLength(3))
  } finally {
    await bot.stop()
    await fake.close()
  }
})

test('messages arrive without names where the app may not read them', async () => {
  const fake = await startSlackFake()
  const refused = { fault: 'status', status: 200, body: { ok: false, error: 'missing_scope', needed: 'users:read' } } as const
  fake.fail(refused, { times: 9, matches: ({ path }) => path === '/api/users.info' })
  const bot = createTestChannel(fake, { config: { allowed_users: ['*'] } }).listen()
  try {
    await soon(() => expect(bot.health().state).toBe('ok'))
    for (const [index, user] of ['UADA', 'UBEN'].entries()) {
      fake.say({ text: user, user })
      await soon(() => expect(bot.received).toHaveLength(index + 1))
    }
    expect(bot.received.some(({ name }) => name !== undefined)).toBe(false)
    expect(fake.requests.filter(({ path }) => path === '/api/users.info')).toHaveLength(1)
  } finally {
    await bot.stop()
    await fake.close()
  }
})
