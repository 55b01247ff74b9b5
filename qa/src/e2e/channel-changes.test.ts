/** Edits and deletions in every channel whose platform reports them, through its fake and a daemon that is killed. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { WrittenMessage } from '@sluice/testkit/crash-kind'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ChannelKind, KIND_NAMES, KindDaemon } from '../daemons/kind-daemon.ts'

/** Nostr tells the messages of a person apart by their text and second. */
let marks = 0
const unique = (words: string): string => `${words} (${++marks})`

let daemon: KindDaemon
/** Lets the model answer a message that says `wait`. */
let release = (): void => undefined
let holding: Promise<void> | undefined
beforeAll(async () => {
  daemon = await KindDaemon.start({
    answer: async ({ lastUserText }) => {
      if (lastUserText.includes('wait')) await holding
      return { text: 'done' }
    },
  })
}, 120_000)
afterAll(() => daemon?.stop())

/** The texts that the model got since the mark. */
const askedSince = (before: number): readonly string[] => daemon.model.requests.slice(before).map(({ lastUserText }) => lastUserText)
const holdModel = (): void => {
  holding = new Promise((resolve) => {
    release = resolve
  })
}
const change = (kind: ChannelKind, sender = kind.senders[0]) => ({ mark: `change-${++marks}`, sender })

/** Runs a turn that waits, with two messages of its sender behind it. */
async function busy(
  kind: ChannelKind,
): Promise<{ readonly first: WrittenMessage; readonly second: WrittenMessage; readonly third: WrittenMessage; readonly before: number }> {
  const before = daemon.model.requests.length
  holdModel()
  const first = await daemon.write(kind, unique('wait'))
  await daemon.until(() => daemon.model.requests.length > before)
  const second = await daemon.write(kind, unique('second'), { after: first })
  const third = await daemon.write(kind, unique('third'), { after: first })
  await daemon.until(() => daemon.waiting(2))
  return { first, second, third, before }
}

const NO_EDITS = 'The platform reports no edits.'
const NO_DELETIONS = 'The platform reports no deletions.'

describe.each(KIND_NAMES)('%s: an edit', (name) => {
  test('replaces the message before its turn begins, also after a kill, and not if another sender edits it', async ({ skip }) => {
    const kind = daemon.kind(name)
    if (!kind.edit) return skip(NO_EDITS)
    const { second, third, before } = await busy(kind)
    const edited = unique('better')
    const { number } = await daemon.newest()
    await daemon.act(kind.edit(second, { ...change(kind), text: edited }))
    await daemon.handled(number)
    await daemon.act(kind.edit(third, { ...change(kind, kind.senders[1]), text: unique('forged') }))
    await daemon.until(() => daemon.waiting(2))
    await daemon.kill()
    release()
    await daemon.up()
    await daemon.until(() => askedSince(before).some((text) => text.includes(third.text)))
    await daemon.idle()
    const asked = askedSince(before)
    expect(asked.filter((text) => text.includes(edited))).toHaveLength(1)
    expect(asked.filter((text) => text.includes(third.text))).toHaveLength(1)
    for (const gone of [second.text, 'forged']) expect(asked.filter((text) => text.includes(gone))).toEqual([])
  }, 180_000)

  test('is told to the next turn, once, when its own turn has begun', async ({ skip }) => {
    const kind = daemon.kind(name)
    if (!kind.edit) return skip(NO_EDITS)
    const written = await daemon.write(kind, unique('first'))
    await daemon.until(() => askedSince(0).some((text) => text.includes(written.text)))
    await daemon.idle()
    const before = daemon.model.requests.length
    const edited = unique('corrected')
    await daemon.act(kind.edit(written, { ...change(kind), text: edited }))
    await daemon.idle()
    expect(askedSince(before)).toEqual([])
    const [next, last] = [unique('next'), unique('last')]
    await daemon.write(kind, next, { after: written })
    await daemon.until(() => askedSince(before).length === 1)
    await daemon.idle()
    await daemon.write(kind, last, { after: written })
    await daemon.until(() => askedSince(before).length === 2)
    await daemon.idle()
    expect(askedSince(before).map((text) => [edited, next, last].filter((words) => text.includes(words)))).toEqual([[edited, next], [last]])
  }, 180_000)
})

describe.each(KIND_NAMES)('%s: a deletion', (name) => {
  test('cancels the message before its turn begins, and is told to the next turn later', async ({ skip }) => {
    const kind = daemon.kind(name)
    if (!kind.remove) return skip(NO_DELETIONS)
    const { first, second, third, before } = await busy(kind)
    await daemon.act(kind.remove(second, change(kind)))
    await daemon.until(() => daemon.waiting(1))
    const { number } = await daemon.newest()
    await daemon.act(kind.remove(first, change(kind)))
    await daemon.handled(number)
    release()
    await daemon.until(() => askedSince(before).some((text) => text.includes(third.text)))
    await daemon.idle()
    const asked = askedSince(before)
    expect(asked.filter((text) => text.includes(second.text))).toEqual([])
    expect(asked.filter((text) => text.includes('deleted an earlier message') && text.includes(first.text))).toHaveLength(1)
  }, 180_000)
})

describe.each(KIND_NAMES)('%s: a webhook in the wrong order', (name) => {
  test('an edit that comes before its message replaces it', async ({ skip }) => {
    const kind = daemon.kind(name)
    if (!kind.edit) return skip(NO_EDITS)
    if (!kind.request || kind.isPulled) return skip('The platform keeps the order.')
    const before = daemon.model.requests.length
    const written = await daemon.write(kind, unique('old words'), { isHeld: true })
    const edited = unique('new words')
    await daemon.act(kind.edit(written, { ...change(kind), text: edited }))
    await sleep(200)
    await daemon.deliver(kind, written)
    await daemon.until(() => askedSince(before).length > 0)
    await daemon.idle()
    expect(askedSince(before)).toHaveLength(1)
    expect(askedSince(before)[0]).toContain(edited)
  }, 180_000)
})

test('a change of a message that never came starts nothing', async () => {
  const before = daemon.model.requests.length
  for (const kind of daemon.kinds.filter(({ request, isPulled }) => request && !isPulled)) {
    const written = await daemon.write(kind, unique('never sent'), { isHeld: true })
    await daemon.act(kind.edit?.(written, { ...change(kind), text: unique('unknown') }))
    await daemon.act(kind.remove?.(written, change(kind)))
  }
  await sleep(2000)
  expect(askedSince(before)).toEqual([])
}, 60_000)
