/** Gives a message to the procedures whose trigger names its path, instead of to the agent (decisions, "SOP and turn"). */
import type { Channel } from '@sluice/sdk'
import type { DeliveryDeps } from './channels.ts'

/**
 * True: procedures have taken it, and the message is done in the same commit. So a message that is asked about again after a
 * crash starts nothing twice, and one that is replayed is an event like the first.
 */
export async function takenBySops(deps: Pick<DeliveryDeps, 'store' | 'sops' | 'log'>, channel: Channel, number: number): Promise<boolean> {
  const path = channel.webhook?.path
  const sops = deps.sops()
  if (path === undefined || !sops?.matches('webhook', path)) return false
  const entry = await deps.store.inbox.get(number)
  const message = entry?.endedAtMs === null ? entry.message : null
  if (!entry || !message) return false
  const { id, account, sender, to, text, sentAtMs, attachments } = message
  const dispatched = await sops.fire(
    {
      source: 'webhook',
      topic: path,
      payload: JSON.stringify({ channel: channel.name, id, account, sender, to, text, sentAtMs, attachments }),
      atMs: entry.receivedAtMs,
      by: `${channel.name}:${sender}`,
      ...(entry.trace !== undefined && { trace: entry.trace }),
      origin: { channel: channel.name, account, to, sender },
    },
    { inbox: number },
  )
  if (dispatched.length > 0)
    deps.log.info('procedures have taken a message', { channel: channel.name, inbox: number, dispatched: dispatched.length })
  return dispatched.length > 0
}
