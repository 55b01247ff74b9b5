/**
 * Shows a reply in a private chat while it is written, by live drafts: https://core.telegram.org/bots/api#sendmessagedraft. They are not
 * messages. Telegram removes one after 30 seconds, and with the next message of the bot.
 */
import { createHash } from 'node:crypto'
import type { Address, Host, Outbound } from '@sluice/sdk'
import { type BotApi, refusalOf } from './api.ts'
import { entitiesOf, withoutRefusedEntities } from './entities.ts'

/** How long a server that has refused the method is not asked again. */
const REFUSED_MS = 3_600_000
/** Servers of before version 9.3 of the Bot API do not know the method (404), and later ones refused it to most bots (400). */
const REFUSALS = [400, 404]

export class LiveDrafts {
  readonly #host: Host
  readonly #api: BotApi
  #refusedUntilMs = Number.NEGATIVE_INFINITY

  constructor(host: Host, api: BotApi) {
    this.#host = host
    this.#api = api
  }

  /** See `Channel.preview`. */
  async show({ to, thread }: Address, { text, styles, clientId }: Outbound, signal: AbortSignal): Promise<boolean> {
    const { clock, log } = this.#host
    const user = Number(to)
    if (!(user > 0) || clock.monotonicMs() < this.#refusedUntilMs) return false
    const draft = {
      chat_id: user,
      ...(thread !== undefined && { message_thread_id: Number(thread) }),
      draft_id: numberOf(clientId),
      text,
    }
    try {
      await withoutRefusedEntities(entitiesOf(styles), (shown) => this.#api.call('sendMessageDraft', { ...draft, ...shown }, { signal }))
      return true
    } catch (error) {
      const refusal = refusalOf(error)
      if (!refusal || !REFUSALS.includes(refusal.code)) throw error
      // The refusal of a text says nothing about other drafts.
      if (text === '') this.#refusedUntilMs = clock.monotonicMs() + REFUSED_MS
      log.debug('live draft refused', { channel: 'telegram', chat: to, reason: refusal.description })
      return false
    }
  }
}

/** Returns a positive number of 31 bits, which is the same for all drafts of a reply. */
function numberOf(clientId: string): number {
  return (createHash('sha256').update(clientId).digest().readUInt32BE() >>> 1) | 1
}
