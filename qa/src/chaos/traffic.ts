/**
 * Simulates senders and their platforms: each message is delivered again and again until it is acknowledged, and sometimes once
 * more after that.
 */

import type { Random } from '@sluice/testkit/random'
import type { Answer, Gate, Message } from './history.ts'
import type { Kind } from './kind.ts'
import { markOf } from './marks.ts'
import { ask, pause, post } from './request.ts'
import type { World } from './world.ts'

const RETRY_MS = 100
const ACKNOWLEDGED = [200, 202]
const UNAVAILABLE = 503
/** The share of messages or requests with this property. */
const SHARE = { tool: 0.25, long: 0.08, impatient: 0.2, repeated: 0.12, batch: 0.5, gate: 0.04 }
const GATES: readonly [Gate, ...Gate[]] = ['approved', 'approved', 'rejected', 'withdrawn']
const LONG_PARTS = 3

/** One sender of one kind. Messages are delivered in order, unless the platform does not wait for an answer. */
interface Lane {
  readonly kind: Kind
  readonly sender: string
  /** The messages of each request that was not acknowledged. */
  readonly unacked: Set<readonly Message[]>
  /** Set while these are delivered again, which happens once at a time. */
  retrying: Promise<void> | undefined
}

/** The part of the state of a turn that its sender reads. */
interface TurnState {
  readonly status: string
  readonly response: string | null
  readonly error: { readonly code: string } | null
}

export interface TrafficOptions {
  readonly random: Random
  /** Whether turns of some messages ask a person; `createPeople` answers for them. */
  readonly asksPeople: boolean
  /** Whether senders of direct requests read the state of turns whose answer did not arrive, and repeat failed requests. Default: false. */
  readonly repeatsFailed?: boolean
  /** How long a request waits for its answer. Default: 10 s. */
  readonly requestMsMax?: number
}

export class Traffic {
  readonly #world: World
  readonly #random: Random
  readonly #asksPeople: boolean
  readonly #requestMsMax: number | undefined
  readonly #repeatsFailed: boolean
  /** For each request, the turn that its newest answer has named, as long as its sender does not know how it ended. */
  readonly #followed = new Map<readonly Message[], { readonly lane: Lane; readonly turn: string }>()
  readonly #lanes: readonly Lane[]
  /**
   * Conversations in which a question may be withdrawn while its answer is delivered. No other question is asked there, because
   * the answer would decide it.
   */
  readonly #answering = new Set<string>()

