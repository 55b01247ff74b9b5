/** The commands of senders in every channel: each is answered once, without a model, through the fake of the platform. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ChannelKind, countOf, KIND_NAMES, KindDaemon } from '../daemons/kind-daemon.ts'

/** A line of the answer to each command that has no running turn. */
const ANSWERS = {
  '/help': '/help shows these commands',
  '/status': 'Agent main is ready.',
  '/stop': 'Nothing is running.',
  '/new': 'This is a new conversation.',
  '/who': 'Agent main answers here.',
} as const
const COMMANDS = Object.entries(ANSWERS)

let daemon: KindDaemon
/** The texts of messages that the model answers later. */
const held = new Map<string, PromiseWithResolvers<void>>()
beforeAll(async () => {
  daemon = await KindDaemon.start({
    answer: async ({ lastUserText }) => {
      for (const [text, { promise }] of held) if (lastUserText.includes(text)) await promise
      return { text: 'the answer of the model' }
    },
  })
}, 120_000)
afterAll(() => daemon?.stop())

/** How often the model was asked with a text. */
const askedWith = (text: string): number => daemon.model.requests.filter(({ lastUserText }) => lastUserText.includes(text)).length
/** The requests to the model other than the messages that it answers later: none, unless a command reached it. */
const leaked = (): readonly string[] =>
  daemon.model.requests.map(({ lastUserText }) => lastUserText).filter((text) => !held.keys().some((words) => text.includes(words)))
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

describe.concurrent.each(KIND_NAMES)('%s', (name) => {
  test('answers each command once without a model, also when the platform repeats it', {
    concurrent: false,
    timeout: 180_000,
  }, async () => {
    const kind = daemon.kind(name)
    const before = counts(kind)
    for (const [command, text] of COMMANDS) {
      const written = await daemon.write(kind, command)
      await daemon.until(() => countOf(kind, text) > (before[command] ?? 0))
      await daemon.deliver(kind, written)
    }
    await daemon.idle(kind)
    expect(counts(kind)).toEqual(plus(before, ONCE))
    expect(leaked()).toEqual([])
  })

  test('answers a command in a group with a mention in front', { concurrent: false, timeout: 180_000 }, async ({ skip }) => {
    const kind = daemon.kind(name)
    if (!kind.mention) return skip('The platform has no groups, or nobody can mention the bot.')
    const before = counts(kind)
    for (const [command, text] of COMMANDS) {
      await daemon.act(kind.mention({ mark: `group-${command.slice(1)}`, sender: kind.senders[0], text: command }))
      await daemon.until(() => countOf(kind, text) > (before[command] ?? 0))
    }
    await daemon.idle(kind)
    expect(counts(kind)).toEqual(plus(before, ONCE))
    expect(leaked()).toEqual([])
  })

  test('/status tells of the running turn, and /stop ends it', { concurrent: false, timeout: 180_000 }, async ({ onTestFinished }) => {
    const kind = daemon.kind(name)
    // No text is the beginning of another, such as that of `chatapp_web`.
    const text = `take your time on ${name}, please`
    const holding = Promise.withResolvers<void>()
    held.set(text, holding)
    onTestFinished(() => holding.resolve())
    const after = await daemon.write(kind, text)
    await daemon.until(() => askedWith(text) > 0)
    await daemon.write(kind, '/status', { after })
    await daemon.until(() => countOf(kind, 'Agent main has been at work') > 0)
    await daemon.write(kind, '/stop', { after })
    await daemon.until(() => countOf(kind, 'Stopped.') > 0)
    holding.resolve()
    await daemon.idle(kind)
    expect(countOf(kind, 'Stopped.')).toBe(1)
    expect(countOf(kind, 'the answer of the model')).toBe(0)
    expect(askedWith(text)).toBe(1)
    expect(leaked()).toEqual([])
  })
})

test('a command is answered once in every channel although the daemon is killed', async () => {
  const before = new Map(daemon.kinds.map((kind) => [kind.name, counts(kind)]))
  const written = await Promise.all(daemon.kinds.map(async (kind) => ({ kind, message: await daemon.write(kind, '/status') })))
  await daemon.until(() => daemon.kinds.every((kind) => countOf(kind, ANSWERS['/status']) > (before.get(kind.name)?.['/status'] ?? 0)))
  await daemon.kill()
  await daemon.up()
  for (const { kind, message } of written) await daemon.deliver(kind, message)
  await daemon.idle()
  for (const kind of daemon.kinds) expect(counts(kind), kind.name).toEqual(plus(before.get(kind.name) ?? {}, { '/status': 1 }))
  expect(leaked()).toEqual([])
}, 120_000)
