/** Albums, edits, quotes and forwards on six platforms: each album is one turn, each edit has effect once, and nothing is lost. */
import { type ModelRequest, startModelServer } from '@sluice/testkit/model-server'
import { sectionToml } from '../../../daemons/section-toml.ts'
import { markOf } from '../../marks.ts'
import { pause, post } from '../../request.ts'
import type { ActedLife, Play, PlayOptions } from '../play.ts'
import { readWords } from '../read-words.ts'
import { settings } from '../settings.ts'
import type { Item, ItemKind } from './item.ts'
import { judgeArrivals } from './judge-arrivals.ts'
import { type Delivered, type Platform, picturesOf } from './platform.ts'
import { discord, signal, slack, telegram } from './polled-platforms.ts'
import { chatapp, line } from './pushed-platforms.ts'

/** Messages of one person join, as by default in groups, but sooner. */
const PACE = { batch_ms: 300, steering: 'steer' }
const LIFE_MS_MAX = 2500
const MODEL_MS_MAX = 60
const ACTS = { min: 4, max: 8 }
const GAP_MS_MAX = 120
const EDIT_MS_MAX = 700
/** Pictures of an album that a platform brings one by one come later than other messages join. */
const PICTURE_GAP_MS_MAX = 600
/** A burst is a text and albums that one person writes at once. Five albums have more files than a turn takes. */
const SHARE = { edited: 0.35, burst: 0.3, polledBurst: 0.7 }
const BURST_ALBUMS = { min: 1, max: 5 }
const POLL_MS = 30
const PICTURES = { min: 2, max: 3 }
const KINDS: readonly ItemKind[] = ['text', 'album', 'album', 'quote', 'forward']

