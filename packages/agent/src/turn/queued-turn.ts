/** The stored form of a turn that waits. */
import { agentOfSession, MAIN_AGENT, type QueuedTurn } from '@sluice/sdk'
import type { LimitedClient } from './admission.ts'
import type { TurnRequest } from './turn.ts'
import type { TurnContext } from './turn-context.ts'

/** Returns the agent of a turn: that of its session, where it has one. */
export const agentOfTurn = ({ session, agent = MAIN_AGENT }: Pick<TurnRequest, 'session' | 'agent'>): string =>
  session === null ? agent : agentOfSession(session)

type Waiting = Pick<
  TurnRequest,
  'session' | 'owner' | 'caller' | 'source' | 'text' | 'trace' | 'idempotency' | 'tools' | 'asksOwner' | 'maySilent' | 'isInRoom'
> & {
  readonly id: string
  /** The principal as the caller gave it, without its links. */
  readonly limited?: LimitedClient | undefined
  readonly agent: string
  readonly createdAtMs: number
  readonly isDirect?: boolean
}

export function queuedTurn(turn: Waiting): QueuedTurn {
  const {
    id,
    agent,
    session,
    owner,
    caller,
    limited,
    source,
    text,
    createdAtMs,
    trace,
    idempotency,
    tools,
    asksOwner,
    maySilent,
    isInRoom,
    isDirect,
  } = turn
  const context: TurnContext = {
    trace,
    idempotency,
    caller,
    limited,
    asksOwner,
    tools,
    ...(maySilent && { maySilent }),
    ...(isInRoom && { isInRoom }),
  }
  return {
    id,
    sessionId: session,
    agent,
    ...(owner !== undefined && { owner }),
    source,
    input: text,
    context,
    createdAtMs,
    ...(idempotency && { idempotency }),
    ...(isDirect && { isDirect }),
  }
}
