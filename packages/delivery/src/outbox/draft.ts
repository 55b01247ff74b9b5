/**
 * Shows a reply while the model writes it: as a preview that the platform removes by itself, or as one message that is edited while the text
 * grows. The outbox replaces that message by the whole reply.
 */

import type { TurnPart } from '@sluice/agent'
import { measure, signalScope } from '@sluice/kit'
import {
  AppError,
  type Channel,
  type Clock,
  type Lease,
  type Logger,
  type Outbound,
  type OwnedStore,
  type StartedMessage,
} from '@sluice/sdk'
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
    const clientId = clientIdOf(started)
    using limit = signalScope([options.signal], SEND_MS_MAX)
    if (!owned.lease.mayAct()) return undefined
    if (await channel.preview?.(started.message.to, { text: '', clientId }, limit.signal)) return new Draft(options, undefined)
    const message = { text: PLACEHOLDER, clientId }
    const { id } = await channel.send(started.message.to, message, limit.signal)
    await owned.inbox.draft(started.number, id)
    return new Draft(options, id)
  } catch (error) {
    log.debug('draft not sent', { channel: channel.name, inbox: started.number, error })
    return undefined
  }
}

const clientIdOf = ({ turnId }: StartedMessage): string => `draft-${turnId}`

export class Draft {
  /** The platform's id of the message. Undefined for a preview. */
  readonly id: string | undefined
  readonly #options: DraftOptions
  /** Aborts at the end, and when the platform refuses the draft. */
  readonly #stopped = new AbortController()
  #isOver = false
  /** The text so far, and the part of it that is shown. */
  #text = ''
  #shown = ''
  #showing: Promise<void> | undefined

  constructor(options: DraftOptions, id: string | undefined) {
    this.#options = options
    this.id = id
  }

  /**
   * Shows a preview again before the platform removes it, and so says that the reply is being written. After a failure of the preview, the typing
   * indicator says so. Undefined for a message.
   */
  get renew(): NonNullable<Channel['typing']> | undefined {
    if (this.id !== undefined) return undefined
    return async (to, signal) => {
      if (this.#isOver) return
      if (this.#stopped.signal.aborted) return this.#options.channel.typing?.(to, signal)
      this.#showing ??= this.#show(true)
      await this.#showing
    }
  }

  /** Takes a part of the turn. */
  readonly onPart = (part: TurnPart): void => {
    // Text before a tool call is not part of the answer.
    if (part.type === 'tool_call') this.#text = ''
    if (part.type !== 'text' || this.#options.channel.draftEveryMs === undefined || this.#stopped.signal.aborted) return
    this.#text += part.delta
    if (this.#text.trim() !== '') this.#showing ??= this.#show()
  }

  /** Shows no more. Resolves once no call is under way, so that none can arrive after the reply. Idempotent. */
  async stop(): Promise<void> {
    this.#isOver = true
    this.#stopped.abort()
    await this.#showing
  }

  /** Shows the text as long as there is new text, with the channel's delay after each call. */
  async #show(isRenewed = false): Promise<void> {
    const { channel, clock, log, owned, started } = this.#options
    try {
      let isDue = isRenewed
      for (let next = this.#text; isDue || next !== this.#shown; next = this.#text) {
        if (this.#stopped.signal.aborted) return
        isDue = false
        this.#shown = next
        if (!owned.lease.mayAct()) return this.#stopped.abort()
        await clock.sleep(await this.#put(this.#outboundOf(next)), this.#stopped.signal)
      }
    } catch (error) {
      this.#stopped.abort()
      log.debug('draft not shown', { channel: channel.name, inbox: started.number, error })
    } finally {
      this.#showing = undefined
    }
  }

  /** Returns the beginning of the text that one message has room for. A message, unlike a preview, ends with a sign that more comes. */
  #outboundOf(text: string): Outbound {
    const { channel, partsOf, started } = this.#options
    const { limits } = channel
    const more = this.id === undefined ? '' : PLACEHOLDER
    const shorter = { ...channel, limits: { ...limits, text: limits.text - measure(more, limits.unit) } }
    const [first = { text: '' }] = partsOf(text.slice(0, READ_LENGTHS * limits.text), shorter)
    return { ...asOutbound({ ...first, text: first.text + more }, channel), clientId: clientIdOf(started) }
  }

  /** Resolves to the delay before the next call. */
  async #put(message: Outbound): Promise<number> {
    const { channel, started, signal } = this.#options
    const { to } = started.message
    const everyMs = channel.draftEveryMs ?? 0
    try {
      using limit = signalScope([signal], SEND_MS_MAX)
      if (this.id !== undefined) await channel.update?.(to, { id: this.id }, message, limit.signal)
      else if (!(await channel.preview?.(to, message, limit.signal))) this.#stopped.abort()
      return everyMs
    } catch (error) {
      if (error instanceof AppError && error.code === 'rate_limited') return Math.max(everyMs, (error.retryAfterSecs ?? 1) * 1000)
      throw error
    }
  }
}
