/** Tells the person whose message, or whose turn, started a procedure that its run has ended without success. */
import { type Channel, type Clock, gatewayText, type MessageNews, parseChatSession, replyLane, type SopRun } from '@sluice/sdk'
import { channelNamed, type DeliveryFeatures } from '../delivery-options.ts'
import { hourlyNews } from './notice.ts'

interface NewsOptions {
  readonly features: Pick<DeliveryFeatures, 'channels' | 'texts'>
  readonly clock: Clock
}

/** For a channel that is not there, such as in a command without a daemon. The notice waits for the channel. */
const UNKNOWN_LIMITS: Channel['limits'] = { text: 2000, unit: 'utf16' }

/**
 * Returns undefined for a run that was not started in a chat, and where nothing may be written. A conversation gets the notice once an hour; for
 * runs that tools started, once an hour and procedure.
 */
export function newsOfRun({ clock, features }: NewsOptions, run: SopRun): MessageNews | undefined {
  const { origin, standing, atMs } = run.event
  const address = origin ?? chatOf(run)
  const texts = features.texts()
  const text = origin ? gatewayText('unanswered', texts) : gatewayText('run_not_completed', texts, { procedure: run.sop })
  // A program may have written an unverified message, and would answer the notice.
  if (!address || text.trim() === '' || standing === 'unverified') return undefined
  const channel = channelNamed(features, address.channel) ?? { name: address.channel, limits: UNKNOWN_LIMITS }
  const cause = origin ? 'unanswered' : (`unanswered:procedure ${run.sop}` as const)
  return hourlyNews(channel, { ...address, sentAtMs: atMs }, { lane: replyLane(address), cause, text }, clock.nowMs())
}

/** Returns the conversation of the turn whose tool call started the run. */
function chatOf({ event: { session } }: SopRun) {
  const { channel, account, conversation, thread } = (session !== undefined && parseChatSession(session)) || {}
  if (channel === undefined || account === undefined || conversation === undefined) return undefined
  return { channel, account, to: { to: conversation, ...(thread !== undefined && { thread }) } }
}
