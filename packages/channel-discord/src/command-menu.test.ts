import { expect, test } from 'vitest'
import { DISCORD_CHANNEL, DISCORD_DIRECT, DISCORD_USER } from './testing/fake.ts'
import { channelOn, discordHarness, receives } from './testing/harness.ts'

const harness = discordHarness()
const { signal } = new AbortController()

test('the menu shows the commands in force, keeps the commands of others, and is written only when it changes', async () => {
  const { fake } = harness
  const channel = channelOn(fake, harness.host)
  const commands = [
    { name: 'stop', description: 'é'.repeat(300) },
    { name: 'model', description: 'Shows the model', takesWords: true },
  ] as const
  await channel.offerCommands?.(commands, signal)
  const other = expect.objectContaining({ type: 2, name: 'Report' })
  expect(fake.menu).toEqual([
    other,
    expect.objectContaining({ name: 'stop', description: 'é'.repeat(100) }),
    expect.objectContaining({ name: 'model', options: [expect.objectContaining({ type: 3, name: 'words', required: false })] }),
  ])
  await channel.offerCommands?.(commands, signal)
  expect(fake.requests.filter(({ method }) => method === 'PUT')).toHaveLength(1)
  await expect(channel.offerCommands?.([{ name: 'Stop!', description: 'x' }], signal)).rejects.toMatchObject({ code: 'invalid_request' })
  await channel.offerCommands?.([], signal)
  expect(fake.menu).toEqual([other])
})

test('a command of the menu arrives as a person would have written it, and is answered for that person alone', async () => {
  const { fake } = harness
  const listening = await harness.connect()
  fake.command({ name: 'model', words: ' gpt-5 ' })
  await receives(listening, '/model gpt-5')
  fake.command({ name: 'stop', channel: DISCORD_DIRECT })
  await receives(listening, '/model gpt-5', '/stop')
  expect(listening.received).toMatchObject([
    { sender: DISCORD_USER, name: 'Ada', addressed: 'command', to: { to: DISCORD_CHANNEL } },
    { sender: DISCORD_USER, addressed: 'direct', to: { to: DISCORD_DIRECT } },
  ])
  await expect
    .poll(() => fake.answers)
    .toMatchObject([
      { content: '/model gpt-5', flags: 64 },
      { content: '/stop', flags: 64 },
    ])
})
