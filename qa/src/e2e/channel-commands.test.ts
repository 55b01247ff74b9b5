/** The commands of senders in every channel: each is answered once, without a model, through the fake of the platform. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type ChannelKind, countOf, KIND_NAMES, KindDaemon } from '../daemons/kind-daemon.ts'

/** A line of the answer to each command that has no running turn. */
const ANSWERS = {
  '/help': '/help shows these commands',
  '/status': 'Agent main is ready.',
  '/stop': 'Nothing is running.',
  '/new': 'This is a new conversation.',
} as const
const SECOND_MS = 1100
const COMMANDS = Object.entries(ANSWERS)

let daemon: KindDaemon
/** Lets the model answer. */
let release = (): void => undefined
beforeAll(async () => {
  daemon = await KindDaemon.start({
    answer: async ({ lastUserText }) => {
      if (lastUserText.includes('take your time'))
        await new Promise<void>((resolve) => {
          release = resolve
        })
      return { text: 'the answer of the model' }
    },
  })
}, 120_000)
afterAll(() => daemon?.stop())

/** The answers to each command so far. */
const counts = (kind: ChannelKind): Readonly<Record<string, number>> =>
  Object.fromEntries(COMMANDS.map(([command, text]) => [command, countOf(kind, text)]))
const plus = (before: Readonly<Record<string, number>>, more: Readonly<Record<string, number>>) =>
  Object.fromEntries(Object.entries(before).map(([command, count]) => [command, count + (more[command] ?? 0)]))
const ONCE = Object.fromEntries(COMMANDS.map(([command]) => [command, 1]))

test('every channel of the catalogue takes part', () => {
  expect(daemon.kinds.map(({ name }) => name)).toEqual(KIND_NAMES)
  expect(KIND_NAMES.length).toBeGreaterThan(10)
})

describe.each(KIND_NAMES)('%s', (name) => {
  test('answers each command once without a model, also when the platform repeats it', async () => {
    const kind = daemon.kind(name)
    const before = counts(kind)
    const asked = daemon.model.requests.length
    for (const [command, text] of COMMANDS) {
      const written = await daemon.write(kind, command)
      await daemon.until(() => countOf(kind, text) > (before[command] ?? 0))
      await daemon.deliver(kind, written)
    }
    await daemon.idle()
    expect(counts(kind)).toEqual(plus(before, ONCE))
    expect(daemon.model.requests.length).toBe(asked)
  }, 180_000)

  test('answers a command in a group with a mention in front', async ({ skip }) => {
    const kind = daemon.kind(name)
    if (!kind.mention) return skip('The platform has no groups, or nobody can mention the bot.')
    const before = counts(kind)
    const asked = daemon.model.requests.length
    for (const [command, text] of COMMANDS) {
      await daemon.act(kind.mention({ mark: `group-${command.slice(1)}`, sender: kind.senders[0], text: command }))
      await daemon.until(() => countOf(kind, text) > (before[command] ?? 0))
    }
    await daemon.idle()
    expect(counts(kind)).toEqual(plus(before, ONCE))
    expect(daemon.model.requests.length).toBe(asked)
  }, 180_000)

  test('/status tells of the running turn, and /stop ends it', async () => {
    const kind = daemon.kind(name)
    const asked = daemon.model.requests.length
    // Nostr tells the messages of a person apart by their text and second.
    await sleep(SECOND_MS)
    const after = await daemon.write(kind, 'take your time')
    onTestFinished(() => release())
    await daemon.until(() => daemon.model.requests.length > asked)
    await daemon.write(kind, '/status', { after })
    await daemon.until(() => countOf(kind, 'Agent main has been working on your message') > 0)
    await daemon.write(kind, '/stop', { after })
    await daemon.until(() => countOf(kind, 'Stopped.') > 0)
    release()
    await daemon.idle()
    expect(countOf(kind, 'Stopped.')).toBe(1)
    expect(countOf(kind, 'the answer of the model')).toBe(0)
    expect(daemon.model.requests.length).toBe(asked + 1)
  }, 180_000)
})

test('a command is answered once in every channel although the daemon is killed', async () => {
  const before = new Map(daemon.kinds.map((kind) => [kind.name, counts(kind)]))
  const asked = daemon.model.requests.length
  const written = await Promise.all(daemon.kinds.map(async (kind) => ({ kind, message: await daemon.write(kind, '/status') })))
  await daemon.until(() => daemon.kinds.every((kind) => countOf(kind, ANSWERS['/status']) > (before.get(kind.name)?.['/status'] ?? 0)))
  await daemon.kill()
  await daemon.up()
  for (const { kind, message } of written) await daemon.deliver(kind, message)
  await daemon.idle()
  for (const kind of daemon.kinds) expect(counts(kind), kind.name).toEqual(plus(before.get(kind.name) ?? {}, { '/status': 1 }))
  expect(daemon.model.requests.length).toBe(asked)
}, 120_000)
