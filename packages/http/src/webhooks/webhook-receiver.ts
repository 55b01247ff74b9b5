/** Takes the requests to one webhook of a chat platform: verifies the raw bytes, parses them and hands over the messages. */
import { type IngressWatch, type Reception, watchIngress } from '@sluice/delivery'
import type { Runtime, Snapshot } from '@sluice/runtime'
import { AppError, type Channel, type Inbound, type Raw, type Trace, type Verified, type Webhook } from '@sluice/sdk'
import { RefusalLog } from '../auth/refusal-log.ts'
import { checkDeclaredSize } from '../middleware/body.ts'
import { checkNames } from '../middleware/origin.ts'
import { BODY_BYTES_MAX, type BodyRoom } from '../request/body.ts'
import type { BodyBudget } from '../request/body-budget.ts'
import { ParsedHeaders } from '../request/context.ts'
import type { AppParts, Intake } from '../server/app-parts.ts'

const NO_INGRESS_RETRY_SECS = 5

/** One request to a webhook, of Node's server or of a program that passes requests on. */
export interface WebhookRequest {
  readonly headers: Raw['headers']
  readonly url: string
  /** See `Peer.address`. */
  readonly address: string
  readonly trace: Trace
  /** Reads the body once; see `readBody`. */
  readBody(bytesMax: number, room: BodyRoom): Promise<Uint8Array>
}

const verdictOf = ({ kept, duplicate, denied }: Reception): Parameters<IngressWatch['ended']>[0] =>
  kept > 0 ? 'kept' : duplicate > 0 ? 'duplicate' : denied > 0 ? 'denied' : 'ignored'

/** Serves the requests to one webhook, signed or not. The first step that refuses answers. */
export class WebhookReceiver {
  readonly #channel: Channel
  readonly #webhook: Webhook
  readonly #bodyBytesMax: number
  readonly #intake: Intake
  readonly #runtime: Runtime
  readonly #snapshot: Snapshot
  readonly #budget: BodyBudget
  readonly #refusals: RefusalLog

  constructor(channel: Channel, webhook: Webhook, intake: Intake, { runtime, snapshot, budget }: AppParts) {
    this.#channel = channel
    this.#webhook = webhook
    this.#bodyBytesMax = webhook.bodyBytesMax ?? BODY_BYTES_MAX
    this.#intake = intake
    this.#runtime = runtime
    this.#snapshot = snapshot
    this.#budget = budget
    this.#refusals = new RefusalLog(runtime)
  }

  /** Resolves to the channel's own answer once the messages are durable; undefined for the usual one. Rejects to refuse. */
  async receive(request: WebhookRequest): Promise<Response | undefined> {
    checkDeclaredSize(new ParsedHeaders(request.headers), this.#bodyBytesMax)
    this.#guardUnsigned(request)
    const contact = this.#webhook.contact?.({
      method: 'POST',
      url: new URL(request.url),
      headers: new Headers(Object.entries(request.headers).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : []))),
    })
    if (contact) return contact
    const watch = this.#watch(request)
    const room = this.#budget.open(this.#channel.name, request.address)
    try {
      const body = await request.readBody(this.#bodyBytesMax, room)
      room.complete()
      this.#checkRole()
      const raw = new RawRequest(request, body, this.#runtime.clock.nowMs())
      watch.ended(verdictOf(await this.#keep(raw, watch)))
      return await this.#webhook.answer?.(raw)
    } catch (error) {
      if (error instanceof AppError && error.code === 'unavailable') watch.ended('refused')
      throw error
    } finally {
      room.release()
    }
  }

  /**
   * Refuses an unsigned webhook with `unavailable` where other machines can reach it, unless `[gateway]` allows it, and with
   * `forbidden` if it comes from a web page: platforms send no `Origin`.
   */
  #guardUnsigned({ headers }: WebhookRequest): void {
    const { name } = this.#channel
    const { unsigned } = this.#webhook
    const { gateway } = this.#snapshot
    if (unsigned === undefined) return
    if (this.#intake.refusesUnsigned() && !gateway.allow_unsigned_webhooks) {
      throw new AppError(
        'unavailable',
        `${name} is not served here: [channels_config.${name}] ${unsigned} is not set, and the address is not loopback`,
      )
    }
    if (headers.origin !== undefined) checkNames(new ParsedHeaders(headers), gateway)
  }

  #watch(request: WebhookRequest): IngressWatch {
    const { wantsTraces, observe } = this.#snapshot
    const about = { channel: this.#channel.name, signed: this.#webhook.unsigned === undefined }
    const parent = wantsTraces ? request.trace : undefined
    return watchIngress({ clock: this.#runtime.clock, traces: wantsTraces, observe }, about, parent)
  }

  /** Refuses every request on a node of a cluster that takes no webhooks. */
  #checkRole(): void {
    const { cluster } = this.#runtime.store
    if (cluster && !cluster.roles.includes('ingress'))
      throw new AppError(
        'unavailable',
        'This node takes no webhooks: [cluster] roles does not name "ingress". Send them to another node.',
        {
          retryAfterSecs: NO_INGRESS_RETRY_SECS,
        },
      )
  }

  async #keep(raw: Raw, watch: IngressWatch): Promise<Reception> {
    const verified = await this.#verify(raw, watch)
    const messages: readonly Inbound[] = await this.#webhook.parse(raw)
    const reports = this.#webhook.reports?.(raw) ?? []
    if (reports.length > 0) await this.#intake.report(this.#channel, reports)
    return this.#intake.receive(this.#channel, {
      raw: this.#webhook.parsesBodyAlone ? raw.body : null,
      verified,
      receivedAtMs: raw.receivedAtMs,
      messages,
      trace: watch.trace,
    })
  }

  async #verify(raw: Raw, watch: IngressWatch): Promise<Verified> {
    try {
      return await this.#webhook.verify(raw)
    } catch (error) {
      if (error instanceof AppError && error.code === 'unauthorized') {
        watch.ended('unauthorized')
        this.#refusals.note({ channel: this.#channel.name, reason: typeof error.cause === 'string' ? error.cause : error.message })
      }
      throw error
    }
  }
}

/** Parses the URL only for channels that read it. */
class RawRequest implements Raw {
  readonly headers: Raw['headers']
  readonly body: Uint8Array
  readonly receivedAtMs: number
  readonly #request: WebhookRequest

  constructor(request: WebhookRequest, body: Uint8Array, receivedAtMs: number) {
    this.headers = request.headers
    this.body = body
    this.receivedAtMs = receivedAtMs
    this.#request = request
  }

  get url(): URL {
    return new URL(this.#request.url)
  }
}
