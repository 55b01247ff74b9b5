/** Shows a reply while the model writes it: one message, edited as the text grows. The outbox replaces it by the whole reply. */

import type { TurnPart } from '@sluice/agent'
import { measure, signalScope } from '@sluice/kit'
import { AppError, type Channel, type Clock, type Lease, type Logger, type OwnedStore, type StartedMessage } from '@sluice/sdk'
import { asOutbound, type ReplyParts } from './reply-parts.ts'

export interface DraftOptions {
  readonly owned: { readonly inbox: Pick<OwnedStore['inbox'], 'draft'>; readonly lease: Pick<Lease, 'mayAct'> }
  readonly clock: Clock
  readonly log: Logger
  readonly channel: Channel
  readonly started: StartedMessage
  readonly partsOf: ReplyParts
  /** Aborts when the daemon stops. */
  readonly signal: AbortSignal
}

const PLACEHOLDER = '…'
/** Text beyond this multiple of a message's length is not read for a draft, which shows one message. */
const READ_LENGTHS = 4
/** The longest delay of the turn by sending the draft, and of the reply by one edit. */
const SEND_MS_MAX = 5000

/** Resolves to undefined if the channel shows no drafts or the draft could not be sent; the reply is then an ordinary message. */
export async function openDraft(options: DraftOptions): Promise<Draft | undefined> {
  const { channel, started, owned, log } = options
  if (!channel.update) return undefined
  // Also where the channel shows no drafts any more: the whole reply replaces it.
  if (started.draft !== null) return new Draft(options, started.draft)
  if (channel.draftEveryMs === undefined) return undefined
  try {
    const message = { text: PLACEHOLDER, clientId: `draft-${started.turnId}` }
    using limit = signalScope([options.signal], SEND_MS_MAX)
    if (!owned.lease.mayAct()) return undefined
    const { id } = await channel.send(started.message.to, message, limit.signal)
    await owned.inbox.draft(started.number, id)
    return new Draft(options, id)
  } catch (error) {
    log.debug('draft not sent', { channel: channel.name, inbox: started.number, error })
    return undefined
  }
}

export class Draft {
  /** The platform's id of the message. */
  readonly id: string
  readonly #options: DraftOptions
  readonly #stopped = new AbortController()
  /** The text so far, and the part of it that the message shows. */
  #text = ''
  #shown = ''
  #showing: Promise<void> | undefined

  constructor(options: DraftOptions, id: string) {
    this.#options = options
    this.id = id
  }

  /** Takes a part of the turn. */
  readonly onPart = (part: TurnPart): void => {
    // Text before a tool call is not part of the answer.
    if (part.type === 'tool_call') this.#text = ''
    if (part.type !== 'text' || this.#options.channel.draftEveryMs === undefined || this.#stopped.signal.aborted) return
    this.#text += part.delta
    if (this.#text.trim() !== '') this.#showing ??= this.#show()
  }

  /** Edits no more. Resolves once no edit is under way, so that none can arrive after the reply. Idempotent. */
  async stop(): Promise<void> {
    this.#stopped.abort()
    await this.#showing
  }

  /** Edits as long as there is new text, with the channel's delay after each edit. */
  async #show(): Promise<void> {
    const { channel, clock, log, owned, partsOf, started } = this.#options
    const { limits } = channel
    const shorter = { ...channel, limits: { ...limits, text: limits.text - measure(PLACEHOLDER, limits.unit) } }
    try {
      for (let next = this.#text; next !== this.#shown && !this.#stopped.signal.aborted; next = this.#text) {
        this.#shown = next
        if (!owned.lease.mayAct()) return this.#stopped.abort()
        const [first = { text: '' }] = partsOf(next.slice(0, READ_LENGTHS * limits.text), shorter)
        const delayMs = await this.#edit(asOutbound({ ...first, text: first.text + PLACEHOLDER }, channel))
        await clock.sleep(delayMs, this.#stopped.signal)
      }
    } catch (error) {
      this.#stopped.abort()
      log.debug('draft not edited', { channel: channel.name, inbox: started.number, error })
    } finally {
      this.#showing = undefined
    }
  }

  /** Resolves to the delay before the next edit. */
  async #edit(part: ReturnType<typeof asOutbound>): Promise<number> {
    const { channel, started, signal } = this.#options
    const everyMs = channel.draftEveryMs ?? 0
    try {
      using limit = signalScope([signal], SEND_MS_MAX)
      await channel.update?.(started.message.to, { id: this.id }, { ...part, clientId: `draft-${started.turnId}` }, limit.signal)
      return everyMs
    } catch (error) {
      if (error instanceof AppError && error.code === 'rate_limited') return Math.max(everyMs, (error.retryAfterSecs ?? 1) * 1000)
      throw error
    }
  }
}
