/** An agent whose turns a test ends by hand. */
import type { Agent, TurnRequest, TurnResult } from '@sluice/agent'
import { AppError } from '@sluice/sdk'
import { Inbox } from './inbox.ts'

export interface PlayedTurn {
  readonly request: TurnRequest
  done(text: string): void
  fail(error: unknown): void
}

export class ScriptedAgent implements Pick<Agent, 'run'> {
  /** The turns in the order of their requests. */
  readonly turns = new Inbox<PlayedTurn>()

  run(request: TurnRequest): Promise<TurnResult> {
    const { promise, resolve, reject } = Promise.withResolvers<TurnResult>()
    const id = `turn-${this.turns.all.length + 1}`
    const usage = { inputTokens: 3, outputTokens: 5, costUsd: 0.25 }
    request.signal?.addEventListener('abort', () => reject(new AppError('aborted', 'The turn was aborted', { fields: { turn_id: id } })))
    this.turns.push({
      request,
      done: (text) => resolve({ id, text, model: 'fake:model', finishReason: 'stop', usage, replies: [] }),
      fail: reject,
    })
    return promise
  }

  /** Resolves to the turn with this number, counted from 1, once it has begun. */
  async turn(number: number): Promise<PlayedTurn> {
    const turn = (await this.turns.first(number)).at(-1)
    if (!turn) throw new Error(`there is no turn ${number}`)
    return turn
  }
}
