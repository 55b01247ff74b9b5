/**
 * Shows a reply in a private chat while it is written, by live drafts: https://core.telegram.org/bots/api#sendmessagedraft. They are not
 * messages. Telegram removes one after 30 seconds, and with the next message of the bot.
 */
import { createHash } from 'node:crypto'
import { BoundedMap } from '@sluice/kit'
import type { Address, Host, Outbound } from '@sluice/sdk'
import { type BotApi, refusalOf } from './api.ts'
import { entitiesOf, withoutRefusedEntities } from './entities.ts'

/** How long the method is not called again after a refusal. */
const REFUSED_MS = 3_600_000
/** Servers of before version 9.3 of the Bot API do not know the method. */
const UNKNOWN_METHOD = 404
/** Later servers refused the method to most bots, and all refuse it for some chats, such as one whose topic was deleted. */
const REFUSED = 400
/** The key of a refusal that holds for all chats. */
const ALL = ''
const CHATS_MAX = 1000

export class LiveDrafts {
  readonly #host: Host
  readonly #api: BotApi
  /** When each refusal ends, by the chat. */
  readonly #refusedUntilMs = new BoundedMap<string, number>(CHATS_MAX)

  constructor(host: Host, api: BotApi) {
    this.#host = host
    this.#api = api
  }

  /** See `Channel.preview`. */
  async show({ to, thread }: Address, { text, styles, clientId }: Outbound, signal: AbortSignal): Promise<boolean> {
    const { clock, log } = this.#host
    const user = Number(to)
    if (!(user > 0) || this.#isRefused(to) || this.#isRefused(ALL)) return false
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
      if (refusal?.code !== REFUSED && refusal?.code !== UNKNOWN_METHOD) throw error
      // The refusal of a text says nothing about other drafts.
      if (text === '') this.#refusedUntilMs.set(refusal.code === REFUSED ? to : ALL, clock.monotonicMs() + REFUSED_MS)
      log.debug('live draft refused', { channel: 'telegram', chat: to, reason: refusal.description })
      return false
    }
  }

  #isRefused(chat: string): boolean {
    return this.#host.clock.monotonicMs() < (this.#refusedUntilMs.get(chat) ?? Number.NEGATIVE_INFINITY)
  }
}

/** Returns a positive number of 31 bits, which is the same for all drafts of a reply. */
function numberOf(clientId: string): number {
  return (createHash('sha256').update(clientId).digest().readUInt32BE() >>> 1) | 1
}
