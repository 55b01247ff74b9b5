import { AppError, chatSessionKey, type Inbound, shardOfSession } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { advanceUntil, bench, clock, message, open, settle, setUpDeliveries, states, storeWith, until } from '../testing/delivery-bench.ts'
import { twoOwners } from '../testing/two-owners.ts'
import { EARLY_CHANGES_MAX } from './changes.ts'

setUpDeliveries()

const OTHER = '+15550003333'
const edit = (of: string, text: string, more: Partial<Inbound> = {}): Inbound =>
  message(`edit-${of}-${text}`, { text, changes: { message: of, what: 'edited' }, ...more })
const deletion = (of: string, more: Partial<Inbound> = {}): Inbound =>
  message(`delete-${of}`, { text: '', changes: { message: of, what: 'deleted' }, ...more })

/** A bench in which the first turn runs until it is released. */
async function busyBench() {
  const released = Promise.withResolvers<void>()
  const made = await bench({
    async turn({ text }) {
      if (text === 'text of m1') await released.promise
      return `re: ${text}`
    },
  })
  await made.receive(message('m1'), message('m2'), message('m3'))
  await until(() => made.turns.length === 1)
  return { made, release: released.resolve }
}

const textsOf = ({ turns }: { readonly turns: readonly { readonly text: string }[] }) => turns.map(({ text }) => text)

describe('before the turn begins', () => {
  test('an edit replaces the message, the newest one last, and a deletion cancels it', async () => {
    const { made, release } = await busyBench()
    await made.receive(edit('m2', 'first'), edit('m2', 'second'), deletion('m3'))
    await settle()
    release()
    await until(() => made.sent.length === 2)
    await settle()
    expect(textsOf(made)).toEqual(['text of m1', 'second'])
    expect(await states(made)).toEqual({ inbox: Array(6).fill('done'), outbox: ['sent', 'sent'] })
  })

  test('a deletion without a named sender cancels the message, and a repeat of it changes nothing', async () => {
    const { made, release } = await busyBench()
    for (let repeat = 0; repeat < 2; repeat++) await made.receive(deletion('m2', { sender: '' }))
    await settle()
    release()
    await until(() => made.sent.length === 2)
    expect(textsOf(made)).toEqual(['text of m1', 'text of m3'])
  })

  test('a deletion by another sender cancels the message, unless only its sender deletes it', async () => {
    const { made, release } = await busyBench()
    await made.receive(deletion('m2', { sender: OTHER }))
    await made.receive(deletion('m3', { sender: OTHER, changes: { message: 'm3', what: 'deleted', by: 'sender' } }))
    await settle()
    release()
    await until(() => made.sent.length === 2)
    expect(textsOf(made)).toEqual(['text of m1', 'text of m3'])
  })

  test('of edits that arrive out of order, the newest counts', async () => {
    const { made, release } = await busyBench()
    await made.receive(edit('m2', 'newest', { sentAtMs: 2000 }))
    await settle()
    await made.receive(edit('m2', 'older', { sentAtMs: 1000 }))
    await settle()
    release()
    await until(() => made.sent.length === 3)
    expect(textsOf(made)).toEqual(['text of m1', 'newest', 'text of m3'])
  })

  test('an edit by another sender changes nothing', async () => {
    const { made, release } = await busyBench()
    await made.receive(edit('m2', 'forged', { sender: OTHER }))
    await settle()
    release()
    await until(() => made.sent.length === 3)
    expect(textsOf(made)).toEqual(['text of m1', 'text of m2', 'text of m3'])
  })
})

describe('after the turn began', () => {
  test('the next turn of the sender reads of an edit and a deletion once', async () => {
    const { made, release } = await busyBench()
    await made.receive(edit('m1', 'corrected'))
    release()
    await until(() => made.sent.length === 3)
    expect(textsOf(made)).toEqual([
      'text of m1',
      '(The sender edited an earlier message, which began: "text of m1" It now reads: "corrected")\n\ntext of m2',
      'text of m3',
    ])
    await made.receive(deletion('m1'))
    await settle()
    await made.receive(message('n1', { sender: OTHER }), message('m4'))
    await until(() => made.sent.length === 5)
    expect(textsOf(made).slice(3).sort()).toEqual([
      '(The sender deleted an earlier message, which began: "text of m1")\n\ntext of m4',
      'text of n1',
    ])
  })

  test('an edit that keeps the text is not reported', async () => {
    const made = await bench()
    await made.receive(message('m1'))
    await until(() => made.sent.length === 1)
    await made.receive(edit('m1', 'text of m1'))
    await settle()
    await made.receive(message('m2'))
    await until(() => made.sent.length === 2)
    expect(textsOf(made)).toEqual(['text of m1', 'text of m2'])
  })

  test('an edit of one of several messages in one turn is reported with the text of that one, unless it keeps its text', async () => {
    const made = await bench({ pacing: { batchMs: 300 } })
    const joined = async (turns: number) => {
      await settle()
      await clock.advance(300)
      await until(() => made.sent.length === turns)
    }
    await made.receive(message('m1'), message('m2'), message('m3'))
    await joined(1)
    await made.receive(edit('m2', 'text of m2'), edit('m1', 'text of m1'), edit('m1', 'corrected'))
    await settle()
    await made.receive(message('m4'))
    await joined(2)
    expect(textsOf(made)).toEqual([
      'text of m1\ntext of m2\ntext of m3',
      '(The sender edited an earlier message, which began: "text of m1" It now reads: "corrected")\n\ntext of m4',
    ])
  })
})

