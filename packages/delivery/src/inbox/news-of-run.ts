/** Tells the person whose message started a procedure that its run has ended without success. */
import { type Channel, type Clock, gatewayText, type MessageNews, replyLane, type SopRun } from '@sluice/sdk'
import { channelNamed, type DeliveryFeatures } from '../delivery-options.ts'
import { hourlyNews } from './notice.ts'

interface NewsOptions {
  readonly features: Pick<DeliveryFeatures, 'channels' | 'texts'>
  readonly clock: Clock
}

/** For a channel that is not there, such as in a command without a daemon. The notice waits for the channel. */
const UNKNOWN_LIMITS: Channel['limits'] = { text: 2000, unit: 'utf16' }

/** Returns undefined where no message started the run, and where nothing may be written. A conversation gets the notice once an hour. */
export function newsOfRun({ clock, features }: NewsOptions, { event: { origin, standing, atMs } }: SopRun): MessageNews | undefined {
  const text = gatewayText('unanswered', features.texts())
  // A program may have written an unverified message, and would answer the notice.
  if (!origin || text.trim() === '' || standing === 'unverified') return undefined
  const channel = channelNamed(features, origin.channel) ?? { name: origin.channel, limits: UNKNOWN_LIMITS }
  const message = { ...origin, sentAtMs: atMs }
  return hourlyNews(channel, message, { lane: replyLane(origin), cause: 'unanswered', text }, clock.nowMs())
}
