/**
 * Addresses of conversations: `user:` and a user id, `chat:` and the id of a group that the AI bot is in, or `robot` for the group of the
 * group robot.
 */
import { type Address, AppError } from '@sluice/sdk'

/** How WeCom brought a message, and brings its answer. */
export type Way = 'bot' | 'app' | 'robot'

export const ROBOT = 'robot'

export interface Target {
  readonly way: Way
  /** The user id or the id of the chat; empty for the group robot. */
  readonly id: string
  readonly isChat: boolean
}

/** Returns the way of a message; `ways` has the configured ones. Throws `invalid_request` for an address that none of them reaches. */
export function targetOf({ to, more = {} }: Address, ways: readonly Way[]): Target {
  const [, kind, id = ''] = /^(user|chat):(.+)$/s.exec(to) ?? []
  const can: readonly Way[] = to === ROBOT ? ['robot'] : kind === 'chat' ? ['bot'] : kind === 'user' ? ['bot', 'app'] : []
  const way = can.find((each) => each === more.way && ways.includes(each)) ?? can.find((each) => ways.includes(each))
  if (way !== undefined) return { way, id, isChat: kind === 'chat' }
  if (can.length > 0) throw new AppError('invalid_request', `wecom cannot reach '${to}': set the keys of ${can.join(' or ')}`)
  throw new AppError('invalid_request', `'${to}' is no address of wecom, such as user:<user id>, chat:<chat id> or ${ROBOT}`)
}
