/**
 * Shared rooms: several people, messages in pieces, words to a running turn, words that the bot overhears or judges, a person whose limit is
 * used up elsewhere, and `/stop`.
 */
import { type FakeProvider, startFakeProvider } from '@sluice/testkit/fake-provider'
import { type ModelRequest, type ModelStep, startModelServer } from '@sluice/testkit/model-server'
import { markOf, marksIn } from '../../marks.ts'
import { pause } from '../../request.ts'
import type { Play, PlayOptions } from '../play.ts'
import { readWords } from '../read-words.ts'
import { settings } from '../settings.ts'
import { judgeRooms } from './judge-rooms.ts'
import { type RoomPlace, startPlaces } from './places.ts'
import type { RoomWord, RoomWordKind } from './room-word.ts'

const LIFE_MS_MAX = 2500
const MODEL_MS_MAX = 60
const SLOW_MS_MAX = 1500
const EFFECT_MS_MAX = 400
const ACTS = { min: 5, max: 11 }
const GAP_MS_MAX = 150
const PIECE_GAP_MS_MAX = 200
const SHARE = {
  held: 0.07,
  remark: 0.08,
  hear: 0.3,
  slow: 0.1,
  stopAtOnce: 0.5,
  operatorStop: 0.02,
  piece: 0.4,
  tool: 0.35,
  judgedTool: 0.7,
}
const POLL_MS = 25
/** How long a person waits, at most, until the model has a message. */
const ASKED_MS_MAX = 1500
/** What the model is told in a turn that may end without an answer, and its answer. */
const [MAY_BE_SILENT, SILENCE] = ['answer only (silent)', '(silent)']