test('the next turn reads of a picture that an edit replaced after the turn of its message, and not of one that an edit keeps', async () => {
  const made = await bench()
  const picture = (id: string) => ({ attachments: [{ kind: 'image' as const, name: `${id}.jpg`, source: { id } }] })
  await made.receive(message('m1', { text: '', ...picture('a') }))
  await until(() => made.sent.length === 1)
  await made.receive(edit('m1', '', { sentAtMs: 1, ...picture('a') }))
  await made.receive(edit('m1', '', { id: 'edit-2', ...picture('b') }))
  await settle()
  await made.receive(message('m2'))
  await until(() => made.sent.length === 2)
  const told = 'It now has other files, which you have not seen; ask for them if you need them: ["b.jpg"])'
  expect(textsOf(made).at(-1)?.split(told)).toEqual([expect.stringMatching(/^\(The sender edited/), '\n\ntext of m2'])
})

test('an edit whose file has another address or id, but is the same file, tells of no other file', async () => {
  const made = await bench()
  const file = (source: string) => ({ attachments: [{ kind: 'file' as const, name: 'a.pdf', source: { id: source }, lastingId: '5' }] })
  await made.receive(message('m1', file('signed-first')))
  await until(() => made.sent.length === 1)
  await made.receive(edit('m1', 'text of m1', file('signed-again')))
  await settle()
  await made.receive(message('m2'))
  await until(() => made.sent.length === 2)
  expect(textsOf(made).at(-1)).toBe('text of m2')
})

test('an edit that comes while a turn runs goes to the next turn, also when a failure interrupts that turn after a step', async () => {
  let failures = 1
  const made = await bench({
    pacing: { steering: 'steer' },
    turn: async ({ delivery, text }) => {
      if (failures-- <= 0) return `re: ${text}`
      await made.receive(message('m2'))
      const found = await delivery?.furtherWords?.()
      expect(await found?.take([{ role: 'user', content: [{ type: 'text', text }] }])).toBe(true)
      await made.receive(edit('m1', 'corrected'))
      await settle()
      throw new AppError('unavailable', 'the model is away', { isPassing: true })
    },
  })
  await made.receive(message('m1'))
  await advanceUntil(() => made.sent.some(({ text }) => text.startsWith('re:')))
  await made.receive(message('m3'))
  await until(() => made.turns.length === 3)
  expect(textsOf(made)[2]).toMatch(/^\(The sender edited an earlier message, which began: "text of m1" It now reads: "corrected"\)/)
})

test('an edit is reported once, also when a crash comes right after the end of the turn that read it', async () => {
  let isCrashing = true
  const store = storeWith(open(), ({ keyValue }) => ({
    keyValue(owner) {
      const keys = keyValue(owner)
      const swap: typeof keys.swap = async (key, before, after) => {
        if (isCrashing && after === undefined) throw new Error('crash')
        return keys.swap(key, before, after)
      }
      return { ...keys, swap }
    },
  }))
  const made = await bench({ store })
  await made.receive(message('m1'))
  await until(() => made.sent.length === 1)
  await made.receive(edit('m1', 'corrected'))
  await settle()
  await made.receive(message('m2'))
  await settle()
  isCrashing = false
  await made.receive(message('m3'))
  await advanceUntil(() => made.turns.length === 3)
  expect(textsOf(made).map((text) => text.includes('corrected'))).toEqual([false, true, false])
})

const inRoom = { to: { to: 'room' }, addressed: 'overheard' } as const

test.each([
  ['a deletion for which the platform names no sender', {}, deletion('m1', { sender: '' })],
  ['a change in a room that drops its message', { overhears: false }, edit('m1', 'x', { ...inRoom, overheardOnly: true })],
])('%s is not stored when its message is not known', async (_, options, change) => {
  const made = await bench(options)
  expect(await made.receive(change)).toEqual({ kept: 0, duplicate: 0, denied: 0 })
  expect(await states(made)).toEqual({ inbox: [], outbox: [] })
})

test('a change needs no model, so a command can be edited without effect', async () => {
  const made = await bench()
  await made.receive(message('c', { text: '/status' }))
  await until(() => made.sent.length === 1)
  await made.receive(edit('c', '/stop'))
  await settle()
  expect(made.sent).toHaveLength(1)
  expect(await states(made)).toEqual({ inbox: ['done', 'done'], outbox: ['sent'] })
})

describe('before the message arrives', () => {
  test('an edit waits for its message, and replaces it before its turn', async () => {
    const made = await bench()
    await made.receive(edit('m1', 'newer'))
    await settle()
    expect(await states(made)).toEqual({ inbox: ['pending'], outbox: [] })
    await made.receive(message('m1'))
    await until(() => made.sent.length === 1)
    await settle()
    expect(textsOf(made)).toEqual(['newer'])
    expect(await states(made)).toEqual({ inbox: ['done', 'done'], outbox: ['sent'] })
  })

  test.each([
    ['is not addressed to the bot any more', { addressed: 'overheard', overheardOnly: true }],
    ['does not say how it is addressed', {}],
  ] as const)('an edit that %s waits for its message', async (_, addressed) => {
    const made = await bench()
    await made.receive(edit('m1', 'newer', { to: { to: 'room' }, ...addressed }))
    await settle()
    await made.receive(message('m1', { to: { to: 'room', thread: 't' }, addressed: 'mention' }))
    await until(() => made.sent.length === 1)
    expect(textsOf(made)).toEqual(['newer'])
  })

  test('an edit that another owner of the database has received waits with the owner of its message', async () => {
    const session = chatSessionKey({ channel: 'x', account: 'our-number', conversation: '+15550002222', sender: '+15550002222' })
    const { owner, other } = await twoOwners(shardOfSession(session))
    await other.receive(edit('m1', 'newer'))
    await settle()
    owner.deliveries.wake()
    await settle()
    await owner.receive(message('m1'))
    await until(() => owner.sent.length === 1)
    await settle()
    expect(textsOf(owner)).toEqual(['newer'])
    expect((await states(owner)).inbox).toEqual(['done', 'done'])
  })

  test('an edit of the second picture of an album waits for it', async () => {
    const made = await bench()
    const picture = (id: string) => ({
      group: { id: 'g' },
      attachments: [{ kind: 'image' as const, name: `${id}.jpg`, source: { id } }],
    })
    await made.receive(edit('m2', 'newer', picture('m2')))
    await settle()
    await made.receive(message('m1', picture('m1')), message('m2', picture('m2')))
    await advanceUntil(() => made.sent.length === 1)
    expect(textsOf(made)[0]).toContain('newer')
  })

  test('a deletion waits for its message, so that no turn runs', async () => {
    const made = await bench()
    await made.receive(deletion('m1'))
    await made.receive(message('m1'))
    await settle()
    expect(made.turns).toEqual([])
    expect((await states(made)).inbox).toEqual(['done', 'done'])
  })

  test('a change waits two minutes, and 100 changes wait at most, 20 of them of one person', async () => {
    const made = await bench()
    const pending = async () => (await made.store.inbox.counts()).pending
    const many = (more?: (at: number) => Partial<Inbound>) =>
      Array.from({ length: 130 }, (_, at) => edit(`unknown-${more ? 'of-all' : 'of-one'}-${at}`, 'x', more?.(at)))
    await made.receive(...many())
    await settle()
    expect(await pending()).toBe(20)
    await made.receive(...many((at) => ({ sender: `person ${at}` })))
    await settle()
    expect(await pending()).toBe(EARLY_CHANGES_MAX)
    for (let at = 0; at < 13; at++) {
      await clock.advance(10_000)
      await settle()
    }
    expect(await pending()).toBe(0)
    // The words of messages that never came do not stay.
    expect((await made.store.inbox.get(1))?.message).toBeNull()
  })

  test('a change that waits holds back no change of another message of its conversation', async () => {
    const { made, release } = await busyBench()
    await made.receive(edit('unknown', 'x'), deletion('m2'), edit('m3', 'newer'))
    await settle()
    release()
    await until(() => made.sent.length === 2)
    await settle()
    expect(textsOf(made)).toEqual(['text of m1', 'newer'])
  })

  test('changes of one message that wait are carried out in the order in which they came', async () => {
    const { made, release } = await busyBench()
    await made.receive(edit('m4', 'first'))
    await settle()
    await clock.advance(1000)
    await made.receive(edit('m4', 'second'))
    await settle()
    await clock.advance(1000)
    await made.receive(message('m4'), edit('m4', 'third'))
    await settle()
    for (let at = 0; at < 4; at++) {
      await clock.advance(3000)
      await settle()
    }
    release()
    await until(() => made.sent.length === 4)
    expect(textsOf(made).at(-1)).toBe('third')
  })

  test('an edit of a message of another sender does not wait', async () => {
    const made = await bench()
    await made.receive(message('m1'))
    await until(() => made.sent.length === 1)
    await made.receive(edit('m1', 'forged', { sender: OTHER }))
    await settle()
    expect((await states(made)).inbox).toEqual(['done', 'done'])
  })
})
