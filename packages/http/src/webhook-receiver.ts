/** Takes the requests to one webhook of a chat platform: verifies the raw bytes, parses them and hands over the messages. */
import { type IngressWatch, watchIngress } from '@sluice/delivery'
import type { Runtime, Snapshot } from '@sluice/runtime'
import { AppError, type Channel, type Raw, type Trace, type Verified, type Webhook } from '@sluice/sdk'
import type { AppParts, Intake } from './app-parts.ts'
import { BODY_BYTES_MAX } from './body.ts'
import { RefusalLog } from './refusal-log.ts'

/** The usual answer. */
export const RECEIVED = JSON.stringify({ status: 'ok' })

const NO_INGRESS_RETRY_SECS = 5

/** A request whose body has arrived. */
export interface ArrivedRequest {
  readonly headers: Raw['headers']
  readonly body: Uint8Array
  readonly url: string
}

/** Verifies, parses and hands over the requests to one webhook. */
export class WebhookReceiver {
  readonly channel: Channel
  readonly bodyBytesMax: number
  readonly #webhook: Webhook
  readonly #intake: Intake
  readonly #runtime: Runtime
  readonly #snapshot: Snapshot
  readonly #refusals: RefusalLog
  /** True on a node of a cluster that takes no webhooks. */
  readonly #isClosed: boolean

  constructor(channel: Channel, webhook: Webhook, intake: Intake, { runtime, snapshot }: AppParts) {
    this.channel = channel
    this.#webhook = webhook
    this.#intake = intake
    this.#runtime = runtime
    this.#snapshot = snapshot
    this.#refusals = new RefusalLog(runtime)
    const { cluster } = runtime.store
    this.#isClosed = cluster !== undefined && !cluster.roles.includes('ingress')
    this.bodyBytesMax = webhook.bodyBytesMax ?? BODY_BYTES_MAX
  }

  /** Call it when the request begins. */
  watch(traceOfRequest: () => Trace): IngressWatch {
    const { wantsTraces, observe } = this.#snapshot
    const about = { channel: this.channel.name, signed: this.#webhook.unsigned === undefined }
    return watchIngress({ clock: this.#runtime.clock, traces: wantsTraces, observe }, about, wantsTraces ? traceOfRequest() : undefined)
  }

  /** Resolves to the channel's own answer once the messages are durable; undefined for the usual one. Throws `AppError` to refuse. */
  async receive(request: ArrivedRequest, watch: IngressWatch): Promise<Response | undefined> {
    if (this.#isClosed) throw noIngress()
    const webhook = this.#webhook
    const raw = new RawRequest(request, this.#runtime.clock.nowMs())
    // Most channels verify and parse without waiting.
    const verifying = this.#verify(raw, watch)
    const verified = verifying instanceof Promise ? await verifying : verifying
    const parsing = webhook.parse(raw)
    const messages = parsing instanceof Promise ? await parsing : parsing
    const { kept, duplicate, denied } = await this.#intake.receive(this.channel, {
      raw: webhook.parsesBodyAlone ? raw.body : null,
      verified,
      receivedAtMs: raw.receivedAtMs,
      messages,
      trace: watch.trace,
    })
    watch.ended(kept > 0 ? 'kept' : duplicate > 0 ? 'duplicate' : denied > 0 ? 'denied' : 'ignored')
    return webhook.answer?.(raw)
  }

  /** Call it with the error of `receive`, or of the reading of the body. */
  refused(error: unknown, watch: IngressWatch): void {
    if (error instanceof AppError && error.code === 'unavailable') watch.ended('refused')
  }

  #verify(raw: Raw, watch: IngressWatch): Verified | Promise<Verified> {
    const refuse = (error: unknown): never => {
      if (error instanceof AppError && error.code === 'unauthorized') {
        watch.ended('unauthorized')
        this.#refusals.note({ channel: this.channel.name, reason: typeof error.cause === 'string' ? error.cause : error.message })
      }
      throw error
    }
    try {
      const verified = this.#webhook.verify(raw)
      return verified instanceof Promise ? verified.catch(refuse) : verified
    } catch (error) {
      return refuse(error)
    }
  }
}

/** Parses the URL only for channels that read it. */
class RawRequest implements Raw {
  readonly headers: Raw['headers']
  readonly body: Uint8Array
  readonly receivedAtMs: number
  readonly #url: string

  constructor({ headers, body, url }: ArrivedRequest, receivedAtMs: number) {
    this.headers = headers
    this.body = body
    this.receivedAtMs = receivedAtMs
    this.#url = url
  }

  get url(): URL {
    return new URL(this.#url)
  }
}

const noIngress = (): AppError =>
  new AppError('unavailable', 'This node takes no webhooks: [cluster] roles does not name "ingress". Send them to another node.', {
    retryAfterSecs: NO_INGRESS_RETRY_SECS,
  })
