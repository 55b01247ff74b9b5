/** Addresses of conversations: `user:` or `group:` and an openid, with the message that is answered. */
import { pathSegment } from '@sluice/kit'
import { type Address, AppError, type ReplyWindow } from '@sluice/sdk'

/** A message can be answered four times within an hour, and one of a group five times within five minutes; then messages are proactive. */
const DIRECT: ReplyWindow = { seconds: 3600, count: 4, after: 'proactive' }
const GROUP: ReplyWindow = { seconds: 300, count: 5, after: 'proactive' }

export const isGroup = ({ to }: Pick<Address, 'to'>): boolean => to.startsWith('group:')

export const replyWindow = (to: Pick<Address, 'to'>): ReplyWindow => (isGroup(to) ? GROUP : DIRECT)

/** Returns the path of a conversation in the API. Throws `invalid_request` for another address. */
export function pathOf({ to }: Pick<Address, 'to'>): `/${string}` {
  const [, kind, openid = ''] = /^(user|group):(.+)$/s.exec(to) ?? []
  if (!kind) throw new AppError('invalid_request', `'${to}' is no address of qq, such as user:<openid> or group:<group openid>`)
  return `/v2/${kind}s/${pathSegment(openid)}`
}

/**
 * Returns the id of the message that a reply can name at this time, so that it counts for no quota. It is a part of the address, because
 * every part of a long reply needs it.
 */
export function answerable(to: Address, nowMs: number): string | undefined {
  const { msg, atMs } = to.more ?? {}
  return msg !== undefined && nowMs < Number(atMs) + replyWindow(to).seconds * 1000 ? msg : undefined
}
