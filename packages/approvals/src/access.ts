/**
 * Who sees and decides an approval over the API. A tool call is a matter of the device it is made for; besides, the
 * operator's command line and the configured approvers decide it.
 */
import type { Approval, Role } from '@sluice/sdk'

export interface ApprovalCaller {
  readonly role: Role | null
  /** The device, or `local`. */
  readonly owner: string
}

/** `whole`: it is shown and may be decided. `outline`: that it waits is shown, not the call. */
export type Access = 'whole' | 'outline' | 'none'

/** The dispatch target that stands for every operator who follows events. */
const DASHBOARD = 'dashboard'

/** True if `[approvals] channels` makes operators approvers of every tool call. */
export const operatorsApprove = (targets: readonly string[]): boolean => targets.some((target) => target.toLowerCase() === DASHBOARD)

export function accessOf({ gate, owner }: Pick<Approval, 'gate' | 'owner'>, caller: ApprovalCaller, targets: readonly string[]): Access {
  const isOperator = caller.role === 'operator'
  if (gate !== 'tool') return isOperator ? 'whole' : 'none'
  if (owner === caller.owner || (isOperator && operatorsApprove(targets))) return 'whole'
  return isOperator ? 'outline' : 'none'
}

/** Stands for the call where it is not shown. */
export const OUTLINE_MESSAGE = 'The call is shown to the device that asked and to the configured approvers.'

export const outlineOf = <Shown extends Pick<Approval, 'message'>>(approval: Shown): Shown => ({ ...approval, message: OUTLINE_MESSAGE })
