/** Shows a reply while it is made: one message, edited as the text grows. The outbox puts the whole reply in its place. */

import type { TurnPart } from '@sluice/agent'
import { signalScope, splitText } from '@sluice/kit'
import { AppError, type Channel, type Clock, type Logger, type StartedMessage, type Store } from '@sluice/sdk'

export interface Draft {
  /** The provider's id of the message. */
  readonly id: string
  readonly hear: (part: TurnPart) => void
  /** Shows nothing more; resolves once no edit is under way, so that none can arrive after the reply. Idempotent. */
  stop(): Promise<void>
}

export interface DraftOptions {
  readonly inbox: Pick<Store['inbox'], 'draft'>
  readonly clock: Clock
  readonly log: Logger
  readonly channel: Channel
  readonly started: StartedMessage
  /** Aborts when the daemon stops. */
  readonly signal: AbortSignal
}

const PLACEHOLDER = '…'
/** How long sending the first form of it may delay the turn, and one edit the reply. */
const SEND_MS_MAX = 5000

/** Undefined where the channel shows none, or the message could not be sent: the reply then comes by itself. */
export async function openDraft(options: DraftOptions): Promise<Draft | undefined> {
  const { channel, started, inbox, log } = options
  if (channel.draftEveryMs === undefined || !channel.update) return undefined
  if (started.draft !== null) return keepDraft(options, started.draft)
  try {
    const message = { text: PLACEHOLDER, clientId: `draft-${started.turnId}` }
    using limit = signalScope([options.signal], SEND_MS_MAX)
    const { id } = await channel.send(started.message.to, message, limit.signal)
    await inbox.draft(started.number, id)
    return keepDraft(options, id)
  } catch (error) {
    log.debug('a draft could not be sent', { channel: channel.name, inbox: started.number, error })
    return undefined
  }
}

function keepDraft(options: DraftOptions, id: string): Draft {
  const { channel, clock, log, started } = options
  const everyMs = channel.draftEveryMs ?? 0
  const stopped = new AbortController()
  const limits = { ...channel.limits, text: channel.limits.text - PLACEHOLDER.length }
  let text = ''
  let shown = ''
  let showing: Promise<void> | undefined

  /** Edits as long as there is something new, not more often than the channel wants. */
  const show = async (): Promise<void> => {
    try {
      for (let next = text; next !== shown && !stopped.signal.aborted; next = text) {
        shown = next
        const outbound = { text: (splitText(next, limits)[0] ?? '') + PLACEHOLDER, clientId: `draft-${started.turnId}` }
        const waitMs = await edit(outbound)
        await clock.sleep(waitMs, stopped.signal)
      }
    } catch (error) {
      stopped.abort()
      log.debug('a draft could not be edited', { channel: channel.name, inbox: started.number, error })
    } finally {
      showing = undefined
    }
  }
  /** Resolves to how long to wait before the next one. */
  const edit = async (outbound: { text: string; clientId: string }): Promise<number> => {
    try {
      using limit = signalScope([options.signal], SEND_MS_MAX)
      await channel.update?.(started.message.to, { id }, outbound, limit.signal)
      return everyMs
    } catch (error) {
      if (error instanceof AppError && error.code === 'rate_limited') return Math.max(everyMs, (error.retryAfterSecs ?? 1) * 1000)
      throw error
    }
  }

  return {
    id,
    hear(part) {
      // What is said before a tool is called is no part of the answer.
      if (part.type === 'tool_call') text = ''
      if (part.type !== 'text' || stopped.signal.aborted) return
      text += part.delta
      if (text.trim() !== '') showing ??= show()
    },
    async stop() {
      stopped.abort()
      await showing
    },
  }
}
