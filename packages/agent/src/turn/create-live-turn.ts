/** Makes the live turn of a request. */
import type { Clock, Logger } from '@sluice/sdk'
import { Cancellation } from './cancellation.ts'
import { agentOfTurn } from './queued-turn.ts'
import type { TurnRequest } from './turn.ts'
import type { LiveTurn } from './turn-scope.ts'

export interface LiveTurnDeps {
  readonly clock: Clock
  readonly log: Logger
}

/** `given` holds the values that the request does not have. */
export function createLiveTurn(
  { clock, log }: LiveTurnDeps,
  request: Omit<TurnRequest, 'signal' | 'permit'>,
  given: Pick<LiveTurn, 'id' | 'home'> & Partial<Pick<LiveTurn, 'createdAtMs' | 'kept' | 'checkpoint' | 'isDirect' | 'principal'>>,
): LiveTurn {
  const {
    source,
    session,
    text,
    model,
    client,
    owner,
    caller,
    limited,
    trace,
    idempotency,
    tools,
    maySilent,
    superseded,
    listen,
    approve,
    asksOwner,
    delivery,
    isInRoom,
    onWait,
  } = request
  const nowMs = clock.nowMs()
  const { id, home } = given
  return {
    id,
    home,
    isDirect: given.isDirect ?? false,
    agent: agentOfTurn(request),
    phase: 'waiting',
    superseded,
    inLane: undefined,
    permit: undefined,
    progress: undefined,
    source,
    session,
    text,
    isTextInStore: false,
    client,
    ...(model !== undefined && { model }),
    ...(owner !== undefined && { owner }),
    ...(caller !== undefined && { caller }),
    ...(limited && { limited }),
    principal: given.principal,
    ...(trace && { trace }),
    ...(idempotency && { idempotency }),
    ...(approve && { approve }),
    ...(asksOwner && { asksOwner }),
    ...(tools && { tools }),
    ...(maySilent && { maySilent }),
    ...(delivery && { delivery }),
    ...(isInRoom && { isInRoom }),
    ...(onWait && { onWait: safely(onWait, log, id) }),
    createdAtMs: given.createdAtMs ?? nowMs,
    kept: given.kept,
    keep: undefined,
    started: undefined,
    checkpoint: given.checkpoint ?? [],
    cancellation: new Cancellation(),
    tell: listen && safely(listen, log, id),
  }
}

/** Logs the error of a listener, so that the turn continues. */
const safely =
  <Part>(listen: (part: Part) => void, log: Logger, turn: string) =>
  (part: Part): void => {
    try {
      listen(part)
    } catch (error) {
      log.error('turn listener failed', { turn, error })
    }
  }
