/** Makes the live turn of a stored one that was interrupted. */
import type { ClientId, TurnRow } from '@sluice/sdk'
import { createLiveTurn, type LiveTurnDeps } from '../turn/create-live-turn.ts'
import { type Links, withPerson } from '../turn/linked-principal.ts'
import { parseTurnContext } from '../turn/turn-context.ts'
import type { TurnHome } from '../turn/turn-home.ts'
import type { LiveTurn } from '../turn/turn-scope.ts'

export interface ResumedTurnDeps extends LiveTurnDeps {
  /** Returns the client id of a resumed turn: the same id for the same caller. */
  readonly mintClient: (caller: string) => ClientId
  /** Absent: no accounts are linked. */
  readonly linked?: Links
}

export function resumedTurn(
  deps: ResumedTurnDeps,
  home: TurnHome,
  row: TurnRow,
  more: Pick<LiveTurn, 'checkpoint' | 'isDirect'>,
): LiveTurn {
  const { id, agent, sessionId, owner, source, input, createdAtMs, context } = row
  const { trace, idempotency, caller, limited, asksOwner, tools, maySilent, isInRoom } = parseTurnContext(context)
  const request = {
    source,
    agent,
    session: sessionId,
    text: input,
    client: deps.mintClient(caller ?? owner ?? source),
    ...(trace && { trace }),
    ...(owner !== null && { owner }),
    ...(caller !== undefined && { caller }),
    ...(limited && { limited }),
    ...(idempotency && { idempotency }),
    ...(asksOwner && { asksOwner }),
    ...(tools && { tools }),
    ...(maySilent && { maySilent }),
    ...(isInRoom && { isInRoom }),
  }
  return createLiveTurn(deps, withPerson(deps.linked, request), {
    id,
    principal: limited,
    home,
    createdAtMs,
    kept: Promise.resolve(),
    ...more,
  })
}
