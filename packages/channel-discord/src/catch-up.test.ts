/** What was said while nobody listened. */
import { DISCORD_BOT, DISCORD_CHANNEL, DISCORD_GUILD, DISCORD_OTHER_CHANNEL } from '@sluice/testkit/fakes/discord'
import { describe, expect, test } from 'vitest'
import { MISSED_MAX } from './history.ts'
import { comes, discordBench, until } from './testing.ts'

const bench = discordBench()

describe('after a restart', () => {
  test('what was said meanwhile comes, oldest first, over more than one page', async () => {
    const before = await bench.connect()
    bench.fake.say({ text: 'before' })
    await comes(before, 'before')
    await before.stop()
    const texts = Array.from({ length: 230 }, (_, index) => `message ${index}`)
    for (const text of texts) bench.fake.say({ text })
    const after = await bench.connect()
    await comes(after, ...texts)
    bench.fake.say({ text: 'live' })
    await comes(after, ...texts, 'live')
  })

  test('what was said more than an hour ago does not', async () => {
    const before = await bench.connect()
    bench.fake.say({ text: 'before' })
    await comes(before, 'before')
    await before.stop()
    bench.fake.say({ text: 'too old' })
    await bench.host.advance(3_700_000)
    bench.fake.say({ text: 'recent' })
    await comes(await bench.connect(), 'recent')
    expect(bench.host.logs.at(-1)?.fields).toMatchObject({
      count: 1,
      notBefore: new Date(bench.host.clock.nowMs() - 3_600_000).toISOString(),
    })
  })

  test('an answer in a thread that was opened comes, although nobody had said anything there', async () => {
    const before = await bench.connect({ mention_only: true })
    const question = { text: 'Deploy?', clientId: 'c', topic: 'Deploy' }
    const { id } = await before.channel.send({ to: DISCORD_CHANNEL }, question, AbortSignal.timeout(4000))
    await before.stop()
    bench.fake.say({ text: 'approve', channel: id })
    bench.fake.say({ text: 'chatter' })
    await comes(await bench.connect({ mention_only: true }), 'approve')
  })

  test('a message to a role of the bot arrives, live and from the history, with the names of other roles', async () => {
    const roles = [
      { id: '500000000000000001', name: 'Sluice', tags: { bot_id: DISCORD_BOT } },
      { id: '500000000000000002', name: 'ops' },
      { id: '500000000000000003', name: 'bots' },
      { id: DISCORD_GUILD, name: '@everyone' },
    ]
    const members = [{ user: { id: DISCORD_BOT }, roles: ['500000000000000003'] }]
    await bench.start({ guilds: [{ id: DISCORD_GUILD, roles, channels: [{ id: DISCORD_OTHER_CHANNEL, name: 'alerts' }], members }] })
    const before = await bench.connect({ mention_only: true })
    bench.fake.say({ text: `<@&500000000000000001> look at <#${DISCORD_OTHER_CHANNEL}>` })
    bench.fake.say({ text: '<@&500000000000000002> are asked, not the bot' })
    bench.fake.say({ text: `<@&${DISCORD_GUILD}> are all` })
    bench.fake.say({ text: '<@&500000000000000003> tell <@&500000000000000002>' })
    await comes(before, 'look at #alerts', 'tell @ops')
    await before.stop()
    bench.fake.say({ text: '<@&500000000000000001> meanwhile' })
    await comes(await bench.connect({ mention_only: true }), 'meanwhile')
  })

  test('what was said in the conversation for notifications comes, although nobody had said anything there', async () => {
    await (await bench.connect({ notification_channel_id: DISCORD_OTHER_CHANNEL })).stop()
    bench.fake.say({ text: 'meanwhile', channel: DISCORD_OTHER_CHANNEL })
    await comes(await bench.connect({ notification_channel_id: DISCORD_OTHER_CHANNEL }), 'meanwhile')
  })

  test('a history that fails is asked again, and nothing overtakes it', async () => {
    const before = await bench.connect()
    bench.fake.say({ text: 'before' })
    await comes(before, 'before')
    await before.stop()
    bench.fake.say({ text: 'missed' })
    bench.fake.fail({ fault: 'status', status: 502 }, { times: 2, matches: ({ path }) => path.endsWith('/messages') })
    const after = await bench.connect()
    bench.fake.say({ text: 'live' })
    await until(async () => {
      await bench.host.advance(1000)
      expect([...new Set(after.texts())]).toEqual(['missed', 'live'])
    })
  })

  test('a conversation that is gone is forgotten, and the others go on', async () => {
    const before = await bench.connect()
    bench.fake.say({ text: 'here' })
    bench.fake.say({ text: 'there', channel: DISCORD_OTHER_CHANNEL })
    await until(() => expect(before.received).toHaveLength(2))
    await before.stop()
    bench.fake.forbid(DISCORD_CHANNEL)
    bench.fake.say({ text: 'missed', channel: DISCORD_OTHER_CHANNEL })
    await comes(await bench.connect(), 'missed')
  })

  test('a history that fails for ever does not hold up a connection that has to be made anew', async () => {
    const before = await bench.connect()
    bench.fake.say({ text: 'before' })
    await comes(before, 'before')
    await before.stop()
    bench.fake.say({ text: 'missed' })
    bench.fake.fail({ fault: 'status', status: 502 }, { times: 1000, matches: ({ path }) => path.endsWith('/messages') })
    const { ended } = await bench.connect()
    bench.fake.refuse(true)
    bench.fake.kick(1001)
    let outcome: unknown
    void ended.then((error) => {
      outcome = error
    })
    await until(async () => {
      await bench.host.advance(30_000)
      expect(outcome).toMatchObject({ code: 'unavailable' })
    })
  })

  test('of a conversation only so much is asked for, and that is told', async () => {
    const before = await bench.connect()
    bench.fake.say({ text: 'before' })
    await comes(before, 'before')
    await before.stop()
    for (let index = 0; index < MISSED_MAX + 50; index++) bench.fake.say({ text: `message ${index}` })
    const after = await bench.connect()
    await until(() => expect(after.received).toHaveLength(MISSED_MAX))
    await until(() =>
      expect(bench.host.logs).toContainEqual(expect.objectContaining({ fields: expect.objectContaining({ max: MISSED_MAX }) })),
    )
    bench.fake.say({ text: 'live' })
    await until(() => expect(after.texts().at(-1)).toBe('live'))
    expect(after.received).toHaveLength(MISSED_MAX + 1)
  })
})
