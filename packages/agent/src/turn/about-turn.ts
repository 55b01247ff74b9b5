/** The members that the events of a turn and of its calls share. */
import { MAIN_AGENT } from '@sluice/sdk'

/** Returns the members of every event of a turn. An event names its agent unless it is the main agent. */
export const aboutTurn = (turnId: string, { session, agent }: { readonly session: string | null; readonly agent: string }) => ({
  turn_id: turnId,
  session_id: session,
  ...(agent !== MAIN_AGENT && { agent }),
})