export async function startRooms({ random, aims }: PlayOptions): Promise<Play> {
  const words = new Map<string, RoomWord>()
  /** When each word first reached the model, in milliseconds since 1970. */
  const asked = new Map<string, number>()
  /** What other people wrote in a room while the limited person had a message there and this direct turn ran. */
  const beside = new Map<string, { readonly life: number; readonly words: RoomWord[] }>()
  /** The direct messages whose writer has more to write. */
  const open = new Set<string>()
  let [life, hasRules] = [0, false]
  /** The rooms of the words of each request to the model that has words of several. */
  const leaks: string[] = []
  let [number, requests] = [0, 0]
  const { rooms, direct, rules, fakes, config } = await startPlaces()
  const limitedRooms = rooms.filter(({ limited }) => limited !== undefined)
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

  /** Whether a `/stop` that was written later may end a message. */
  const mayBeStopped = (word: RoomWord): boolean =>
    [...words.values()].some(
      ({ kind, mark, room, person }) =>
        kind === 'stop' && mark > word.mark && room === word.room && (person === word.person || person === room.operator),
    )
  const isDue = (word: RoomWord): boolean => !asked.has(word.mark) && !mayBeStopped(word)

  async function reached({ mark }: RoomWord, signal: AbortSignal): Promise<void> {
    for (let left = ASKED_MS_MAX; left > 0 && !asked.has(mark) && !signal.aborted; left -= POLL_MS) await pause(POLL_MS, signal)
  }

  async function answer({ lastUserText, body, ended }: ModelRequest): Promise<ModelStep> {
    const { messages } = body as { readonly messages: readonly { readonly role: string }[] }
    const all = marksIn(JSON.stringify(messages))
    const heard = new Set(all.flatMap((mark) => words.get(mark)?.room.chat ?? []))
    requests += 1
    if (heard.size > 1) leaks.push(`${[...heard].join(' and ')}: ${all.join(' ')}`)
    const nowMs = Date.now()
    for (const mark of all) if (!asked.has(mark)) asked.set(mark, nowMs)
    aims.reach('asked')
    const own = /(?:do|slow|direct|remark) (chaos-\d{6})/.exec(lastUserText)?.[1] ?? ''
    const maySilent = JSON.stringify(body).includes(MAY_BE_SILENT)
    const isSlow = maySilent || words.get(own)?.kind === 'slow'
    // Everybody else is answered while the direct turn runs. After a crash, the messages that it cut off run one at a time.
    const over = new AbortController()
    void ended.then(() => over.abort())
    const isHeld = (mark: string): boolean => {
      const others = beside.get(mark)
      return others?.life === life && (open.has(mark) || others.words.some(isDue))
    }
    while (!over.signal.aborted && marksIn(lastUserText).some(isHeld)) await pause(POLL_MS, over.signal)
    await pause(isSlow ? random.within(SLOW_MS_MAX / 2, SLOW_MS_MAX) : random.within(0, MODEL_MS_MAX), AbortSignal.timeout(60_000))
    aims.reach('answered')
    if (messages.at(-1)?.role !== 'tool' && random.chance(maySilent ? SHARE.judgedTool : SHARE.tool))
      return { toolCalls: [{ name: 'http_request', input: { url: `${effects.url}/${own}`, method: 'POST', body: own } }] }
    // Whatever a turn reads that may be silent, it is silent.
    return { text: maySilent ? SILENCE : `to ${own}` }
  }

  function say(room: RoomPlace, person: string, kind: RoomWordKind): RoomWord {
    const mark = markOf(++number)
    const text = kind === 'stop' ? '/stop' : `${kind} ${mark}`
    const word = { kind, mark, room, person, id: room.say(person, text, kind !== 'hear' && kind !== 'remark') }
    words.set(mark, word)
    aims.reach(kind === 'do' ? 'written' : kind)
    return word
  }

  /** The limited person writes in a room while a direct turn of the same person runs, and other people write there too. */
  async function writeHeld(room: RoomPlace, signal: AbortSignal): Promise<void> {
    const { limited = '', people, operator } = room
    const long = say(direct, limited, 'direct')
    open.add(long.mark)
    const others: RoomWord[] = []
    beside.set(long.mark, { life, words: others })
    try {
      await reached(long, signal)
      say(room, limited, 'do')
      for (const person of [random.pick(people), operator]) {
        await pause(random.within(0, PIECE_GAP_MS_MAX), signal)
        others.push(say(room, person, 'do'))
      }
      if (random.chance(SHARE.piece)) say(room, limited, 'do')
    } finally {
      open.delete(long.mark)
    }
  }

  /** A person writes to the bot while the agent judges an earlier remark of that person. */
  async function writeRemark(signal: AbortSignal): Promise<void> {
    const room = random.pick(rooms.filter(({ judges }) => judges))
    const person = random.pick(room.people)
    await reached(say(room, person, 'remark'), signal)
    say(room, person, 'do')
  }

  /** A person stops a message: its turn, or, before that has begun, the message itself. Then the person may write another one at once. */
  async function writeStopped(room: RoomPlace, signal: AbortSignal): Promise<void> {
    say(room, room.stopper, 'slow')
    const isAtOnce = random.chance(SHARE.stopAtOnce)
    await pause(random.within(0, isAtOnce ? PIECE_GAP_MS_MAX : SLOW_MS_MAX), signal)
    say(room, room.stopper, 'stop')
    if (isAtOnce && random.chance(SHARE.stopAtOnce)) say(room, room.stopper, 'slow')
  }

  /** Sets the rules of the rooms. Resolves to false if the daemon ended before. */
  async function setRules(url: string, signal: AbortSignal): Promise<boolean> {
    for (const [id, rule] of rules) {
      const request = { method: 'PUT', body: JSON.stringify(rule), headers: { 'content-type': 'application/json' }, signal }
      const response = await fetch(`${url}/api/rooms/${encodeURIComponent(id)}`, request).catch(() => undefined)
      if (!response) return false
      if (!response.ok) throw new Error(`The rule of ${id} was refused: ${response.status} ${await response.text()}`)
    }
    return true
  }

  async function act(signal: AbortSignal): Promise<void> {
    if (random.chance(SHARE.held)) return writeHeld(random.pick(limitedRooms), signal)
    if (random.chance(SHARE.remark)) return writeRemark(signal)
    const room = random.pick(rooms.filter((one) => one.isReady()))
    const person = random.pick(room.people)
    if (random.chance(SHARE.operatorStop)) {
      say(room, room.operator, 'stop')
      return
    }
    if (room.overhears && !room.judges && random.chance(SHARE.hear)) {
      say(room, person, 'hear')
      return
    }
    if (random.chance(SHARE.slow)) return writeStopped(room, signal)
    say(room, person, 'do')
    while (random.chance(SHARE.piece) && !signal.aborted) {
      await pause(random.within(0, PIECE_GAP_MS_MAX), signal)
      aims.reach('window')
      say(room, person, 'do')
    }
  }

  return {
    config: `${settings({ modelUrl: model.url })}\n${config(random.chance(0.5) ? 'turns_in_flight' : 'turns_running')}`,
    moments: ['direct', 'remark', 'asked', 'answered', 'sending', 'effect', 'written', 'hear', 'window', 'stop'],
    lifeMsMax: LIFE_MS_MAX,
    async act({ url, signal, isLast }) {
      life += 1
      if (!hasRules) hasRules = await setRules(url, signal)
      if (isLast || !hasRules) return
      const acts: Promise<void>[] = []
      for (let left = random.within(ACTS.min, ACTS.max); left > 0 && !signal.aborted; left--) {
        acts.push(act(signal))
        await pause(random.within(0, GAP_MS_MAX), signal)
      }
      await Promise.all(acts)
    },
    left() {
      const unasked = [...words.values()].find((word) => (word.kind === 'do' || word.kind === 'direct') && isDue(word))
      return unasked && `${unasked.mark} in ${unasked.room.chat} did not reach the model`
    },
    // Without kills, nobody may wait for the limited person. The last words in each room bring all that was overheard before.
    async lastWords(signal) {
      for (const room of limitedRooms) await writeHeld(room, signal)
      for (const room of rooms) {
        while (!room.isReady() && !signal.aborted) await pause(POLL_MS, signal)
        say(room, room.people[0], 'do')
      }
    },
    async judge(place) {
      const view = await readWords(place)
      const tallies = judgeRooms({ words: [...words.values()], rooms: [...rooms, direct], asked, requests, leaks }, view)
      const problems = view.problems.map((detail) => ({ rule: 'file', detail }))
      return { rows: tallies.map(({ row }) => row), violations: [...problems, ...tallies.flatMap(({ violations }) => violations)] }
    },
    async close() {
      await Promise.all([model, effects, ...fakes].map((server) => server.close()))
    },
  }
}
