/** The turns that this process leaves to the owner of their shard: it stores them, and waits for their end for its callers. */
import { AppError, type Clock, type ClusterNotices, type Logger, shardOfTurn, type TurnRow } from '@sluice/sdk'
import { releaseKey } from '../run/conduct-turn.ts'
import { aborted } from '../turn/aborted.ts'
import { agentOfTurn, queuedTurn } from '../turn/queued-turn.ts'
import type { TurnRequest, TurnResult } from '../turn/turn.ts'
import type { TurnStorage } from '../turn/turn-home.ts'

/** The finish reason of a turn of an earlier release. */
const FINISHED = 'stop'

export interface RemoteTurnDeps {
  readonly store: TurnStorage
  readonly clock: Clock
  readonly log: Logger
  /** Tells the other nodes of a cluster. */
  readonly notices?: Pick<ClusterNotices, 'send'> | undefined
}

export class RemoteTurns {
  readonly #deps: RemoteTurnDeps
  /** The callers that wait, by turn; bounded by the number of open requests. */
  readonly #waiting = new Map<string, PromiseWithResolvers<TurnRow>>()

  constructor(deps: RemoteTurnDeps) {
    this.#deps = deps
  }

  /** Stores the turn for its owner. Rejects with `conflict` for a known id, and releases the key of a turn that was not stored. */
  async accept(id: string, request: Omit<TurnRequest, 'signal'>): Promise<void> {
    const { store, clock } = this.#deps
    try {
      await store.turns.enqueue(queuedTurn({ ...request, id, agent: agentOfTurn(request), createdAtMs: clock.nowMs() }))
    } catch (error) {
      await releaseKey(this.#deps, request.idempotency)
      throw error
    }
    this.#deps.notices?.send({ what: 'turn', turn: id, shard: shardOfTurn(request.session, id) })
  }

  /** Stores the turn and resolves to its result, as `Agent.run` does. The listener gets the whole text at the end. */
  async run(id: string, request: TurnRequest): Promise<TurnResult> {
    const { signal, listen } = request
    if (signal?.aborted) throw aborted(id)
    const ended = this.#wait(id)
    const abort = (): void => {
      const { store, notices } = this.#deps
      store.turns.requestAbort(id).then(
        () => notices?.send({ what: 'abort', turn: id }),
        (error: unknown) => ended.reject(error),
      )
    }
    try {
      await this.accept(id, request)
      this.#deps.notices?.send({ what: 'follow', turn: id })
      signal?.addEventListener('abort', abort, { once: true })
      if (signal?.aborted) abort()
      const result = resultOf(await ended.promise)
      listen?.({ type: 'text', delta: result.text })
      return result
    } finally {
      this.#waiting.delete(id)
      signal?.removeEventListener('abort', abort)
    }
  }

  /** Resolves to the result of a stored turn that another process runs. */
  async follow(id: string): Promise<TurnResult> {
    const ended = this.#wait(id)
    try {
      this.#deps.notices?.send({ what: 'follow', turn: id })
      await this.#lookAt(id, ended)
      return resultOf(await ended.promise)
    } finally {
      this.#waiting.delete(id)
    }
  }

  /** Reads a turn whose end another process has reported. */
  async ended(id: string): Promise<void> {
    const ended = this.#waiting.get(id)
    if (ended) await this.#lookAt(id, ended)
  }

  #wait(id: string): PromiseWithResolvers<TurnRow> {
    const ended = Promise.withResolvers<TurnRow>()
    this.#waiting.set(id, ended)
    return ended
  }

  async #lookAt(id: string, { resolve }: PromiseWithResolvers<TurnRow>): Promise<void> {
    const row = await this.#deps.store.turns.get(id)
    if (row && row.endedAtMs !== null) resolve(row)
  }

  /** Reads the turns that callers wait for. Call it after a change of the store. */
  async look(): Promise<void> {
    for (const [id, ended] of this.#waiting) await this.#lookAt(id, ended)
  }

  /** Rejects the calls of all callers; their turns go on. */
  stop(reason: AppError): void {
    for (const { reject } of this.#waiting.values()) reject(reason)
  }
}

/** Returns the result of an ended turn, or throws as the turn did. */
export function resultOf({ id, status, response, model, error, finishReason, inputTokens, outputTokens, costUsd }: TurnRow): TurnResult {
  if (status === 'aborted') throw aborted(id)
  if (status !== 'done') throw new AppError('upstream', error?.message ?? 'The turn failed')
  const usage = { inputTokens, outputTokens, costUsd }
  return { id, text: response ?? '', model: model ?? '', finishReason: finishReason ?? FINISHED, usage, replies: [] }
}
