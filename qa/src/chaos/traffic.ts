/** People who write, and are asked, and providers that bring it: each message again and again until it is acknowledged, and sometimes once more. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Answer, Gate, Message } from './history.ts'
import type { Kind } from './kind.ts'
import { markOf } from './marks.ts'
import { post } from './post.ts'
import type { Random } from './random.ts'
import type { World } from './world.ts'

export interface Traffic {
  /** Brings what is not acknowledged yet, then about `count` new messages at random moments within `ms`. Ends with `signal`. */
  run(url: string, load: { readonly count: number; readonly ms: number }, signal: AbortSignal): Promise<void>
  /** One new message of each kind, once it is ready. */
  one(url: string, signal: AbortSignal): Promise<void>
  /** An answer of whoever wrote that message, until it is acknowledged. What `signal` ends is brought by the next `run`. */
  answer(question: Message, approve: boolean, url: string, signal: AbortSignal): Promise<void>
  /** Messages that are not acknowledged. */
  waiting(): number
}

const RETRY_MS = 100
const OK = [200, 202]
/** Says "come again". */
const UNAVAILABLE = 503
const SHARE = { tool: 0.25, long: 0.08, impatient: 0.2, repeated: 0.12, batch: 0.5, gate: 0.04 }
const GATES: readonly [Gate, ...Gate[]] = ['approved', 'approved', 'rejected', 'withdrawn']
const LONG_PARTS = 3

/** One sender of one kind: what it writes is brought in order, as far as its provider is patient. */
interface Lane {
  readonly kind: Kind
  readonly sender: string
  /** Requests that were not acknowledged, each with its messages. */
  readonly unacked: Set<readonly Message[]>
}

export interface TrafficOptions {
  readonly random: Random
  /** Whether turns of some messages ask a person, whom `createPeople` has to play. */
  readonly asksPeople: boolean
}

export function createTraffic({ kinds, recorder }: World, { random, asksPeople }: TrafficOptions): Traffic {
  const lanes = kinds.flatMap((kind) => kind.senders.map((sender): Lane => ({ kind, sender, unacked: new Set() })))

  /** Conversations in which the answer to a question that may be withdrawn is under way: it would answer the next question there. */
  const answering = new Set<string>()
  const placeOf = (kind: Kind, sender: string): string => `${kind.name} ${sender}`

  const write = (kind: Kind, sender: string, answers?: Answer): Message => {
    const mayAsk = asksPeople && !answers && kind.isPrivate === true && !answering.has(placeOf(kind, sender))
    const gate = mayAsk && random.chance(SHARE.gate) ? random.pick(GATES) : undefined
    if (gate === 'withdrawn') answering.add(placeOf(kind, sender))
    const draft = {
      mark: markOf(recorder.nextNumber()),
      sender,
      parts: random.chance(SHARE.long) ? LONG_PARTS : 1,
      usesTool: gate === undefined && random.chance(SHARE.tool),
      ...(gate && { gate }),
      ...(answers && { answers }),
    }
    const message = kind.write(draft)
    recorder.add(message)
    if (kind.isPulled) {
      // From here on the mailbox has it.
      recorder.see({ type: 'posted', marks: [message.mark] })
      recorder.see({ type: 'acked', marks: [message.mark] })
    }
    return message
  }
  const writeBatch = ({ kind, sender }: Lane): Message[] => {
    const own = write(kind, sender)
    const size = random.chance(SHARE.batch) ? random.within(1, kind.batchMax) : 1
    return [own, ...Array.from({ length: size - 1 }, () => write(kind, random.pick(kind.senders)))]
  }

  /** True once it is acknowledged. */
  const bring = async ({ kind, unacked }: Lane, messages: readonly Message[], url: string, signal: AbortSignal): Promise<boolean> => {
    const marks = messages.map(({ mark }) => mark)
    unacked.add(messages)
    if (!kind.isPulled) recorder.see({ type: 'posted', marks })
    const { status } = await post(url, kind.request(messages), signal)
    if (status === undefined || status === UNAVAILABLE) return false
    if (!OK.includes(status)) recorder.see({ type: 'refused', marks, status })
    else if (!kind.isPulled) recorder.see({ type: 'acked', marks })
    unacked.delete(messages)
    return true
  }
  const bringUnacked = async (lane: Lane, url: string, signal: AbortSignal): Promise<void> => {
    for (const messages of [...lane.unacked]) {
      while (!signal.aborted && !(await bring(lane, messages, url, signal))) await pause(RETRY_MS, signal)
    }
  }

  return {
    async run(url, { count, ms }, signal) {
      const startMs = performance.now()
      const moments = new Map<Lane, number[]>()
      for (let index = 0; index < count; index++) {
        const [first, ...rest] = lanes
        if (!first) return
        const lane = random.pick([first, ...rest])
        moments.set(lane, [...(moments.get(lane) ?? []), random.within(0, ms)])
      }
      const work = async (lane: Lane): Promise<void> => {
        const underWay: Promise<unknown>[] = []
        await bringUnacked(lane, url, signal)
        for (const moment of (moments.get(lane) ?? []).toSorted((a, b) => a - b)) {
          await pause(moment - (performance.now() - startMs), signal)
          if (signal.aborted) break
          const messages = writeBatch(lane)
          const brought = bring(lane, messages, url, signal).then(async (isAcked) => {
            if (isAcked && random.chance(SHARE.repeated)) await bring(lane, messages, url, signal)
          })
          underWay.push(brought)
          if (!random.chance(SHARE.impatient)) await brought
        }
        await Promise.all(underWay)
      }
      await Promise.all(lanes.map(work))
    },
    async one(url, signal) {
      for (const kind of kinds) {
        const lane = lanes.find((candidate) => candidate.kind === kind)
        while (kind.isReady?.() === false && !signal.aborted) await pause(RETRY_MS, signal)
        if (lane) await bring(lane, [write(kind, lane.sender)], url, signal)
      }
    },
    async answer({ kind: name, sender, mark }, approve, url, signal) {
      const lane = lanes.find((candidate) => candidate.kind.name === name && candidate.sender === sender)
      if (!lane) return
      const messages = [write(lane.kind, sender, { mark, approve })]
      let isAcked = false
      while (!isAcked && !signal.aborted) {
        isAcked = await bring(lane, messages, url, signal)
        if (!isAcked) await pause(RETRY_MS, signal)
      }
      if (isAcked) answering.delete(placeOf(lane.kind, sender))
      if (random.chance(SHARE.repeated) && !signal.aborted) await bring(lane, messages, url, signal)
    },
    waiting: () => lanes.reduce((sum, { unacked }) => sum + unacked.size, 0),
  }
}

/** Ends early with `signal`. */
const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  ms <= 0 ? Promise.resolve() : sleep(ms, undefined, { signal }).catch(() => undefined)
