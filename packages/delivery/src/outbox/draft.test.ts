import { AppError, type Channel, type Outbound, type StartedMessage } from '@sluice/sdk'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { describe, expect, test } from 'vitest'
import { openDraft } from './draft.ts'
import { loadReplyParts } from './reply-parts.ts'

const STARTED: StartedMessage = {
  number: 7,
  channel: 'x',
  account: 'bot',
  session: 's',
  message: { id: 'm', account: 'bot', sender: 'ada', to: { to: 'room' }, text: 'hi' },
  receivedAtMs: 0,
  sinceMs: 0,
  turnId: 'turn-1',
  attempts: 1,
  checkpoint: [],
  draft: null,
}

function bench(changes: Partial<Channel> = {}, started = STARTED) {
  const clock: TestClock = testClock()
  const sent: Outbound[] = []
  const shown: { id: string; text: string }[] = []
  const kept: unknown[] = []
  const held = { may: true }
  const channel: Channel = {
    name: 'x',
    allow: ['*'],
    limits: { text: 20, unit: 'utf16' },
    draftEveryMs: 1000,
    async send(_, message) {
      sent.push(message)
      return { id: 'p1' }
    },
    async update(_, { id }, { text }) {
      shown.push({ id, text })
    },
    ...changes,
  }
  const open = async () =>
    openDraft({
      partsOf: await loadReplyParts(channel),
      owned: { inbox: { draft: async (...args) => void kept.push(args) }, lease: { mayAct: () => held.may } },
      clock,
      log: testHost({ clock }).log,
      channel,
      started,
      signal: new AbortController().signal,
    })
  return { clock, sent, shown, kept, held, open }
}

const TO = STARTED.message.to
const { signal } = new AbortController()

const settle = async (): Promise<void> => {
  for (let turns = 0; turns < 20; turns++) await Promise.resolve()
}

