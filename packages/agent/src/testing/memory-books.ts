/** The parts of a store the agent uses, in memory, with the store's own promises kept and nothing more. */
import { AppError, type ModelMessage, type QueuedTurn, type SessionSummary, type TurnEnd, type TurnRow, type Usage } from '@sluice/sdk'
import type { ResumableHome } from '../turn/turn-home.ts'

type Method = 'history' | 'summarize' | 'enqueue' | 'start' | 'waits' | 'checkpoint' | 'addUsage' | 'finish' | 'spentUsd' | 'release'

export interface MemoryBooks extends ResumableHome {
  /** Every call that writes, in order. */
  readonly writes: readonly string[]
  readonly ends: readonly TurnEnd[]
  /** What attempts have used that did not end their turns. */
  readonly used: readonly (Pick<TurnEnd, 'id' | 'model'> & Usage)[]
  readonly released: readonly string[]
  readonly histories: Map<string, ModelMessage[]>
  readonly summaries: Map<string, SessionSummary>
  /** The turns kept for later, and their checkpoints. */
  readonly queued: Map<string, QueuedTurn>
  readonly checkpoints: Map<string, ModelMessage[]>
  readonly starts: Map<string, number>
  spent: number
  /** These fail with `unavailable` from now on. */
  fail(...methods: Method[]): void
}

const full = () => new AppError('unavailable', 'The disk is full')
const notUsed = (): never => {
  throw new Error('the agent does not use this')
}

export function memoryBooks(): MemoryBooks {
  const writes: string[] = []
  const ends: TurnEnd[] = []
  const used: MemoryBooks['used'][number][] = []
  const released: string[] = []
  const histories = new Map<string, ModelMessage[]>()
  const summaries = new Map<string, SessionSummary>()
  const queued = new Map<string, QueuedTurn>()
  const checkpoints = new Map<string, ModelMessage[]>()
  const starts = new Map<string, number>()
  const failing = new Set<Method>()
  const write = (method: Method, id: string) => {
    writes.push(`${method} ${id}`)
    if (failing.has(method)) throw full()
  }

  const books: MemoryBooks = {
    writes,
    ends,
    used,
    released,
    histories,
    summaries,
    queued,
    checkpoints,
    starts,
    spent: 0,
    fail: (...methods) => {
      for (const method of methods) failing.add(method)
    },
    sessions: {
      async conversation(id, limit) {
        if (failing.has('history')) throw full()
        const said = histories.get(id) ?? []
        const summary = summaries.get(id)
        return structuredClone({ upTo: said.length, summary, messages: said.slice(summary?.upTo ?? 0).slice(-limit) })
      },
      async messagesByTurn(id, { after, limit, upTo = Number.POSITIVE_INFINITY }) {
        const said = (histories.get(id) ?? []).map((message, at) => ({ upTo: at + 1, atMs: at, messages: [message] }))
        return structuredClone(said.slice(after, Math.min(upTo, after + limit)))
      },
      async summarize(id, seen, summary) {
        write('summarize', id)
        if (histories.get(id)?.length !== seen.upTo || summaries.get(id)?.upTo !== seen.summary?.upTo) return false
        summaries.set(id, structuredClone(summary))
        return true
      },
      history: notUsed,
      summary: notUsed,
      get: notUsed,
      list: notUsed,
      rename: notUsed,
      erase: notUsed,
    },
    admissions: { recover: async () => {} },
    turns: {
      async enqueue(turn) {
        write('enqueue', turn.id)
        if (queued.has(turn.id) || ends.some(({ id }) => id === turn.id)) throw new AppError('conflict', 'This turn is known')
        queued.set(turn.id, structuredClone(turn))
      },
      async start(id) {
        write('start', id)
        const count = (starts.get(id) ?? 0) + 1
        starts.set(id, count)
        return count
      },
      async waits(id, isWaiting) {
        write('waits', id)
        starts.set(id, (starts.get(id) ?? 0) + (isWaiting ? -1 : 1))
      },
      async checkpoint(id, messages) {
        write('checkpoint', id)
        checkpoints.set(id, structuredClone([...messages]))
      },
      async addUsage(id, usage) {
        write('addUsage', id)
        used.push({ id, ...usage })
      },
      async finish(end) {
        write('finish', end.id)
        ends.push(structuredClone(end))
        queued.delete(end.id)
        checkpoints.delete(end.id)
        if (end.sessionId !== null)
          histories.set(end.sessionId, [...(histories.get(end.sessionId) ?? []), ...structuredClone(end.messages)])
        return []
      },
      async unfinished(limit) {
        const rows = [...queued.values()].slice(0, limit)
        return rows.map((turn) => ({ ...rowOf(turn, starts.get(turn.id) ?? 0), checkpoint: checkpoints.get(turn.id) ?? [] }))
      },
      async spentUsd() {
        if (failing.has('spentUsd')) throw full()
        return books.spent
      },
      costs: notUsed,
      list: notUsed,
      async get(id) {
        const turn = queued.get(id)
        return turn && rowOf(turn, starts.get(id) ?? 0)
      },
      requestAbort: notUsed,
      openSessions: notUsed,
      abortsRequested: async () => [],
    },
    idempotency: {
      claim: notUsed,
      turnOf: notUsed,
      release(key) {
        released.push(key.key)
        if (failing.has('release')) throw full()
      },
    },
  }
  return books
}

const rowOf = ({ idempotency: _, ...turn }: QueuedTurn, attempts: number): TurnRow => ({
  ...turn,
  owner: turn.owner ?? null,
  status: attempts > 0 ? 'running' : 'queued',
  response: null,
  model: null,
  finishReason: null,
  error: null,
  inputTokens: 0,
  outputTokens: 0,
  costUsd: 0,
  attempts,
  starts: attempts,
  endedAtMs: null,
  inbox: null,
  steps: [],
})