export async function startArrivals({ random, aims }: PlayOptions): Promise<Play> {
  const items: Item[] = []
  /** The deliveries that were not acknowledged, for each person. */
  const undelivered = new Map<string, { readonly delivered: Delivered; readonly item: Item }[]>()
  const asked = new Set<string>()
  /** The life in which a message of an item was acknowledged first. */
  const ackedIn = new Map<Item, number>()
  let [number, life] = [0, 0]
  /** How many pictures of albums are still to be written. */
  let unwritten = 0
  const platforms = await Promise.all([telegram(), discord(), slack(), signal(), chatapp(), line()])
  const model = await startModelServer({
    apiKey: null,
    async answer({ lastUserText }: ModelRequest) {
      for (const mark of lastUserText.match(/chaos-\d{6}/g) ?? []) asked.add(mark)
      aims.reach('asked')
      await pause(random.within(0, MODEL_MS_MAX), AbortSignal.timeout(60_000))
      aims.reach('answered')
      return { text: 'Noted.' }
    },
  })
  for (const { fake } of platforms)
    fake.fail(
      { fault: 'reset' },
      {
        times: Number.POSITIVE_INFINITY,
        matches({ path, body }) {
          if (body.includes('Noted.')) aims.reach('sending')
          else if (/file|media|content|attachments/i.test(path) || body.includes('getAttachment')) aims.reach('fetching')
          return false
        },
      },
    )

  /** Resolves when a platform writes the next picture of an album, with the time that passed. A kill may be aimed at the time between two. */
  async function gap(): Promise<number> {
    const startedMs = performance.now()
    unwritten += 1
    await pause(random.within(0, PICTURE_GAP_MS_MAX / 2), AbortSignal.timeout(60_000))
    aims.reach('between')
    await pause(random.within(0, PICTURE_GAP_MS_MAX / 2), AbortSignal.timeout(60_000))
    unwritten -= 1
    return performance.now() - startedMs
  }

  function writeBurst(platform: Platform): void {
    const person = random.pick(platform.people)
    write(platform, person, 'text')
    for (let left = random.within(BURST_ALBUMS.min, BURST_ALBUMS.max); left > 0; left--) write(platform, person, 'album')
  }

  function write(platform: Platform, person = random.pick(platform.people), kind = random.pick(KINDS)): void {
    const mark = markOf(++number)
    const text = `do ${mark}`
    const [channel, own] = [platform.name, items.filter((item) => item.channel === platform.name && item.person === person)]
    const quoted = own.findLast(({ kind, edit }) => kind === 'text' && edit === undefined)
    const pictures = picturesOf(mark, channel === 'chatapp' ? 1 : random.within(PICTURES.min, PICTURES.max))
    if (kind === 'album' && platform.album) {
      // The platform asks for the first gap before it has returned the messages of the item.
      const noted = async (): Promise<void> => {
        const ms = await gap()
        noteGap(item, ms)
      }
      const item: Item = add({ kind, pictures, delivered: platform.album(person, text, pictures, noted) })
    } else if (kind === 'forward' && platform.forward) add({ kind, pictures: [], delivered: [platform.forward(person, text)] })
    else if (kind === 'quote' && platform.quote && quoted?.delivered[0])
      add({ kind, pictures: [], delivered: [platform.quote(person, text, quoted.delivered[0], `do ${quoted.mark}`)], quotes: quoted.mark })
    else {
      const item = add({ kind: 'text', pictures: [], delivered: [platform.text(person, text)] })
      if (platform.edit && random.chance(SHARE.edited)) void editLater(platform, item)
    }

    function add(more: Pick<Item, 'kind' | 'pictures' | 'delivered' | 'quotes'>): Item {
      const item: Item = { mark, channel, person, ...more }
      items.push(item)
      for (const delivered of item.delivered) queue(item, delivered)
      aims.reach('written')
      return item
    }
  }

  function noteGap(item: Item, ms: number): void {
    item.gapMs = Math.max(item.gapMs ?? 0, ms)
  }

  function queue(item: Item, delivered: Delivered): void {
    if (!delivered.request) return
    const lane = `${item.channel} ${item.person}`
    undelivered.set(lane, [...(undelivered.get(lane) ?? []), { delivered, item }])
  }

  async function editLater(platform: Platform, item: Item): Promise<void> {
    item.edit = markOf(++number)
    await pause(random.within(0, EDIT_MS_MAX), AbortSignal.timeout(60_000))
    const [message] = item.delivered
    const edit = message && platform.edit?.(item.person, `do ${item.edit}`, message)
    if (edit) queue(item, edit)
    aims.reach('edited')
  }

  /** Each person's messages are delivered one after another, again and again until they are acknowledged. */
  async function deliver({ url, signal }: ActedLife): Promise<void> {
    const current = life
    await Promise.all(
      [...undelivered.values()].map(async (lane) => {
        let ended: { readonly item: Item; readonly atMs: number } | undefined
        for (let next = lane[0]; next && !signal.aborted; next = lane[0]) {
          const { item, delivered } = next
          if (ended?.item === item) noteGap(item, performance.now() - ended.atMs)
          const answered = delivered.request && (await post(url, delivered.request, signal))
          if (answered?.status !== 200) return
          lane.shift()
          ended = { item, atMs: performance.now() }
          if ((ackedIn.get(item) ?? current) !== current) item.isTornApart = true
          ackedIn.set(item, current)
          aims.reach('posted')
          if (item.pictures.length > 1) await pause(random.within(0, PICTURE_GAP_MS_MAX), signal)
        }
      }),
    )
  }

  return {
    config: `${settings({ modelUrl: model.url })}\n${platforms.map(({ name, section }) => sectionToml(name, { ...section, ...PACE })).join('\n')}`,
    moments: ['asked', 'answered', 'sending', 'fetching', 'posted', 'written', 'edited', 'between', 'between', 'between'],
    downAfter: 'between',
    lifeMsMax: LIFE_MS_MAX,
    async act(acted) {
      life += 1
      const { signal, isLast } = acted
      const writing = isLast ? undefined : writeSome(signal)
      for (; !signal.aborted; await pause(POLL_MS, signal)) await deliver(acted)
      await writing
    },
    left() {
      const waiting = [...undelivered.values()].reduce((sum, lane) => sum + lane.length, 0)
      if (unwritten > 0) return `${unwritten} pictures were not written`
      if (waiting > 0) return `${waiting} messages were not acknowledged`
      const unasked = items.find(({ mark, edit = '' }) => !asked.has(mark) && !asked.has(edit))
      return unasked && `${unasked.mark} on ${unasked.channel} did not reach the model`
    },
    lastWords,
    async judge(place) {
      const words = await readWords(place)
      const waiting = new Set([...undelivered.values()].flatMap((lane) => lane.map(({ item }) => item)))
      const tallies = judgeArrivals(items, waiting, words)
      const problems = words.problems.map((detail) => ({ rule: 'file', detail }))
      return { rows: tallies.map(({ row }) => row), violations: [...problems, ...tallies.flatMap(({ violations }) => violations)] }
    },
    async close() {
      await Promise.all([model.close(), ...platforms.map(({ fake }) => fake.close())])
    },
  }

  async function writeSome(signal: AbortSignal): Promise<void> {
    // Only Telegram is asked for the pictures of an album one by one, so that kills aimed between them need albums there.
    const [polled] = platforms
    if (random.chance(SHARE.polledBurst)) writeBurst(polled)
    for (let left = random.within(ACTS.min, ACTS.max); left > 0 && !signal.aborted; left--) {
      const platform = random.pick(platforms.filter((one) => one.isReady()))
      if (random.chance(SHARE.burst)) writeBurst(platform)
      else write(platform)
      await pause(random.within(0, GAP_MS_MAX), signal)
    }
  }

  /** Each person writes once more, so that a turn can tell of edits. */
  async function lastWords(signal: AbortSignal): Promise<void> {
    for (const platform of platforms) {
      while (!platform.isReady() && !signal.aborted) await pause(POLL_MS, signal)
      for (const person of platform.people) {
        const mark = markOf(++number)
        const item: Item = {
          mark,
          channel: platform.name,
          person,
          kind: 'text',
          pictures: [],
          delivered: [platform.text(person, `do ${mark}`)],
        }
        items.push(item)
        for (const delivered of item.delivered) queue(item, delivered)
      }
    }
  }
}
