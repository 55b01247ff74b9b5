/** Keeps the mailbox open, reads what is new, and waits for more. */
import type { Deliver, Host, ListenContext } from '@sluice/sdk'
import type { Credentials } from './credentials.ts'
import { Intake } from './intake.ts'
import { type OpenFolder, openFolder } from './mailbox.ts'
import { Progress } from './progress.ts'
import { readNew, startReading } from './read-mailbox.ts'
import type { Settings } from './settings.ts'

/** The time in which a connection says goodbye when the channel stops. */
const LEAVE_MS = 1000

export class Connection {
  readonly #host: Host
  readonly #settings: Settings
  readonly #credentials: Credentials
  readonly #intake: Intake

  constructor(host: Host, settings: Settings, credentials: Credentials) {
    this.#host = host
    this.#settings = settings
    this.#credentials = credentials
    this.#intake = new Intake(host, settings.policy, settings.mailsPerHour)
  }

  /** See `Channel.listen`. */
  async listen(deliver: Deliver, { signal, report }: ListenContext): Promise<void> {
    const { clock } = this.#host
    const over = new AbortController()
    const stop = (): void => void clock.sleep(LEAVE_MS, over.signal).then(() => over.abort())
    let opened: OpenFolder | undefined
    const onStop = (): void => (opened ? stop() : over.abort())
    signal.addEventListener('abort', onStop, { once: true })
    try {
      opened = await openFolder(this.#host, this.#settings, this.#credentials, over.signal)
      report.connected()
      await this.#read(opened, deliver, { signal, report })
      opened.imap.logOut()
    } catch (error) {
      if (!signal.aborted) throw error
    } finally {
      signal.removeEventListener('abort', onStop)
      if (!signal.aborted) over.abort()
    }
  }

  async #read(opened: OpenFolder, deliver: Deliver, { signal, report }: Pick<ListenContext, 'signal' | 'report'>): Promise<void> {
    const { idleMs } = this.#settings
    const reading = {
      host: this.#host,
      intake: this.#intake,
      progress: new Progress(this.#host.keyValue, this.#settings),
      signal,
      onGap: report.gap,
      async deliver(inbound: Parameters<Deliver>[0]) {
        await deliver(inbound)
        report.event()
      },
    }
    await startReading(opened, reading)
    while (!signal.aborted) {
      await readNew(opened, reading)
      await opened.imap.waitForChange(idleMs, signal)
    }
  }
}
