/** The channel at work: its relays, and the messages that it receives and sends. */
import { downloadFile } from '@sluice/kit'
import {
  type Address,
  AppError,
  type Attachment,
  type Deliver,
  type Host,
  type ListenContext,
  type Media,
  type Outbound,
  type Sent,
} from '@sluice/sdk'
import type { RelaynetConfig } from './config.ts'
import { decodeFile, decryptFile } from './encrypted-file.ts'
import { ForeignRelays } from './foreign-relays.ts'
import { Identity } from './identity.ts'
import { Intake } from './intake.ts'
import type { Positions } from './positions.ts'
import { shownUrl } from './relay-link.ts'
import { findList, RELAY_LIST, RelayLists, relaysIn } from './relay-list.ts'
import { Relays } from './relays.ts'
import { type Sender, sendMessage } from './send.ts'
import { Stamps } from './stamps.ts'

/** Other relays get this time to connect before the bot's list of relays is looked for. */
const ANNOUNCE_MS = 15_000
const GCM_TAG_BYTES = 16

export class Connection {
  readonly #host: Host
  readonly #config: RelaynetConfig
  readonly #positions: Positions
  readonly #identity: Identity
  readonly #relays: Relays
  readonly #foreign: ForeignRelays
  readonly #sender: Sender
  /** Takes the messages of all connections until `signal` aborts. */
  #intake: { readonly signal: AbortSignal; readonly intake: Intake } | undefined

  constructor(host: Host, config: RelaynetConfig, positions: Positions) {
    this.#host = host
    this.#config = config
    this.#positions = positions
    const identity = Identity.from(config.private_key)
    this.#identity = identity
    const relays = new Relays({ host, urls: config.relays, identity, positions })
    this.#relays = relays
    this.#foreign = new ForeignRelays(host)
    this.#sender = {
      identity,
      stamps: new Stamps(host.keyValue, host.clock),
      lists: new RelayLists(host.clock),
      foreign: this.#foreign,
      links: () => relays.links,
      blossom: config.blossom_url === undefined ? undefined : { fetch: host.fetch, url: config.blossom_url, clock: host.clock },
    }
    positions.onFlush = () => relays.advance()
  }

  /** See `Channel.listen`. */
  async listen(deliver: Deliver, context: ListenContext): Promise<void> {
    const { signal } = context
    this.#positions.keepOnly(this.#config.relays)
    if (this.#intake?.signal !== signal) {
      const { identity, positions, host } = { identity: this.#identity, positions: this.#positions, host: this.#host }
      this.#intake = { signal, intake: new Intake({ host, identity, positions, deliver, signal }) }
      void this.#announce(signal)
    }
    const { intake } = this.#intake
    await this.#relays.listen(intake, context)
    await intake.settled()
  }

  /** See `Channel.send`. */
  send(to: Address, message: Outbound, signal: AbortSignal): Promise<Sent> {
    return sendMessage(this.#sender, to, message, signal)
  }

  /** See `Channel.fetchMedia`: downloads a file that a sender named, from a public address, and decrypts it. */
  async fetchMedia({ source, mime }: Attachment, bytesMax: number, signal: AbortSignal): Promise<Media> {
    const file = 'id' in source ? decodeFile(source.id) : undefined
    if (!file) throw new AppError('invalid_request', 'The attachment is not an encrypted file')
    const { bytes } = await downloadFile({
      provider: 'the server of the file',
      bytesMax: bytesMax + GCM_TAG_BYTES,
      signal,
      isAuthorized: false,
      request: (during) => this.#host.publicFetch(file.url, { signal: during, responseBytesMax: bytesMax + GCM_TAG_BYTES }),
    })
    return { bytes: decryptFile(bytes, file), ...(mime && { mime }) }
  }

  close(): void {
    this.#foreign.close()
  }

  /** Publishes the list of relays on which the bot receives messages, if it has none: many clients write only to these. */
  async #announce(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#host
    while (this.#relays.links.length === 0 && !signal.aborted) await clock.sleep(ANNOUNCE_MS, signal)
    await clock.sleep(ANNOUNCE_MS, signal)
    const { links } = this.#relays
    const { relays } = this.#config
    if (signal.aborted || links.length === 0) return
    const { list, isComplete } = await findList(this.#identity.pubkey, links, signal)
    if (list && !relaysIn(list).some((relay) => relays.includes(relay))) {
      log.warn('the published list of relays for private messages (kind 10050) has none of `relays`, so clients write elsewhere', {
        channel: 'relaynet',
        listed: relaysIn(list).slice(0, 10).map(shownUrl),
      })
    }
    if (list || !isComplete || signal.aborted || !this.#config.publish_relay_list) return
    // A query may hold a credential, and everyone can read the list.
    const published = relays.filter((relay) => relay === shownUrl(relay))
    if (published.length === 0) {
      log.warn('no list of relays for private messages (kind 10050) is published, because each URL in `relays` has a query', {
        channel: 'relaynet',
      })
      return
    }
    const tags = published.map((relay) => ['relay', relay])
    const event = this.#identity.sign({ kind: RELAY_LIST, created_at: Math.floor(clock.nowMs() / 1000), tags, content: '' })
    const outcomes = await Promise.allSettled(links.map((link) => link.publish(event, signal)))
    const accepted = outcomes.filter(({ status }) => status === 'fulfilled').length
    log.info('published the list of relays for private messages (kind 10050)', { channel: 'relaynet', accepted, relays: links.length })
  }
}
