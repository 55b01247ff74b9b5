/** Edits and deletions in every channel whose platform reports them, through its fake and a daemon that is killed. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { WrittenMessage } from '@sluice/testkit/crash-kind'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ChannelKind, KIND_NAMES, KindDaemon } from '../daemons/kind-daemon.ts'

/** Texts are unique, because all channels share one model. */
let marks = 0
const unique = (words: string): string => `${words} (${++marks})`

let daemon: KindDaemon
/** The texts of messages that the model answers later. */
const held = new Map<string, PromiseWithResolvers<void>>()
beforeAll(async () => {
  daemon = await KindDaemon.start({
    answer: async ({ lastUserText }) => {
      for (const [text, { promise }] of held) if (lastUserText.includes(text)) await promise
      return { text: 'done' }
    },
  })
}, 120_000)
afterAll(() => daemon?.stop())

/** The requests that the model got with one of the texts: which of the texts each has. */
const asked = (...texts: readonly string[]): readonly (readonly string[])[] =>
  daemon.model.requests.map(({ lastUserText }) => texts.filter((text) => lastUserText.includes(text))).filter((found) => found.length > 0)
const change = (kind: ChannelKind, sender = kind.senders[0]) => ({ mark: `change-${++marks}`, sender })

interface Busy {
  readonly first: WrittenMessage
  readonly second: WrittenMessage
  readonly third: WrittenMessage
  /** Lets the model answer the first message. */
  release(): void
}

/** Runs a turn that waits, with two messages of its sender behind it. */
async function busy(kind: ChannelKind): Promise<Busy> {
  const text = unique('wait')
  const holding = Promise.withResolvers<void>()
  held.set(text, holding)
  const first = await daemon.write(kind, text)
  await daemon.until(() => asked(text).length > 0)
  const second = await daemon.write(kind, unique('second'), { after: first })
  const third = await daemon.write(kind, unique('third'), { after: first })
  await daemon.until(() => daemon.waiting(kind, 2))
  return { first, second, third, release: holding.resolve }
}

/** Long enough for the daemon to look for the message of a change. */
const EARLY_MS = 200
const NO_EDITS = 'The platform reports no edits.'
const NO_DELETIONS = 'The platform reports no deletions.'

describe.concurrent.each(KIND_NAMES)('%s', (name) => {
  test('the next turn reads an edit once when its own turn has begun', { concurrent: false, timeout: 180_000 }, async ({ skip }) => {
    const kind = daemon.kind(name)
    if (!kind.edit) return skip(NO_EDITS)
    const [old, edited, next, last] = [unique('first'), unique('corrected'), unique('next'), unique('last')]
    const written = await daemon.write(kind, old)
    await daemon.until(() => asked(old).length > 0)
    await daemon.idle(kind)
    await daemon.act(kind.edit(written, { ...change(kind), text: edited }))
    await daemon.idle(kind)
    expect(asked(edited)).toEqual([])
    await daemon.write(kind, next, { after: written })
    await daemon.until(() => asked(next).length === 1)
    await daemon.idle(kind)
    await daemon.write(kind, last, { after: written })
    await daemon.until(() => asked(last).length === 1)
    await daemon.idle(kind)
    expect(asked(edited, next, last)).toEqual([[edited, next], [last]])
  })

  test('a deletion cancels the message before its turn begins, and goes to the next turn later', {
    concurrent: false,
    timeout: 180_000,
  }, async ({ skip }) => {
    const kind = daemon.kind(name)
    if (!kind.remove) return skip(NO_DELETIONS)
    const { first, second, third, release } = await busy(kind)
    await daemon.act(kind.remove(second, change(kind)))
    await daemon.until(() => daemon.waiting(kind, 1))
    const number = await daemon.newest(kind)
    await daemon.act(kind.remove(first, change(kind)))
    await daemon.handled(kind, number)
    release()
    await daemon.until(() => asked(third.text).length > 0)
    await daemon.idle(kind)
    expect(asked(second.text)).toEqual([])
    const told = daemon.model.requests.filter(({ lastUserText }) => lastUserText.includes('deleted an earlier message'))
    expect(told.filter(({ lastUserText }) => lastUserText.includes(first.text))).toHaveLength(1)
  })

  test('an edit that comes before its message replaces it', { concurrent: false, timeout: 180_000 }, async ({ skip }) => {
    const kind = daemon.kind(name)
    if (!kind.edit) return skip(NO_EDITS)
    if (!kind.request || kind.isPulled) return skip('The platform keeps the order.')
    const [old, edited] = [unique('old words'), unique('new words')]
    const written = await daemon.write(kind, old, { isHeld: true })
    await daemon.act(kind.edit(written, { ...change(kind), text: edited }))
    await sleep(EARLY_MS)
    await daemon.deliver(kind, written)
    await daemon.until(() => asked(old, edited).length > 0)
    await daemon.idle(kind)
    expect(asked(old, edited)).toEqual([[edited]])
  })
})

