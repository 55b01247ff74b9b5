/** Checks the mailbox at start, on each push and every five minutes, one check at a time. */
import { SerialQueue, signalScope } from '@sluice/kit'
import { coversAddress, isTokenRefused, normaliseAddress } from '@sluice/mail-common'
import { AppError, type Deliver, errorText, type Host, isAllowed, type ListenContext } from '@sluice/sdk'
import { catchUp, type OpenMailbox } from './catch-up.ts'
import type { MailpushConfig } from './config.ts'
import { type Cursor, readCursor, readFirstPush, saveCursor, saveFirstPush } from './cursor.ts'
import type { MailApi, Subscription } from './mail-api.ts'
import { MailIntake } from './mail-intake.ts'
import { MailboxWatch } from './mailbox-watch.ts'
import { MARGIN_MS, Progress } from './progress.ts'
import type { PushNotice } from './webhook.ts'
import type { MailPolicy } from './why-ignored.ts'

/** Finds mails whose push was lost, or did not come because the subscription failed. */
const CHECK_INTERVAL_MS = 300_000
const FIRST_PUSHES_MAX = 1000

export class Connection {
  readonly #host: Host
  readonly #config: MailpushConfig
  readonly #api: MailApi
  readonly #subscription: Subscription
  readonly #watch: MailboxWatch
  /** Reads and writes of the first push. */
  readonly #firstPush = new SerialQueue({ name: 'the first push of the mailbox', tasksMax: FIRST_PUSHES_MAX })
  /** Once the mailbox has a cursor, a push contains nothing that the next history does not. */
  #hasCursor = false
  /** A push arrived since the last check began. */
  #isNotified = false
  /** Ends the sleep between two checks. */
  #sleep: AbortController | undefined
  /** The mailbox of all connections until `signal` aborts. */
  #mailbox: { readonly signal: AbortSignal; readonly opened: OpenMailbox } | undefined
  /** Ends the delay before the next attempt to listen. */
  #retrySoon = (): void => {}

  constructor(host: Host, config: MailpushConfig, api: MailApi) {
    this.#host = host
    this.#config = config
    this.#api = api
    this.#subscription = { topic: config.topic, labels: config.label_filter }
    this.#watch = new MailboxWatch(host, api, this.#subscription)
  }

  /** See `Channel.listen`. Checks the mailbox until a check fails. */
  async listen(deliver: Deliver, context: ListenContext): Promise<void> {
    const { signal, report } = context
    this.#retrySoon = context.retrySoon
    try {
      const mailbox = await this.#mailboxFor(deliver, context)
      while (!signal.aborted) {
        this.#isNotified = false
        await this.#watch.renewIfDue(signal)
        await catchUp(mailbox, signal)
        report.connected()
        report.problem(this.#watch.problem)
        await this.#sleepUntilNotified(Math.min(CHECK_INTERVAL_MS, this.#watch.dueInMs()), signal)
      }
    } catch (error) {
      if (signal.aborted) return
      throw isTokenRefused(error) ? new AppError('forbidden', errorText(error)) : error
    }
  }

  /**
   * Makes the listener check the mailbox, again if a check is running. Resolves once a restart cannot lose the push; rejects
   * if it cannot be stored.
   */
  async notify({ mailbox, historyId }: PushNotice, atMs: number): Promise<void> {
    if (!this.#hasCursor) {
      const push = { mailbox, historyId: historyId > 0n ? historyId - 1n : historyId, atMs }
      await this.#firstPush.run(() => saveFirstPush(this.#host.keyValue, push))
    }
    this.#isNotified = true
    this.#sleep?.abort()
    this.#retrySoon()
  }

  async #mailboxFor(deliver: Deliver, { signal, report }: ListenContext): Promise<OpenMailbox> {
    if (this.#mailbox?.signal === signal) return this.#mailbox.opened
    const { keyValue } = this.#host
    const { address } = await this.#api.profile(signal)
    const deliverAndReport: Deliver = async (inbound) => {
      await deliver(inbound)
      report.event()
    }
    const cursor = (await readCursor(keyValue, address)) ?? (await this.#firstCursor(address, signal))
    this.#hasCursor = true
    const opened = {
      host: this.#host,
      api: this.#api,
      subscription: this.#subscription,
      watch: this.#watch,
      intake: new MailIntake(this.#host, (id, ending) => this.#api.mail(id, ending), this.#policyFor(address), {
        deliver: deliverAndReport,
        onGap: report.gap,
      }),
      progress: new Progress(cursor, (next) => saveCursor(keyValue, address, next)),
      onGap: report.gap,
    }
    this.#mailbox = { signal, opened }
    return opened
  }

  /** Starts at the first push if that arrived before the first subscription, else at the newest change of the mailbox. */
  async #firstCursor(address: string, signal: AbortSignal): Promise<Cursor> {
    const { clock, keyValue } = this.#host
    const nowMs = clock.nowMs()
    const newest = await this.#watch.newestHistoryId(signal)
    const begin = await this.#firstPush.run(() => readFirstPush(keyValue, address))
    const cursor =
      begin && begin.historyId < newest
        ? { atMs: begin.atMs, setUpAtMs: begin.atMs - MARGIN_MS, historyId: begin.historyId, handedOver: [] }
        : { atMs: nowMs, setUpAtMs: nowMs, historyId: newest, handedOver: [] }
    await saveCursor(keyValue, address, cursor)
    return cursor
  }

  #policyFor(ownAddress: string): MailPolicy {
    const allow = this.#config.allowed_senders
    return {
      ownAddress,
      requiresDmarc: !allow.includes('*'),
      isAllowed: (address) => isAllowed(allow, address, normaliseAddress, coversAddress),
    }
  }

  async #sleepUntilNotified(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#isNotified) return
    this.#sleep = new AbortController()
    using scope = signalScope([signal, this.#sleep.signal])
    await this.#host.clock.sleep(ms, scope.signal)
    this.#sleep = undefined
  }
}
