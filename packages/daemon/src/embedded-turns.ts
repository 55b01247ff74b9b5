/** Turns and events as a program that embeds Sluice sees them. */
import type { Approver, TurnPart, TurnResult } from '@sluice/agent'
import { localTurn } from '@sluice/http/local-turn'
import type { EventEnvelope, EventType } from '@sluice/sdk'
import type { OpenRuntime } from './runtime/open-runtime.ts'

export interface RunOptions {
  /** The name of the session that the turn continues: 1 to 128 of `A-Z a-z 0-9 . _ -`. Absent: a turn without history. */
  readonly session?: string
  /** One of `[agents.<name>]`. Default: `main`. */
  readonly agent?: string
  /** The only tools that the turn may call. Default: all tools of the agent. */
  readonly tools?: readonly string[]
  /** Aborts the turn. */
  readonly signal?: AbortSignal
  /** Called with each part of the turn while it runs: text, tool calls and their results. */
  readonly onPart?: (part: TurnPart) => void
  /** Decides tool calls that need an approval. Default: people in the chats of `[approvals]` are asked. */
  readonly approve?: Approver
}

/** The end of a turn. `id` is that of `GET /api/turns/:id`. */
export type RunResult = Pick<TurnResult, 'id' | 'text' | 'model' | 'finishReason' | 'usage'>

/** The event of a type; `*` means every type. */
export type EventOf<Type extends EventType | '*'> = Type extends '*' ? EventEnvelope : Extract<EventEnvelope, { readonly type: Type }>

export interface EmbeddedTurns {
  /** Runs one turn and resolves when its end is durable. Rejects with an `AppError`, such as `upstream`, `aborted` or `invalid_request`. */
  run(message: string, options?: RunOptions): Promise<RunResult>
  /**
   * Calls `listener` for each event of a type from now on, in order; docs/events.md lists the types. An error of the listener is logged.
   * Returns an unsubscribe function.
   */
  on<Type extends EventType | '*'>(type: Type, listener: (event: EventOf<Type>) => void): () => void
}

export const embeddedTurns = (runtime: OpenRuntime): EmbeddedTurns => ({
  async run(message, { session, agent, onPart, ...rest } = {}) {
    const turn = localTurn({ session, agent }, runtime.snapshot())
    const client = runtime.clients.ofCaller(turn.caller ?? turn.source)
    const ended = await runtime.agent.run({ ...turn, ...rest, text: message, client, ...(onPart && { listen: onPart }) })
    const { id, text, model, finishReason, usage } = ended
    return { id, text, model, finishReason, usage }
  },
  on(type, listener) {
    return runtime.bus.subscribe(({ envelope }) => {
      if (type !== '*' && envelope.type !== type) return
      try {
        listener(envelope as EventOf<typeof type>)
      } catch (error) {
        runtime.log.error('a listener of events failed', { type: envelope.type, error })
      }
    })
  },
})