describe('a draft', () => {
  test('stores the id of its message before it shows text', async () => {
    const { open, sent, kept } = bench()
    expect((await open())?.id).toBe('p1')
    expect(sent).toEqual([{ text: '…', clientId: 'draft-turn-1' }])
    expect(kept).toEqual([[7, 'p1']])
  })

  test('continues the message that a crash left behind, where the platform knows the key of the repeat', async () => {
    const messages = new Map<string, string>()
    const send: Channel['send'] = async (_, { clientId, text }) => {
      messages.set(clientId, text)
      return { id: `message of ${clientId}` }
    }
    const crashed = bench({ send })
    crashed.kept.push = () => {
      throw new Error('crash')
    }
    expect(await crashed.open()).toBeUndefined()
    const { open, kept } = bench({ send }, { ...STARTED, attempts: 2 })
    expect((await open())?.id).toBe('message of draft-turn-1')
    expect([messages.size, kept]).toEqual([1, [[7, 'message of draft-turn-1']]])
  })

  test('continues the message of an interrupted attempt', async () => {
    const { open, sent } = bench({}, { ...STARTED, draft: 'p0' })
    expect((await open())?.id).toBe('p0')
    expect(sent).toEqual([])
  })

  test('of an interrupted attempt is replaced, and not edited meanwhile, where the channel shows none any more', async () => {
    const { open, shown } = bench({ draftEveryMs: undefined } as object, { ...STARTED, draft: 'p0' })
    const draft = await open()
    draft?.onPart({ type: 'text', delta: 'One' })
    await settle()
    expect([draft?.id, shown]).toEqual(['p0', []])
  })

  test('is edited with all text so far, at most as often as the channel allows', async () => {
    const { open, shown, clock } = bench()
    const draft = await open()
    for (const delta of ['One', ' two', ' three']) {
      draft?.onPart({ type: 'text', delta })
      await settle()
    }
    expect(shown).toEqual([{ id: 'p1', text: 'One…' }])
    await clock.advance(1000)
    await settle()
    expect(shown.at(-1)).toEqual({ id: 'p1', text: 'One two three…' })
    await clock.advance(10_000)
    expect(shown).toHaveLength(2)
  })

  test('stays within the limit of one message', async () => {
    const { open, shown } = bench()
    ;(await open())?.onPart({ type: 'text', delta: 'more than twenty characters of text' })
    await settle()
    expect(shown[0]?.text.length).toBeLessThanOrEqual(20)
  })

  test('drops the text before a tool call', async () => {
    const { open, shown, clock } = bench()
    const draft = await open()
    draft?.onPart({ type: 'text', delta: 'Let me look.' })
    await settle()
    draft?.onPart({ type: 'tool_call', id: 'c', name: 'x', input: {} })
    draft?.onPart({ type: 'text', delta: 'It is 7.' })
    await clock.advance(1000)
    await settle()
    expect(shown.at(-1)?.text).toBe('It is 7.…')
  })

  test('is neither sent nor edited once the lease is lost', async () => {
    const { open, held, sent, shown, clock } = bench()
    const draft = await open()
    draft?.onPart({ type: 'text', delta: 'One' })
    await settle()
    held.may = false
    draft?.onPart({ type: 'text', delta: ' two' })
    await clock.advance(10_000)
    await settle()
    expect(shown).toEqual([{ id: 'p1', text: 'One…' }])
    expect(await open()).toBeUndefined()
    expect(sent).toHaveLength(1)
  })

  test('shows no reasoning of the model', async () => {
    const { open, shown } = bench()
    ;(await open())?.onPart({ type: 'thinking', delta: 'hm' })
    await settle()
    expect(shown).toEqual([])
  })

  test('continues after Retry-After', async () => {
    let refuse = true
    const shown: string[] = []
    const { open, clock } = bench({
      async update(_, __, { text }) {
        if (refuse) throw new AppError('rate_limited', 'slow down', { retryAfterSecs: 9 })
        shown.push(text)
      },
    })
    const draft = await open()
    draft?.onPart({ type: 'text', delta: 'One' })
    await settle()
    refuse = false
    draft?.onPart({ type: 'text', delta: ' two' })
    await clock.advance(8000)
    await settle()
    expect(shown).toEqual([])
    await clock.advance(1000)
    await settle()
    expect(shown).toEqual(['One two…'])
  })

  test('ends when an edit fails, and the turn continues', async () => {
    let tries = 0
    const { open, clock } = bench({
      async update() {
        tries += 1
        throw new AppError('invalid_request', 'message to edit not found')
      },
    })
    const draft = await open()
    draft?.onPart({ type: 'text', delta: 'One' })
    await settle()
    draft?.onPart({ type: 'text', delta: ' two' })
    await clock.advance(5000)
    await settle()
    expect(tries).toBe(1)
  })

  test('stops after the edit under way', async () => {
    const edit = Promise.withResolvers<void>()
    const { open } = bench({ update: () => edit.promise })
    const draft = await open()
    draft?.onPart({ type: 'text', delta: 'One' })
    await settle()
    let isStopped = false
    const stopped = draft?.stop().then(() => (isStopped = true))
    await settle()
    expect(isStopped).toBe(false)
    edit.resolve()
    await stopped
    expect(isStopped).toBe(true)
  })
})

