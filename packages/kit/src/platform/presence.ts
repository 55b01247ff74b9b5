/** Remembers until when a channel was connected, so that it can report the time of which the platform kept no messages. */
import type { Clock, KeyValue, ListenCursors, ListenReport } from '@sluice/sdk'

const KEY = 'present-until'
const STORE_EVERY_MS = 60_000

export class Presence implements ListenCursors {
  readonly #keyValue: KeyValue
  readonly #clock: Clock
  readonly #why: string
  #open = 0
  /** The time up to which the channel was connected; undefined before the first connection. */
  #untilMs: number | undefined
  #storedMs = 0

  /** `why` is the reason in the reported gaps. */
  constructor({ keyValue, clock }: { readonly keyValue: KeyValue; readonly clock: Clock }, why: string) {
    this.#keyValue = keyValue
    this.#clock = clock
    this.#why = why
  }

  /** Records a connection that the platform uses. Reports a gap if there was none for some time, and `hasMissed` is not false. */
  joined(report: Pick<ListenReport, 'gap'>, hasMissed = true): void {
    this.#open += 1
    if (this.#open === 1 && hasMissed && this.#untilMs !== undefined) report.gap({ sinceMs: this.#untilMs, why: this.#why })
    this.#untilMs = this.#clock.nowMs()
  }

  /** Records the end of a connection. */
  left(): void {
    this.#open -= 1
    if (this.#open > 0) return
    this.#untilMs = this.#clock.nowMs()
    // The time of the end is more exact than that of the last minute.
    this.#storedMs = 0
  }

  /** See `ListenCursors`. The time of this run wins over the stored one. */
  async load(): Promise<void> {
    const stored = await this.#keyValue.get(KEY)
    if (typeof stored === 'number' && Number.isSafeInteger(stored)) this.#untilMs ??= stored
  }

  /** See `ListenCursors`. Writes at most once a minute while connected. */
  async flush(): Promise<void> {
    if (this.#open > 0) this.#untilMs = this.#clock.nowMs()
    if (this.#untilMs === undefined || Math.abs(this.#untilMs - this.#storedMs) < STORE_EVERY_MS) return
    const before = this.#storedMs
    this.#storedMs = this.#untilMs
    await this.#keyValue.set(KEY, this.#untilMs).catch((error: unknown) => {
      this.#storedMs = before
      throw error
    })
  }
}
