/** Takes the requests to one webhook of a chat platform: verifies the raw bytes, parses them and hands over the messages. */
import { type IngressWatch, type Reception, watchIngress } from '@sluice/delivery'
import type { Runtime, Snapshot } from '@sluice/runtime'
import { AppError, type Channel, type Inbound, type Raw, type Trace, type Verified, type Webhook } from '@sluice/sdk'
import { RefusalLog } from '../auth/refusal-log.ts'
import { BODY_BYTES_MAX } from '../request/body.ts'
import type { AppParts, Intake } from '../server/app-parts.ts'

/** The usual answer. */
export const RECEIVED = JSON.stringify({ status: 'ok' })

const NO_INGRESS_RETRY_SECS = 5

/** A request whose body has arrived. */
export interface ArrivedRequest {
  readonly headers: Raw['headers']
  readonly body: Uint8Array
  readonly url: string
}

/** The channel's own answer; undefined for the usual one. */
type Answer = Response | undefined
type Messages = readonly Inbound[]

const verdictOf = ({ kept, duplicate, denied }: Reception): Parameters<IngressWatch['ended']>[0] =>
  kept > 0 ? 'kept' : duplicate > 0 ? 'duplicate' : denied > 0 ? 'denied' : 'ignored'

/** Who waits for the answer to a request. The functions must not throw. */
export interface WaitingSender {
  received(answer: Answer | Promise<Answer>): void
  refused(error: unknown): void
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
  /** Watches every request while no observer traces. */
  readonly #untraced: IngressWatch
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
    this.#untraced = this.#watch()
  }

  /** Call it when the request begins. */
  watch(traceOfRequest: () => Trace): IngressWatch {
    return this.#snapshot.wantsTraces ? this.#watch(traceOfRequest()) : this.#untraced
  }

  #watch(parent?: Trace): IngressWatch {
    const { wantsTraces, observe } = this.#snapshot
    const about = { channel: this.channel.name, signed: this.#webhook.unsigned === undefined }
    return watchIngress({ clock: this.#runtime.clock, traces: wantsTraces, observe }, about, parent)
  }

  /** Resolves to the channel's own answer once the messages are durable; undefined for the usual one. Rejects with `AppError` to refuse. */
  receive(request: ArrivedRequest, watch: IngressWatch): Promise<Answer> {
    return new Promise((resolve, reject) => this.accept(request, watch, { received: resolve, refused: reject }))
  }

  /** As `receive`. Calls one of the functions of `sender`, perhaps before it returns. */
  accept(request: ArrivedRequest, watch: IngressWatch, sender: WaitingSender): void {
    try {
      if (this.#isClosed) throw noIngress()
      const webhook = this.#webhook
      const raw = new RawRequest(request, this.#runtime.clock.nowMs())
      const verified = this.#verify(raw, watch)
      const messages = verified instanceof Promise ? verified.then(() => webhook.parse(raw)) : webhook.parse(raw)
      // Most channels verify and parse without waiting.
      const kept =
        verified instanceof Promise || messages instanceof Promise
          ? this.#keepLater(raw, verified, messages, watch)
          : this.#keep(raw, verified, messages, watch)
      kept.then(
        (reception) => this.#received(reception, raw, watch, sender),
        (error) => sender.refused(error),
      )
    } catch (error) {
      sender.refused(error)
    }
  }

  #received(reception: Reception, raw: Raw, watch: IngressWatch, sender: WaitingSender): void {
    try {
      watch.ended(verdictOf(reception))
      sender.received(this.#webhook.answer?.(raw))
    } catch (error) {
      sender.refused(error)
    }
  }

  async #keepLater(
    raw: Raw,
    verified: Verified | Promise<Verified>,
    messages: Messages | Promise<Messages>,
    watch: IngressWatch,
  ): Promise<Reception> {
    const [proof, parsed] = await Promise.all([verified, messages])
    return this.#keep(raw, proof, parsed, watch)
  }

  #keep(raw: Raw, verified: Verified, messages: Messages, { trace }: IngressWatch): Promise<Reception> {
    return this.#intake.receive(this.channel, {
      raw: this.#webhook.parsesBodyAlone ? raw.body : null,
      verified,
      receivedAtMs: raw.receivedAtMs,
      messages,
      trace,
    })
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

/** Builds and parses the URL only for channels that read it. */
class RawRequest implements Raw {
  readonly headers: Raw['headers']
  readonly body: Uint8Array
  readonly receivedAtMs: number
  readonly #request: ArrivedRequest

  constructor(request: ArrivedRequest, receivedAtMs: number) {
    this.headers = request.headers
    this.body = request.body
    this.receivedAtMs = receivedAtMs
    this.#request = request
  }

  get url(): URL {
    return new URL(this.#request.url)
  }
}

const noIngress = (): AppError =>
  new AppError('unavailable', 'This node takes no webhooks: [cluster] roles does not name "ingress". Send them to another node.', {
    retryAfterSecs: NO_INGRESS_RETRY_SECS,
  })