describe('a preview', () => {
  const previews = (answers: (message: Outbound) => Promise<boolean> = async () => true) => {
    const seen: [string, string][] = []
    const preview: Channel['preview'] = (_, message) => {
      seen.push([message.clientId, message.text])
      return answers(message)
    }
    return { seen, ...bench({ preview }) }
  }

  test('takes the place of the message', async () => {
    const { open, seen, sent, shown, kept, clock } = previews()
    const draft = await open()
    draft?.onPart({ type: 'text', delta: 'One' })
    await settle()
    draft?.onPart({ type: 'text', delta: ' two' })
    await clock.advance(1000)
    await settle()
    expect([draft?.id, seen]).toEqual([undefined, ['', 'One', 'One two'].map((text) => ['draft-turn-1', text])])
    expect([sent, shown, kept]).toEqual([[], [], []])
  })

  test('stays within the limit of one message', async () => {
    const { open, seen } = previews()
    ;(await open())?.onPart({ type: 'text', delta: 'exactly twenty chars and more' })
    await settle()
    expect(seen.at(-1)?.[1].length).toBeLessThanOrEqual(20)
  })

  test('is shown again while nothing is added, also without the text before a tool call', async () => {
    const { open, seen, clock } = previews()
    const draft = await open()
    draft?.onPart({ type: 'text', delta: 'Let me look.' })
    await clock.advance(1000)
    const renewed = draft?.renew?.(TO, signal)
    await clock.advance(1000)
    await renewed
    draft?.onPart({ type: 'tool_call', id: 'c', name: 'x', input: {} })
    void draft?.renew?.(TO, signal)
    await clock.advance(1000)
    expect(seen.map(([, text]) => text)).toEqual(['', 'Let me look.', 'Let me look.', ''])
    await draft?.stop()
    await draft?.renew?.(TO, signal)
    expect(seen).toHaveLength(4)
  })

  test('ends after the call under way, so that none arrives after the reply', async () => {
    const call = Promise.withResolvers<boolean>()
    const { open } = previews(({ text }) => (text === '' ? Promise.resolve(true) : call.promise))
    const draft = await open()
    draft?.onPart({ type: 'text', delta: 'One' })
    await settle()
    let isStopped = false
    const stopped = draft?.stop().then(() => (isStopped = true))
    await settle()
    expect(isStopped).toBe(false)
    call.resolve(true)
    await stopped
  })

  test('ends when the platform shows none any more', async () => {
    const { open, seen, clock } = previews(async ({ text }) => text === '')
    const draft = await open()
    draft?.onPart({ type: 'text', delta: 'One' })
    await settle()
    draft?.onPart({ type: 'text', delta: ' two' })
    await clock.advance(5000)
    expect(seen).toHaveLength(2)
  })

  test.each([
    ['shows none any more', async () => false],
    ['fails', () => Promise.reject(new AppError('upstream', 'no'))],
  ])('gives way to the typing indicator when the platform %s', async (_name, answer) => {
    let typed = 0
    const typing = async () => void typed++
    const { open, clock } = bench({ typing, preview: async (_, { text }) => (text === '' ? true : answer()) })
    const draft = await open()
    void draft?.renew?.(TO, signal)
    await clock.advance(1000)
    expect(typed).toBe(0)
    draft?.onPart({ type: 'text', delta: 'One' })
    await clock.advance(1000)
    await draft?.renew?.(TO, signal)
    expect(typed).toBe(1)
    await draft?.stop()
    await draft?.renew?.(TO, signal)
    expect(typed).toBe(1)
  })

  test('is a message where the conversation has none, and where an earlier attempt has sent one', async () => {
    const { open, sent } = previews(async () => false)
    const draft = await open()
    expect([draft?.id, draft?.renew, sent.length]).toEqual(['p1', undefined, 1])
    const again = bench({ preview: async () => true }, { ...STARTED, draft: 'p0' })
    expect((await again.open())?.id).toBe('p0')
  })
})

describe('a turn has no draft', () => {
  test.each([
    ['where the channel is not configured for drafts', { draftEveryMs: undefined } as object],
    ['where the channel cannot edit', { update: undefined } as object],
    ['where the preview failed', { preview: () => Promise.reject(new AppError('forbidden', 'no')) } as object],
    ['where the draft could not be sent', { send: () => Promise.reject(new AppError('upstream', 'no')) } as object],
  ])('%s', async (_, changes) => {
    const { open, kept } = bench(changes)
    expect(await open()).toBeUndefined()
    expect(kept).toEqual([])
  })
})
