/** The standing of a turn (docs/approvals.md#who-may-decide). */
import type { Standing } from '@sluice/sdk'
import type { TurnRequest } from './turn.ts'

/** The owner of the turns of procedures, of the command line and of embedders. */
const LOCAL = 'local'

/** Returns the standing of the principal. A turn without a principal is an operator's if the daemon itself owns it, otherwise a stranger's. */
export const standingOfTurn = ({ limited, owner }: Pick<TurnRequest, 'limited' | 'owner'>): Standing =>
  limited?.standing ?? (owner === LOCAL ? 'operator' : 'stranger')
