/** The person of a turn's principal (docs/people.md): found when the turn is accepted, and again when it begins, because a link may end meanwhile. */
import type { LimitedClient } from './admission.ts'
import type { LiveTurn } from './turn-scope.ts'

/** The clients whose accounts are linked. */
export interface Links {
  /** Reads the links again where other nodes write them too. */
  refresh(): Promise<void>
  /** Returns a client with its person, if its accounts are linked. */
  principal(client: LimitedClient): LimitedClient
}

/** Returns a request whose principal has its person, as the links were last read. */
export const withPerson = <Request extends { readonly limited?: LimitedClient }>(links: Links | undefined, request: Request): Request =>
  links && request.limited ? { ...request, limited: links.principal(request.limited) } : request

/** Judges the principal of a waiting turn by the links of now. A message is judged when its attempt begins. */
export async function judgeAnew(links: Links | undefined, turn: LiveTurn): Promise<void> {
  if (!links || !turn.principal || turn.delivery) return
  await links.refresh()
  turn.limited = links.principal(turn.principal)
}
