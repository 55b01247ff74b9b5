/** The agent that a request names: operators choose one, and every other caller talks to the main agent. */
import { unknownAgent } from '@sluice/config'
import type { Snapshot } from '@sluice/runtime'
import { AppError, MAIN_AGENT } from '@sluice/sdk'
import type { Caller } from './context.ts'

/**
 * Returns the agent of a request; `main` when it names none. Throws `forbidden` for a caller that is not an operator, because a
 * client must not choose what its agent may do, and `invalid_request` for an unknown name. `field` names the place in the request.
 */
export function chosenAgent(
  name: string | null | undefined,
  field: string,
  { role }: Pick<Caller, 'role'>,
  { registries }: Pick<Snapshot, 'registries'>,
): string {
  if (name === null || name === undefined || name === MAIN_AGENT) return MAIN_AGENT
  if (role !== 'operator') throw new AppError('forbidden', `Only an operator chooses an agent. Omit ${field}.`)
  const names = [...registries.keys()]
  if (!names.includes(name)) throw new AppError('invalid_request', `${field}: ${unknownAgent(name, names)}`)
  return name
}
