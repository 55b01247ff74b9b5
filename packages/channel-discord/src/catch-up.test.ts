/** Fetching the messages that were written while the bot was disconnected. */

import { describe, expect, test } from 'vitest'
import { MISSED_MAX } from './catch-up.ts'
import { DISCORD_BOT, DISCORD_CHANNEL, DISCORD_GUILD, DISCORD_OTHER_CHANNEL } from './testing/fake.ts'
import { answers, discordHarness, receives, until } from './testing/harness.ts'

const harness = discordHarness()

describe('after a restart, the listener', () => {
  test('fetches missed messages over several pages, oldest first', async () => {
    const before = await harness.connect()
    harness.fake.say({ text: 'before' })
    await receives(before, 'before')
    await before.stop()
    const texts = Array.from({ length: 230 }, (_, index) => `message ${index}`)
    for (const text of texts) harness.fake.say({ text })
    const after = await harness.connect()
    await receives(after, ...texts)
    harness.fake.say({ text: 'live' })
    await receives(after, ...texts, 'live')
  })

  test('skips messages older than an hour', async () => {
    const before = await harness.connect()
    harness.fake.say({ text: 'before' })
    await receives(before, 'before')
    await before.stop()
    harness.fake.say({ text: 'too old' })
    await harness.host.advance(3_700_000)
    harness.fake.say({ text: 'recent' })
    const after = await harness.connect()
    await receives(after, 'recent')
    expect(after.gaps).toMatchObject([{ why: expect.stringContaining('more than an hour old') }])
  })

  test('finds the edits of messages that it has stored, and of messages that it does not know to be stored', async () => {
    const before = await harness.connect()
    const known = harness.fake.say({ text: 'known' })
    await receives(before, 'known')
    await before.stop()
    harness.fake.edit(known, { text: 'known, edited' })
    const missed = harness.fake.say({ text: 'missed' })
    harness.fake.edit(missed, { text: 'missed, edited' })
    const after = await harness.connect()
    await receives(after, 'known, edited', 'missed, edited', 'missed, edited')
    const [first, message, last] = after.received
    expect(first).toMatchObject({ changes: { message: known, what: 'edited' }, sentAtMs: harness.host.clock.nowMs() })
    expect([message?.id, message?.changes, last?.changes?.message]).toEqual([missed, undefined, missed])
    await after.stop()
    // The inbox drops an edit that has the id of one that it has.
    const again = await harness.connect()
    harness.fake.say({ text: 'live' })
    await until(() => expect(again.texts().at(-1)).toBe('live'))
    expect(again.received.filter(({ changes }) => changes).map(({ id }) => id)).toEqual([first?.id, last?.id])
  })

  test('looks for no edits of messages that are more than a day old', async () => {
    const before = await harness.connect()
    const known = harness.fake.say({ text: 'known' })
    await receives(before, 'known')
    await before.stop()
    harness.fake.edit(known, { text: 'known, edited' })
    await harness.host.advance(25 * 3_600_000)
    const after = await harness.connect()
    harness.fake.say({ text: 'live' })
    // A message written during the catch-up may arrive twice.
    await until(() => expect(new Set(after.texts())).toEqual(new Set(['live'])))
  })

  test('fetches the first reply in a thread that the bot opened', async () => {
    const before = await harness.connect({ mention_only: true })
    const question = { text: 'Deploy?', clientId: 'c', topic: 'Deploy' }
    const { id } = await before.channel.send({ to: DISCORD_CHANNEL }, question, new AbortController().signal)
    await before.stop()
    harness.fake.say({ text: 'approve', channel: id })
    harness.fake.say({ text: 'chatter' })
    await answers(await harness.connect({ mention_only: true }), 'approve')
  })

  test('accepts mentions of a role of the bot, live and from the history', async () => {
    const roles = [
      { id: '500000000000000001', name: 'Sluice', tags: { bot_id: DISCORD_BOT } },
      { id: '500000000000000002', name: 'ops' },
      { id: '500000000000000003', name: 'bots' },
      { id: DISCORD_GUILD, name: '@everyone' },
    ]
    const members = [{ user: { id: DISCORD_BOT }, roles: ['500000000000000003'] }]
    await harness.start({ guilds: [{ id: DISCORD_GUILD, roles, channels: [{ id: DISCORD_OTHER_CHANNEL, name: 'alerts' }], members }] })
    const before = await harness.connect({ mention_only: true })
    harness.fake.say({ text: `<@&500000000000000001> look at <#${DISCORD_OTHER_CHANNEL}>` })
    harness.fake.say({ text: '<@&500000000000000002> are asked, not the bot' })
    harness.fake.say({ text: `<@&${DISCORD_GUILD}> are all` })
    harness.fake.say({ text: '<@&500000000000000003> tell <@&500000000000000002>' })
    await answers(before, 'look at #alerts', 'tell @ops')
    await before.stop()
    harness.fake.say({ text: '<@&500000000000000001> meanwhile' })
    await answers(await harness.connect({ mention_only: true }), 'meanwhile')
  })

  test('fetches the first message in the notification channel', async () => {
    await (await harness.connect({ notification_channel_id: DISCORD_OTHER_CHANNEL })).stop()
    harness.fake.say({ text: 'meanwhile', channel: DISCORD_OTHER_CHANNEL })
    await receives(await harness.connect({ notification_channel_id: DISCORD_OTHER_CHANNEL }), 'meanwhile')
  })

  test('repeats a failed fetch before it takes newer messages', async () => {
    const before = await harness.connect()
    harness.fake.say({ text: 'before' })
    await receives(before, 'before')
    await before.stop()
    harness.fake.say({ text: 'missed' })
    harness.fake.fail({ fault: 'status', status: 502 }, { times: 2, matches: ({ path }) => path.endsWith('/messages') })
    const after = await harness.connect()
    harness.fake.say({ text: 'live' })
    await until(async () => {
      await harness.host.advance(1000)
      expect([...new Set(after.texts())]).toEqual(['missed', 'live'])
    })
  })

  test('forgets a conversation that it can no longer read, and reads the others', async () => {
    const before = await harness.connect()
    harness.fake.say({ text: 'here' })
    harness.fake.say({ text: 'there', channel: DISCORD_OTHER_CHANNEL })
    await until(() => expect(before.received).toHaveLength(2))
    await before.stop()
    harness.fake.forbid(DISCORD_CHANNEL)
    harness.fake.say({ text: 'missed', channel: DISCORD_OTHER_CHANNEL })
    await receives(await harness.connect(), 'missed')
  })

  test('opens the next connection although a fetch keeps failing', async () => {
    const before = await harness.connect()
    harness.fake.say({ text: 'before' })
    await receives(before, 'before')
    await before.stop()
    harness.fake.say({ text: 'missed' })
    harness.fake.fail({ fault: 'status', status: 502 }, { times: 1000, matches: ({ path }) => path.endsWith('/messages') })
    const after = await harness.connect()
    harness.fake.kick(1001)
    await until(async () => {
      await harness.host.advance(1000)
      expect(harness.fake.happened).toContain('resume')
    })
    await until(() => expect(after.health().state).toBe('ok'))
  })

  test('limits the messages it fetches from one conversation, and logs the limit', async () => {
    const before = await harness.connect()
    harness.fake.say({ text: 'before' })
    await receives(before, 'before')
    await before.stop()
    for (let index = 0; index < MISSED_MAX + 50; index++) harness.fake.say({ text: `message ${index}` })
    const after = await harness.connect()
    await until(() => expect(after.received).toHaveLength(MISSED_MAX))
    await until(() => expect(after.gaps).toMatchObject([{ why: expect.stringContaining(`more than ${MISSED_MAX} messages`) }]))
    harness.fake.say({ text: 'live' })
    await until(() => expect(after.texts().at(-1)).toBe('live'))
    expect(after.received).toHaveLength(MISSED_MAX + 1)
  })
})