  constructor(world: World, { random, asksPeople, requestMsMax, repeatsFailed = false }: TrafficOptions) {
    this.#world = world
    this.#random = random
    this.#asksPeople = asksPeople
    this.#requestMsMax = requestMsMax
    this.#repeatsFailed = repeatsFailed
    this.#lanes = world.kinds.flatMap((kind) =>
      kind.senders.map((sender): Lane => ({ kind, sender, unacked: new Set(), retrying: undefined })),
    )
  }

  /** The number of requests that are not acknowledged, or whose turns have not ended. */
  get waiting(): number {
    return this.#lanes.reduce((sum, { unacked }) => sum + unacked.size, this.#followed.size)
  }

  /** Delivers what is not acknowledged yet, then about `count` new messages at random moments within `ms`. Ends with `signal`. */
  async run(url: string, { count, ms }: { readonly count: number; readonly ms: number }, signal: AbortSignal): Promise<void> {
    const startMs = performance.now()
    const [first, ...rest] = this.#lanes
    const moments = new Map<Lane, number[]>()
    for (let index = 0; index < count && first; index++) {
      const lane = this.#random.pick([first, ...rest])
      moments.set(lane, [...(moments.get(lane) ?? []), this.#random.within(0, ms)])
    }
    await Promise.all(this.#lanes.map((lane) => this.#runLane(lane, moments.get(lane) ?? [], startMs, url, signal)))
  }

  /** Looks at turns that have not ended, and delivers what is not acknowledged yet, again and again until it is. Ends with `signal`. */
  async retry(url: string, signal: AbortSignal): Promise<void> {
    for (const [messages, { lane, turn }] of this.#followed) await this.#lookAt(turn, lane, messages, url, signal)
    await Promise.all(this.#lanes.map((lane) => this.#deliverUnacked(lane, url, signal)))
  }

  /** Delivers one new message of each kind, once the kind is ready. */
  async one(url: string, signal: AbortSignal): Promise<void> {
    for (const kind of this.#world.kinds) {
      const lane = this.#lanes.find((candidate) => candidate.kind === kind)
      while (kind.isReady?.() === false && !signal.aborted) await pause(RETRY_MS, signal)
      if (lane) await this.#deliver(lane, [this.#write(kind, lane.sender)], url, signal)
    }
  }

  /** Delivers the answer of the sender to a question, until it is acknowledged. After `signal`, the next `run` delivers it. */
  async answer({ kind: name, sender, mark }: Message, approve: boolean, url: string, signal: AbortSignal): Promise<void> {
    const lane = this.#lanes.find((candidate) => candidate.kind.name === name && candidate.sender === sender)
    if (!lane) return
    const messages = [this.#write(lane.kind, sender, { mark, approve })]
    let isAcked = false
    while (!isAcked && !signal.aborted) {
      isAcked = await this.#deliver(lane, messages, url, signal)
      if (!isAcked) await pause(RETRY_MS, signal)
    }
    if (isAcked) this.#answering.delete(conversationOf(lane.kind, sender))
    if (this.#random.chance(SHARE.repeated) && !signal.aborted) await this.#deliver(lane, messages, url, signal)
  }

  async #runLane(lane: Lane, moments: readonly number[], startMs: number, url: string, signal: AbortSignal): Promise<void> {
    const running: Promise<unknown>[] = []
    await this.#deliverUnacked(lane, url, signal)
    for (const moment of moments.toSorted((a, b) => a - b)) {
      await pause(moment - (performance.now() - startMs), signal)
      if (signal.aborted) break
      const messages = this.#writeBatch(lane)
      const delivered = this.#deliver(lane, messages, url, signal).then(async (isAcked) => {
        if (isAcked && this.#random.chance(SHARE.repeated)) await this.#deliver(lane, messages, url, signal)
      })
      running.push(delivered)
      if (!this.#random.chance(SHARE.impatient)) await delivered
    }
    await Promise.all(running)
  }

  #write(kind: Kind, sender: string, answers?: Answer): Message {
    const { recorder } = this.#world
    const conversation = conversationOf(kind, sender)
    const mayAsk = this.#asksPeople && !answers && kind.isPrivate === true && !this.#answering.has(conversation)
    const gate = mayAsk && this.#random.chance(SHARE.gate) ? this.#random.pick(GATES) : undefined
    if (gate === 'withdrawn') this.#answering.add(conversation)
    const message = kind.write({
      mark: markOf(recorder.nextNumber()),
      sender,
      parts: this.#random.chance(SHARE.long) ? LONG_PARTS : 1,
      usesTool: gate === undefined && this.#random.chance(SHARE.tool),
      ...(gate && { gate }),
      ...(answers && { answers }),
    })
    recorder.add(message)
    if (kind.isPulled) {
      // The mailbox has the message now, which counts as an acknowledgement.
      recorder.see({ type: 'posted', marks: [message.mark] })
      recorder.see({ type: 'acked', marks: [message.mark] })
    }
    return message
  }

  #writeBatch({ kind, sender }: Lane): Message[] {
    const own = this.#write(kind, sender)
    const size = this.#random.chance(SHARE.batch) ? this.#random.within(1, kind.batchMax) : 1
    return [own, ...Array.from({ length: size - 1 }, () => this.#write(kind, this.#random.pick(kind.senders)))]
  }

  /** Makes one request with the messages. Resolves to true once no further attempt is needed. */
  async #deliver(lane: Lane, messages: readonly Message[], url: string, signal: AbortSignal): Promise<boolean> {
    const { kind, unacked } = lane
    if (!kind.request) return true
    const { recorder } = this.#world
    const marks = messages.map(({ mark }) => mark)
    unacked.add(messages)
    if (!kind.isPulled) recorder.see({ type: 'posted', marks })
    const answer = await post(url, kind.request(messages), signal, this.#requestMsMax)
    const { status } = answer
    if (status === undefined || status === UNAVAILABLE) return false
    const failure = this.#repeatsFailed ? kind.failureIn?.(answer) : undefined
    if (failure !== undefined) {
      for (const mark of marks) recorder.see({ type: 'failed', mark, code: failure })
      return false
    }
    const isAcknowledged = ACKNOWLEDGED.includes(status)
    if (isAcknowledged && kind.isInFlight?.(answer)) return false
    const answered = isAcknowledged ? kind.turnIn?.(answer) : undefined
    const before = this.#followed.get(messages)
    // Another turn for the same key: the sender looks how the earlier one ended.
    if (answered && before && before.turn !== answered.turn) {
      await this.#lookAt(before.turn, lane, messages, url, signal)
      if (this.#followed.get(messages) === before) return false
    }
    if (!isAcknowledged) recorder.see({ type: 'refused', marks, status })
    else if (!kind.isPulled) recorder.see({ type: 'acked', marks })
    if (answered) for (const mark of marks) recorder.see({ type: 'answered', mark, ...answered })
    if (answered?.text !== undefined) this.#followed.delete(messages)
    else if (this.#repeatsFailed && answered) this.#followed.set(messages, { lane, turn: answered.turn })
    unacked.delete(messages)
    return true
  }

  /** Reads the state of a turn, as its sender does. What failed is delivered again. */
  async #lookAt(turn: string, { unacked }: Lane, messages: readonly Message[], url: string, signal: AbortSignal): Promise<void> {
    const { recorder } = this.#world
    const state = await ask(url, { path: `/api/turns/${turn}`, signal })
    if (!state || state.status === UNAVAILABLE) return
    const { status, response, error } = state.body as Partial<TurnState>
    if (status === 'queued' || status === 'running') return
    if (this.#followed.get(messages)?.turn === turn) this.#followed.delete(messages)
    for (const { mark } of messages) {
      if (status === 'failed') recorder.see({ type: 'failed', mark, code: error?.code ?? '' })
      else if (status === 'done') recorder.see({ type: 'answered', mark, turn, text: response ?? '' })
      else
        recorder.see({ type: 'unexpected', detail: `the turn ${turn} of ${mark} is ${status ?? `answered with status ${state.status}`}` })
    }
    if (status === 'failed') unacked.add(messages)
  }

  #deliverUnacked(lane: Lane, url: string, signal: AbortSignal): Promise<void> {
    lane.retrying ??= this.#retry(lane, url, signal).finally(() => {
      lane.retrying = undefined
    })
    return lane.retrying
  }

  async #retry(lane: Lane, url: string, signal: AbortSignal): Promise<void> {
    for (const messages of [...lane.unacked]) {
      while (!signal.aborted && !(await this.#deliver(lane, messages, url, signal))) await pause(RETRY_MS, signal)
    }
  }
}

const conversationOf = (kind: Kind, sender: string): string => `${kind.name} ${sender}`
