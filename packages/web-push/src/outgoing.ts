/**
 * The notifications on their way: one after another for each device, with retries while they are of use. They are in memory only, so a
 * restart drops the waiting ones, and none is sent twice (docs/web-push.md#what-is-promised).
 */
import { backoffMs, signalScope } from '@sluice/kit'
import type { Host } from '@sluice/sdk'
import { type PushMessage, type PushOutcome, type PushSender, sendPush } from './push-request.ts'
import type { Subscription, Subscriptions } from './subscriptions.ts'

const WAITING_PER_DEVICE_MAX = 20
const RETRY = { firstMs: 5_000, longestMs: 120_000 } as const
/** The longest pause that a push service can ask for. */
const PAUSE_MS_MAX = 24 * 3_600_000
/** During a pause, the interval of looks at whether the subscription has changed, and whether the notifications are still of use. */
const LOOK_MS = 60_000

export interface Notification extends Omit<PushMessage, 'ttlSecs'> {
  /** After this time it is of no use. */
  readonly untilMs: number
  /** Whether a device gets it; asked again before each attempt, because its role may have changed. */
  concerns(device: Subscription['device']): boolean
  /** Whether it is still of use; asked before each attempt. */
  isOpen(): Promise<boolean>
}

/** A time without attempts, after a failure. */
interface Pause {
  readonly untilMs: number
  /** The failures since the last success. */
  readonly failures: number
  readonly reason: string
}

/** The notifications that wait for one device. A push service limits each subscription (RFC 8030, section 8.4), so the pause ends with it. */
interface Queue {
  readonly waiting: Set<Notification>
  /** `Subscription.stored` of the last attempt. */
  stored: string | undefined
  pause: Pause | undefined
  /** Ends the present wait for the end of the pause. */
  woken: AbortController
  ended: Promise<void>
}

export class Outgoing {
  readonly #host: Pick<Host, 'clock' | 'log' | 'publicFetch'>
  readonly #sender: PushSender
  readonly #subscriptions: Subscriptions
  readonly #ended = new AbortController()
  /** By device, while notifications wait or a pause lasts. */
  readonly #queues = new Map<string, Queue>()

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
    await Promise.all([...this.#queues.values()].map(({ ended }) => ended))
  }

  #queue(device: string, notification: Notification): void {
    const queue = this.#queues.get(device)
    if (!queue) {
      const waiting = new Set([notification])
      const made: Queue = { waiting, stored: undefined, pause: undefined, woken: new AbortController(), ended: Promise.resolve() }
      this.#queues.set(device, made)
      made.ended = this.#run(device, made)
    } else if (queue.waiting.size < WAITING_PER_DEVICE_MAX) {
      queue.waiting.add(notification)
      queue.woken.abort()
    } else this.#host.log.warn('notification of a browser dropped: too many wait', { device, waiting: queue.waiting.size })
  }

  /** Sends until nothing waits and no pause lasts. */
  async #run(device: string, queue: Queue): Promise<void> {
    const { waiting } = queue
    while ((waiting.size > 0 || queue.pause) && !this.#ended.signal.aborted) {
      for (const notification of waiting)
        await this.#take(device, queue, notification).catch((error: unknown) => {
          waiting.delete(notification)
          this.#host.log.error('notification of a browser not sent', { device, error })
        })
      await this.#rest(queue)
    }
    this.#queues.delete(device)
  }

  /** Sends a notification, drops it when it is of no use any more, or leaves it where it is during a pause. */
  async #take(device: string, queue: Queue, notification: Notification): Promise<void> {
    const { waiting } = queue
    if (this.#ended.signal.aborted) return
    const subscription = await this.#subscriptions.of(device)
    if (!subscription) return waiting.clear()
    if (subscription.stored !== queue.stored) queue.pause = undefined
    queue.stored = subscription.stored
    if (!(await this.#isOfUse(notification, subscription, queue.pause))) return void waiting.delete(notification)
    if (this.#isPaused(queue)) return
    const outcome = await this.#attempt(subscription, notification)
    waiting.delete(notification)
    if (outcome.kind !== 'retry') {
      queue.pause = undefined
      return
    }
    // It goes to the end, so that a message which its push service cannot take holds no other one back.
    waiting.add(notification)
    this.#pause(queue, outcome)
  }

  async #isOfUse(notification: Notification, { device, endpoint }: Subscription, pause: Pause | undefined): Promise<boolean> {
    const { clock, log } = this.#host
    if (!notification.concerns(device)) return false
    if (clock.nowMs() < notification.untilMs) return notification.isOpen()
    const reason = pause?.reason ?? 'others were sent before it'
    log.warn('notification of a browser given up', { device: device.id, service: endpoint.host, reason })
    return false
  }

  #isPaused({ pause }: Queue): boolean {
    return pause !== undefined && this.#host.clock.nowMs() < pause.untilMs
  }

  #pause(queue: Queue, { afterMs, reason }: Extract<PushOutcome, { readonly kind: 'retry' }>): void {
    const failures = queue.pause?.failures ?? 0
    const delayMs = Math.max(Math.min(afterMs, PAUSE_MS_MAX), backoffMs(failures, RETRY))
    queue.pause = { untilMs: this.#host.clock.nowMs() + delayMs, failures: failures + 1, reason }
  }

  /** Waits during a pause, until the next look is due or another notification comes. */
  async #rest(queue: Queue): Promise<void> {
    if (!queue.pause) return
    if (!this.#isPaused(queue)) {
      if (queue.waiting.size === 0) queue.pause = undefined
      return
    }
    const { clock } = this.#host
    queue.woken = new AbortController()
    using until = signalScope([this.#ended.signal, queue.woken.signal])
    await clock.sleep(Math.min(LOOK_MS, queue.pause.untilMs - clock.nowMs()), until.signal)
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
