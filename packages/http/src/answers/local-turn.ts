/** The turns of a program that embeds Sluice: it acts as the operator, and shares the sessions of clients without a token. */
import type { TurnRequest } from '@sluice/agent'
import type { Snapshot } from '@sluice/runtime'
import { checkSessionName, ownerOf, personOf, storedSession } from '../auth/identity.ts'
import { chosenAgent } from '../request/chosen-agent.ts'

/** Returns the part of a request that says whose turn it is. Throws `invalid_request` for a session name or an agent that is not valid. */
export function localTurn(
  given: { readonly session?: string | undefined; readonly agent?: string | undefined },
  snapshot: Pick<Snapshot, 'registries'>,
): Pick<TurnRequest, 'source' | 'session' | 'agent' | 'owner' | 'caller'> {
  const agent = chosenAgent(given.agent, 'agent', { role: 'operator' }, snapshot)
  const session = given.session === undefined ? null : storedSession(null, checkSessionName(given.session, 'session'), agent)
  return { source: 'embedded', session, agent, owner: ownerOf(null), caller: personOf(null) }
}
