import { AppError, type Attachment, namedAttachments } from '@sluice/sdk'
import { memoryWorkspace } from '@sluice/testkit/memory-workspace'
import { describe, expect, test } from 'vitest'
import {
  advanceUntil,
  bench,
  bodyWebhook,
  clock,
  type DeliveryBenchOptions,
  message,
  open,
  running,
  settle,
  setUpDeliveries,
} from '../testing/delivery-bench.ts'

setUpDeliveries()

const MINUTE_MS = 60_000
const voice: Attachment = { kind: 'audio', name: 'voice.ogg', mime: 'audio/ogg', source: { id: 'f1' } }
const image: Attachment = { kind: 'image', name: 'cat.png', mime: 'image/png', source: { url: 'https://x.test/cat?t=1' }, lastingId: 'cat' }
const asking = message('m1', { attachments: [voice], quoted: { text: 'look', attachments: [image] } })

/** Counts what is fetched and transcribed; each transcription gives other words, and fails while `fails` returns true. */
function media(fails: () => boolean = () => false) {
  const fetched: string[] = []
  let transcribed = 0
  const options = {
    channel: {
      webhook: bodyWebhook(),
      async fetchMedia({ name }) {
        fetched.push(name)
        return { bytes: new TextEncoder().encode(name) }
      },
    },
    async transcribe() {
      transcribed++
      if (fails()) throw new AppError('invalid_request', 'no audio')
      return `try ${transcribed}`
    },
  } satisfies DeliveryBenchOptions
  return { options, fetched, transcribed: () => transcribed }
}

const away = () => {
  throw new AppError('upstream', 'the model is overloaded', { isPassing: true })
}

describe('the files of a message whose model is away', () => {
  test('are fetched and transcribed once, also after a restart and a replay', async () => {
    const { options, fetched, transcribed } = media()
    const store = open()
    const first = await bench({ ...options, store, config: { max_age_hours: 1 }, turn: away })
    await first.receive(asking)
    await advanceUntil(() => first.turns.length > 3)
    await running.pop()?.stop(0)
    const second = await bench({ ...options, store, config: { max_age_hours: 1 }, turn: away })
    await clock.advance(60 * MINUTE_MS)
    await advanceUntil(() => second.deliveries.load().messages === 0)
    const [dead] = await store.inbox.list({ limit: 1, state: 'dead' })
    await running.pop()?.stop(0)
    expect(await store.inbox.replay(dead?.number ?? 0)).toBe(true)
    const third = await bench({ ...options, store })
    await settle()
    const texts = new Set([first, second, third].flatMap(({ turns }) => turns.map(({ text }) => text)))
    expect([...texts]).toEqual([expect.stringContaining('[Voice] try 1')])
    expect([...texts][0]).toContain('[Image: cat.png] attachments/')
    expect(fetched).toEqual(['voice.ogg', 'cat.png'])
    expect(transcribed()).toBe(1)
  })

  test('are fetched again for a replay where the saved one was deleted meanwhile, and never transcribed again', async () => {
    const { options, fetched, transcribed } = media()
    const store = open()
    const workspace = memoryWorkspace()
    const first = await bench({ ...options, store, workspace, config: { max_age_hours: 1 }, turn: away })
    await first.receive(asking)
    await clock.advance(60 * MINUTE_MS)
    await advanceUntil(() => first.deliveries.load().messages === 0)
    await running.pop()?.stop(0)
    const [path = ''] = namedAttachments(first.turns[0]?.text ?? '')
    await workspace.remove(path)
    const [dead] = await store.inbox.list({ limit: 1, state: 'dead' })
    expect(await store.inbox.replay(dead?.number ?? 0)).toBe(true)
    const second = await bench({ ...options, store, workspace })
    await settle()
    expect(second.turns.map(({ text }) => text)).toEqual([first.turns[0]?.text])
    expect(await workspace.read(path, { bytesMax: 100 })).toHaveLength('cat.png'.length)
    expect(fetched).toEqual(['voice.ogg', 'cat.png', 'cat.png'])
    expect(transcribed()).toBe(1)
  })

  test('are transcribed again at a slower pace after a failure, and never after a success', async () => {
    let isBroken = true
    const { options, transcribed } = media(() => isBroken)
    const made = await bench({ ...options, turn: away })
    await made.receive(message('m1', { attachments: [voice] }))
    await settle()
    const wait = async (minutes: number) => {
      for (let minute = 0; minute < minutes; minute++) {
        await clock.advance(MINUTE_MS)
        await settle()
      }
    }
    await wait(60)
    const failed = transcribed()
    expect(failed).toBeGreaterThan(3)
    expect(failed).toBeLessThan(8)
    expect(made.turns.length).toBeGreaterThan(2 * failed)
    isBroken = false
    await clock.advance(120 * MINUTE_MS)
    await wait(30)
    expect(transcribed()).toBe(failed + 1)
    expect(made.turns.at(-1)?.text).toContain(`[Voice] try ${failed + 1}`)
  })
})
