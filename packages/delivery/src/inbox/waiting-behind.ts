/** Acts on a message that waits behind a question or a turn: reminds its sender of the question, or interrupts the turn. */
import { type Inbound, isLeaseLost, type OwnedStore, type WaitingMessage } from '@sluice/sdk'
import { channelNamed } from '../delivery-options.ts'
import { waitingReplies } from '../delivery-queue.ts'
import { principalOf } from './admit-message.ts'
import { noticeTo } from './notice.ts'
import { isOwnMessage } from './pieces.ts'
import type { RunningTurns } from './running-turns.ts'
import { isMuted } from './session-settings.ts'
import type { InboxWorkerOptions } from './worker-options.ts'

/** Tells the sender of a message about the question that waits in the conversation, because the message waits behind it. */
export function remind(options: InboxWorkerOptions, row: WaitingMessage, owned: OwnedStore, message: Inbound): void {
  const { approvals, clock, features, log, onReplies } = options
  const channel = channelNamed(features, row.channel)
  const hint = channel && !message.unverified ? approvals.hint(channel, message) : undefined
  if (!channel || !hint) return
  const tell = async (): Promise<void> => {
    const text = await hint
    if (text === undefined || text.trim() === '') return
    const notice = [noticeTo(channel, message, text, clock.nowMs())]
    onReplies(waitingReplies(notice, await owned.outbox.add(notice)))
  }
  tell().catch((error: unknown) => log.warn('reminder of an open question not sent', { channel: row.channel, error }))
}

/** Interrupts the turn of the sender. What would not be answered does not, nor what Sluice itself sends in the name of a person. */
export async function interrupt(
  options: InboxWorkerOptions,
  running: RunningTurns,
  {
    row: { channel, lane, number, sender },
    owned,
    message,
  }: { readonly row: WaitingMessage; readonly owned: OwnedStore; readonly message: Inbound },
): Promise<void> {
  const { clock, features, log } = options
  const from = channelNamed(features, channel)
  if (!from || !running.mayInterrupt(lane, sender)) return
  try {
    const { standing } = await principalOf(options, from, message)
    const own = (await owned.inbox.ofSession(lane)).find((one) => one.number === number)
    if (!own || isOwnMessage(own) || (await isMuted(owned, lane, standing, clock.nowMs()))) return
    running.interrupt(lane, sender)
  } catch (error) {
    if (!isLeaseLost(error)) log.warn('a message waits for the next step of the turn', { channel, inbox: number, error })
  }
}