describe('an edit before a kill', () => {
  const edits = new Map<string, Promise<Busy & { readonly edited: string; readonly forged: string }>>()

  /** Where ids of messages name their sender, the forged edit waits for a message that never comes. */
  const atMostForgedAnd = async (kind: ChannelKind, waiting: number): Promise<boolean> =>
    (await daemon.waiting(kind, waiting)) || (await daemon.waiting(kind, waiting + 1))

  /** Edits the second message, and the third one as another sender. */
  async function edit(kind: ChannelKind, by: NonNullable<ChannelKind['edit']>) {
    const messages = await busy(kind)
    const [edited, forged] = [unique('better'), unique('forged')]
    const number = await daemon.newest(kind)
    await daemon.act(by(messages.second, { ...change(kind), text: edited }))
    await daemon.handled(kind, number)
    await daemon.act(by(messages.third, { ...change(kind, kind.senders[1]), text: forged }))
    await sleep(EARLY_MS)
    await daemon.until(() => atMostForgedAnd(kind, 2))
    return { ...messages, edited, forged }
  }

  beforeAll(async () => {
    for (const kind of daemon.kinds) if (kind.edit) edits.set(kind.name, edit(kind, kind.edit))
    // The test of its channel reports what failed.
    const made = await Promise.allSettled(edits.values())
    await daemon.kill()
    for (const { release } of made.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))) release()
    await daemon.up()
  }, 180_000)

  test.concurrent.for(KIND_NAMES)(
    '%s: replaces the message, and not if another sender edits it',
    { timeout: 180_000 },
    async (name, { skip }) => {
      const kind = daemon.kind(name)
      if (!kind.edit) return skip(NO_EDITS)
      const { second, third, edited, forged } = (await edits.get(name)) ?? expect.fail('The message was not edited.')
      await daemon.until(() => asked(third.text).length > 0)
      await daemon.until(() => atMostForgedAnd(kind, 0))
      expect(asked(edited, third.text, second.text, forged).toSorted()).toEqual([[edited], [third.text]].toSorted())
    },
  )
})

// The last tests, because the changes wait for two minutes.
describe.concurrent.each(KIND_NAMES)('%s', (name) => {
  test('a change of a message that never came starts nothing', { timeout: 180_000 }, async ({ skip }) => {
    const kind = daemon.kind(name)
    if (!(kind.edit || kind.remove)) return skip(`${NO_EDITS} ${NO_DELETIONS}`)
    if (!kind.request || kind.isPulled) return skip('The platform keeps the order.')
    const texts = [unique('never sent'), unique('unknown'), unique('after it')] as const
    const written = await daemon.write(kind, texts[0], { isHeld: true })
    await daemon.act(kind.edit?.(written, { ...change(kind), text: texts[1] }))
    await daemon.act(kind.remove?.(written, change(kind)))
    await sleep(EARLY_MS)
    await daemon.write(kind, texts[2])
    await daemon.until(() => asked(texts[2]).length > 0)
    expect(asked(...texts)).toEqual([[texts[2]]])
  })
})
