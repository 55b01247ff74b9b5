/**
 * The notifications on their way: one after another for each device, with retries while they are of use. They are in memory only, so a
 * restart drops those that wait, and none is sent twice (docs/web-push.md#what-is-promised).
 */
import { backoffMs } from '@sluice/kit'
import type { Host } from '@sluice/sdk'
import { type PushMessage, type PushOutcome, type PushSender, sendPush } from './push-request.ts'
import type { Subscription, Subscriptions } from './subscriptions.ts'

const WAITING_PER_DEVICE_MAX = 20
const RETRY = { firstMs: 5_000, longestMs: 600_000 } as const

export interface Notification extends Omit<PushMessage, 'ttlSecs'> {
  /** After this time nobody needs it. */
  readonly untilMs: number
  /** Whether a device is told; asked again before each attempt, because its role may have changed. */
  concerns(device: Subscription['device']): boolean
  /** Whether it is still of use; asked before each attempt. */
  isOpen(): Promise<boolean>
}

export class Outgoing {
  readonly #host: Pick<Host, 'clock' | 'log' | 'publicFetch'>
  readonly #sender: PushSender
  readonly #subscriptions: Subscriptions
  readonly #ended = new AbortController()
  /** What waits for each device: their number, and the end of the last. */
  readonly #waiting = new Map<string, { count: number; last: Promise<void> }>()

  constructor(host: Pick<Host, 'clock' | 'log' | 'publicFetch'>, sender: PushSender, subscriptions: Subscriptions) {
    this.#host = host
    this.#sender = sender
    this.#subscriptions = subscriptions
  }

  /** Queues the notification for each device that it concerns. */
  async notify(notification: Notification): Promise<void> {
    const concerned = (await this.#subscriptions.list()).filter(({ device }) => notification.concerns(device))
    for (const { device } of concerned) this.#queue(device.id, notification)
  }

  /** Sends one notification now, without a retry. Resolves to undefined when the device has no subscription. */
  async sendNow(device: string, notification: Notification): Promise<PushOutcome | undefined> {
    const subscription = await this.#subscriptions.of(device)
    return subscription && this.#attempt(subscription, notification)
  }

  /** Ends the attempts and drops what waits. */
  async close(): Promise<void> {
    this.#ended.abort()
    await Promise.all([...this.#waiting.values()].map(({ last }) => last))
  }

  #queue(device: string, notification: Notification): void {
    const waiting = this.#waiting.get(device) ?? { count: 0, last: Promise.resolve() }
    if (waiting.count >= WAITING_PER_DEVICE_MAX) {
      this.#host.log.warn('notification of a browser dropped: too many wait', { device, waiting: waiting.count })
      return
    }
    waiting.count += 1
    waiting.last = waiting.last
      .then(() => this.#deliver(device, notification))
      .catch((error: unknown) => this.#host.log.error('notification of a browser not sent', { device, error }))
      .finally(() => {
        waiting.count -= 1
        if (waiting.count === 0) this.#waiting.delete(device)
      })
    this.#waiting.set(device, waiting)
  }

  async #deliver(device: string, notification: Notification): Promise<void> {
    const { clock, log } = this.#host
    for (let failures = 0; !this.#ended.signal.aborted; failures++) {
      const subscription = await this.#subscriptions.of(device)
      if (!subscription || !notification.concerns(subscription.device)) return
      if (clock.nowMs() >= notification.untilMs || !(await notification.isOpen())) return
      const outcome = await this.#attempt(subscription, notification)
      if (outcome.kind !== 'retry') return
      const delayMs = Math.max(outcome.afterMs, backoffMs(failures, RETRY))
      if (clock.nowMs() + delayMs >= notification.untilMs) {
        log.warn('notification of a browser given up', { device, service: subscription.endpoint.host, reason: outcome.reason })
        return
      }
      await clock.sleep(delayMs, this.#ended.signal)
    }
  }

  async #attempt(subscription: Subscription, { shown, urgency, untilMs }: Notification): Promise<PushOutcome> {
    const { clock, log } = this.#host
    const ttlSecs = Math.max(0, Math.floor((untilMs - clock.nowMs()) / 1000))
    const outcome = await sendPush(this.#sender, subscription, { shown, urgency, ttlSecs }, this.#ended.signal)
    const about = { device: subscription.device.id, service: subscription.endpoint.host }
    if (outcome.kind === 'gone') {
      await this.#subscriptions.drop(subscription)
      log.info('notifications of a browser turned off: its push service has ended the subscription', about)
    }
    if (outcome.kind === 'refused') log.warn('notification of a browser refused', { ...about, reason: outcome.reason })
    return outcome
  }
}
