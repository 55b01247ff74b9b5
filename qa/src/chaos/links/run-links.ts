/** Cuts the network between a daemon and every platform while people write, restores it, and checks what became of the messages. */
import type { Cut } from '@sluice/testkit/link'
import { followEvents, type SeenEvent } from '../../daemons/follow-events.ts'
import { checkHistory } from '../check-history.ts'
import type { Violation } from '../history.ts'
import type { Kind } from '../kind.ts'
import { OrderedTraffic } from '../ordered-traffic.ts'
import { quiet } from '../quiet.ts'
import { pause } from '../request.ts'
import { listening, type RunOptions, setStage } from '../stage.ts'
import { checkLinks, type LinkRow, type SeenGap } from './check-links.ts'

export interface LinksOptions extends RunOptions {
  readonly cut: Cut
  readonly cutMs: number
  /** Messages of each channel during the cut. */
  readonly messages: number
  /** The names of the channels. Default: all with a crash kind. */
  readonly only?: readonly string[]
}

export interface TimedRow extends LinkRow {
  /** The time from the end of the cut until the model was asked about the last message of the cut. */
  readonly caughtUpSecs: number | undefined
}

export interface LinksResult {
  readonly rows: readonly TimedRow[]
  readonly violations: readonly Violation[]
}

const POLL_MS = 100
const READY_MS_MAX = 30_000
/** Longer than a connection may be silent, and than the longest delay before the daemon tries again. */
const CATCH_UP_MS_MAX = 300_000
/** A reply that the cut met is tried again after two minutes at the latest. */
const SETTLE_MS_MAX = 180_000

/** The daemon reached over the link of a kind. */
const urlOver = async ({ link }: Kind, url: string): Promise<string> =>
  link ? `http://127.0.0.1:${await link.portTo(Number(new URL(url).port))}` : url

export async function runLinks({ cut, cutMs, messages, only, ...options }: LinksOptions): Promise<LinksResult> {
  const held = new Map<string, PromiseWithResolvers<void>>()
  const answer = (mark: string): Promise<void> => held.get(mark)?.promise ?? Promise.resolve()
  const stage = await setStage({ ...options, answer, attemptsMax: 20, turnsAtOnce: 64, kinds: { isLinked: true, ...(only && { only }) } })
  const { world, signal } = stage
  const { recorder } = world
  const kinds = world.kinds.filter(({ link }) => link)
  const traffic = new OrderedTraffic(recorder, signal)
  const violations: Violation[] = []
  const expect = (holds: boolean, detail: string): void => void (holds || violations.push({ rule: 'link', detail }))
  const gaps: SeenGap[] = []
  const until = async (isTrue: () => boolean, msMax: number): Promise<boolean> => {
    for (const endMs = performance.now() + msMax; performance.now() < endMs && !signal.aborted; await pause(POLL_MS, signal)) {
      if (isTrue()) return true
    }
    return isTrue()
  }

  try {
    for (const { name, link } of kinds)
      expect((link?.servers ?? 0) > 0, `the fake of ${name} does not listen through listenOnLoopback, so its network cannot be cut`)
    const life = stage.begin()
    const direct = await listening(life)
    const events = followEvents(`${direct}/api/events`)
    await events.open
    const urls = new Map(await Promise.all(kinds.map(async (kind) => [kind.name, await urlOver(kind, direct)] as const)))
    const write = (kind: Kind, phase: 'before' | 'at' | 'during' | 'after', number: number) =>
      traffic.write(kind, { phase, number, url: () => urls.get(kind.name) })

    /** A fault before the cut does not come from it, such as a channel that an old bundle lacks. */
    const mustCome = async (what: string, isThere: (kind: Kind) => boolean): Promise<void> => {
      await until(() => kinds.every(isThere), READY_MS_MAX)
      const missing = kinds.filter((kind) => !isThere(kind)).map(({ name }) => name)
      if (missing.length > 0) throw new Error(`Before the cut, ${what} of ${missing.join(', ')}. Is the bundle up to date?`)
    }
    const isAsked = ({ name }: Kind): boolean =>
      traffic.written.every(({ message }) => message.kind !== name || recorder.isAsked(message.mark))
    await mustCome('no connection came', ({ isReady }) => isReady?.() !== false)
    for (const kind of kinds) write(kind, 'before', 0)
    await mustCome('the first message did not arrive', isAsked)
    await quiet(direct, READY_MS_MAX, signal)
    for (const kind of kinds) expect((kind.link?.opened ?? 0) > 0, `the daemon did not connect to ${kind.name} over its link`)
    // The turn of this message runs while the network is cut, so that the first attempt to reply fails.
    for (const kind of kinds) held.set(write(kind, 'at', 0).mark, Promise.withResolvers())
    await mustCome('the second message did not arrive', isAsked)

    const cutAtMs = performance.now()
    await Promise.all(kinds.map(({ link }) => link?.cut(cut)))
    const requests = new Map(kinds.map(({ name, provider }) => [name, provider?.requests.length ?? 0]))
    for (const { resolve } of held.values()) resolve()
    for (let number = 1; number <= messages; number++) {
      await pause(cutAtMs + ((number - 0.5) * cutMs) / messages - performance.now(), signal)
      for (const kind of kinds) write(kind, 'during', number)
    }
    await pause(cutAtMs + cutMs - performance.now(), signal)
    for (const { name, provider } of kinds)
      expect(provider?.requests.length === requests.get(name), `the daemon reached the platform of ${name} although its network was cut`)
    const restoredAtMs = performance.now()
    await Promise.all(kinds.map(({ link }) => link?.restore()))
    for (const kind of kinds) write(kind, 'after', messages + 1)

    const caughtUp = new Map<string, number>()
    const isOver = (): boolean => {
      gaps.splice(0, gaps.length, ...events.events.flatMap(gapIn))
      for (const { name } of kinds) {
        const isCaughtUp = traffic.written.every(
          ({ message, phase }) => message.kind !== name || phase !== 'during' || recorder.isAsked(message.mark),
        )
        if (isCaughtUp && !caughtUp.has(name)) caughtUp.set(name, Math.round((performance.now() - restoredAtMs) / 100) / 10)
      }
      const withGap = new Set(gaps.map(({ channel }) => channel))
      return traffic.written.every(
        ({ message, phase }) => recorder.isAsked(message.mark) || (phase === 'during' && withGap.has(message.kind)),
      )
    }
    await until(isOver, CATCH_UP_MS_MAX)
    await quiet(direct, SETTLE_MS_MAX, signal)
    isOver()
    events.close()
    await life.end('SIGTERM')
    signal.throwIfAborted()

    const { history, store } = await stage.outcome()
    const checked = checkLinks({ history, store, written: traffic.written, gaps })
    const rows = checked.rows.map((row) => ({ ...row, caughtUpSecs: caughtUp.get(row.channel) }))
    return { rows, violations: [...violations, ...checked.violations, ...checkHistory(history, store).filter(isNoNetworkFault)] }
  } finally {
    await stage.close()
  }
}

/** The checks of the crash run know the faults of platforms only. A fault of the network may leave a reply ambiguous. */
const isNoNetworkFault = ({ rule }: Violation): boolean => rule !== 'ambiguous'

function gapIn(event: SeenEvent): SeenGap[] {
  if (event.type !== 'channel_gap') return []
  const since = typeof event.since === 'string' ? Date.parse(event.since) : undefined
  return [{ channel: String(event.channel), sinceMs: since, atMs: Date.parse(String(event.timestamp)), why: String(event.why) }]
}
