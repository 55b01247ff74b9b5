/** Shared rooms: several people, messages in pieces, words to a running turn, words that the bot overhears, and `/stop`. */
import { type FakeProvider, startFakeProvider } from '@sluice/testkit/fake-provider'
import { type ModelRequest, type ModelStep, startModelServer } from '@sluice/testkit/model-server'
import { markIn, markOf, marksIn } from '../../marks.ts'
import { pause } from '../../request.ts'
import type { Play, PlayOptions } from '../play.ts'
import { readWords } from '../read-words.ts'
import { settings } from '../settings.ts'
import { judgeRooms } from './judge-rooms.ts'
import { type RoomPlace, startPlaces } from './places.ts'

/** `do`: to the bot. `hear`: not to the bot. `slow`: to the bot, and its person may stop its turn. `stop`: the command. */
export type RoomWordKind = 'do' | 'hear' | 'slow' | 'stop'

export interface RoomWord {
  readonly kind: RoomWordKind
  /** Commands have none in their text. */
  readonly mark: string
  readonly room: RoomPlace
  readonly person: string
  /** The id of the message in the inbox. */
  readonly id: string
}

const LIFE_MS_MAX = 2500
const MODEL_MS_MAX = 60
const SLOW_MS_MAX = 1500
const EFFECT_MS_MAX = 400
const ACTS = { min: 5, max: 11 }
const GAP_MS_MAX = 150
const PIECE_GAP_MS_MAX = 200
const SHARE = { hear: 0.3, slow: 0.1, piece: 0.4, tool: 0.35 }
const POLL_MS = 50

export async function startRooms({ random, aims }: PlayOptions): Promise<Play> {
  const words = new Map<string, RoomWord>()
  const asked = new Set<string>()
  /** The rooms of the words of each request to the model that has words of several. */
  const leaks: string[] = []
  let [number, requests] = [0, 0]
  const { rooms, fakes, config } = await startPlaces()
  const effects: FakeProvider = await startFakeProvider(async () => {
    aims.reach('effect')
    await pause(random.within(0, EFFECT_MS_MAX), AbortSignal.timeout(60_000))
    return { status: 200, body: { done: true } }
  })
  const model = await startModelServer({ apiKey: null, answer: (request) => answer(request) })
  for (const fake of fakes)
    fake.fail(
      { fault: 'reset' },
      {
        times: Number.POSITIVE_INFINITY,
        matches({ body }) {
          if (/to (?:%20|\+)?chaos/.test(body.toString().replaceAll('+', ' '))) aims.reach('sending')
          return false
        },
      },
    )

  async function answer({ lastUserText, body }: ModelRequest): Promise<ModelStep> {
    const { messages } = body as { readonly messages: readonly { readonly role: string }[] }
    const all = marksIn(JSON.stringify(messages))
    const heard = new Set(all.flatMap((mark) => words.get(mark)?.room.chat ?? []))
    requests += 1
    if (heard.size > 1) leaks.push(`${[...heard].join(' and ')}: ${all.join(' ')}`)
    for (const mark of all) asked.add(mark)
    aims.reach('asked')
    const own = /(?:do|slow) (chaos-\d{6})/.exec(lastUserText)?.[1] ?? ''
    const isSlow = words.get(own)?.kind === 'slow'
    await pause(isSlow ? random.within(SLOW_MS_MAX / 2, SLOW_MS_MAX) : random.within(0, MODEL_MS_MAX), AbortSignal.timeout(60_000))
    aims.reach('answered')
    if (messages.at(-1)?.role !== 'tool' && random.chance(SHARE.tool))
      return { toolCalls: [{ name: 'http_request', input: { url: `${effects.url}/${own}`, method: 'POST', body: own } }] }
    return { text: `to ${own}` }
  }

  function say(room: RoomPlace, person: string, kind: RoomWordKind): void {
    const mark = markOf(++number)
    const text = kind === 'stop' ? '/stop' : `${kind} ${mark}`
    words.set(mark, { kind, mark, room, person, id: room.say(person, text, kind !== 'hear') })
    aims.reach(kind === 'do' ? 'written' : kind)
  }

  async function act(signal: AbortSignal): Promise<void> {
    const room = random.pick(rooms.filter((one) => one.isReady()))
    const person = random.pick(room.people)
    if (room.overhears && random.chance(SHARE.hear)) {
      say(room, person, 'hear')
      return
    }
    if (random.chance(SHARE.slow)) {
      say(room, room.stopper, 'slow')
      await pause(random.within(0, SLOW_MS_MAX), signal)
      say(room, room.stopper, 'stop')
      return
    }
    say(room, person, 'do')
    while (random.chance(SHARE.piece) && !signal.aborted) {
      await pause(random.within(0, PIECE_GAP_MS_MAX), signal)
      aims.reach('window')
      say(room, person, 'do')
    }
  }

  return {
    config: `${settings({ modelUrl: model.url })}\n${config}`,
    moments: ['asked', 'answered', 'sending', 'effect', 'written', 'hear', 'window', 'stop'],
    lifeMsMax: LIFE_MS_MAX,
    async act({ signal, isLast }) {
      if (isLast) return
      const acts: Promise<void>[] = []
      for (let left = random.within(ACTS.min, ACTS.max); left > 0 && !signal.aborted; left--) {
        acts.push(act(signal))
        await pause(random.within(0, GAP_MS_MAX), signal)
      }
      await Promise.all(acts)
    },
    left() {
      const unasked = [...words.values()].find(({ kind, mark }) => kind === 'do' && !asked.has(mark))
      return unasked && `${unasked.mark} in ${unasked.room.chat} did not reach the model`
    },
    // The last words in each room bring all that was overheard before.
    async lastWords(signal) {
      for (const room of rooms) {
        while (!room.isReady() && !signal.aborted) await pause(POLL_MS, signal)
        say(room, room.people[0], 'do')
      }
    },
    async judge(place) {
      const view = await readWords(place)
      const tallies = judgeRooms({ words: [...words.values()], rooms, requests, leaks }, view)
      const problems = view.problems.map((detail) => ({ rule: 'file', detail }))
      return { rows: tallies.map(({ row }) => row), violations: [...problems, ...tallies.flatMap(({ violations }) => violations)] }
    },
    async close() {
      await Promise.all([model, effects, ...fakes].map((server) => server.close()))
    },
  }
}

export const replyMark = (text: string | null): string => (text?.startsWith('to ') ? (markIn(text) ?? '') : '')
