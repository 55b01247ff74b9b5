/**
 * The changes that a server announces on one connection. Changed tools are listed again, at a pace that the server cannot exceed. The
 * client of the SDK keeps lists of resources and prompts for as long as the server allows, and drops them when it announces a change.
 */
import { type Client, ProtocolError, type SubscriptionFilter } from '@modelcontextprotocol/client'
import { RetryPace } from '@sluice/kit'
import { type Clock, errorText, type Logger } from '@sluice/sdk'
import { Pace } from './pace.ts'

export interface AnnouncementsOptions {
  readonly client: Client
  readonly clock: Clock
  readonly log: Logger
  /** The name of the server in the configuration. */
  readonly server: string
  /** The time for the server's consent to send announcements. */
  readonly timeoutMs: number
  /** Aborts when the connection has ended. */
  readonly signal: AbortSignal
  /** Lists the tools again. */
  list(): Promise<void>
}

/** The time between an announcement and the new list, so that several changes in a row make one list. */
const SETTLE_MS = 100
const LISTS_PER_MINUTE = 10
const MINUTE_MS = 60_000
/** A subscription that lasted this long ended for a new reason. */
const LASTING_MS = 60_000
/** After this many short subscriptions in a row, the server is left alone. */
const FAILURES_MAX = 20

export class Announcements {
  readonly #options: AnnouncementsOptions
  readonly #pace: Pace
  #isStarted = false
  #isPending = false
  #isListing = false

  /** Call it before the client connects. */
  constructor(options: AnnouncementsOptions) {
    this.#options = options
    this.#pace = new Pace({ clock: options.clock, unitsMax: LISTS_PER_MINUTE, periodMs: MINUTE_MS })
    options.client.setNotificationHandler('notifications/tools/list_changed', () => this.#changed())
  }

  /** Call it before the first request for the list of tools. Announcements before it need no other list. */
  start(): void {
    this.#isStarted = true
    void this.#subscribe()
  }

  #changed(): void {
    if (!this.#isStarted) return
    this.#isPending = true
    void this.#listAgain()
  }

  async #listAgain(): Promise<void> {
    if (this.#isListing) return
    this.#isListing = true
    const { clock, signal, log, server, list } = this.#options
    while (this.#isPending && !signal.aborted) {
      await clock.sleep(Math.max(SETTLE_MS, this.#pace.delayMs()), signal)
      if (signal.aborted) break
      this.#isPending = false
      await list().catch((error: unknown) => log.warn('MCP tools could not be listed', { server, reason: errorText(error) }))
    }
    this.#isListing = false
  }

  /** A server of revision 2026-07-28 or later sends announcements only to a client that asks for them. */
  async #subscribe(): Promise<void> {
    const { client, clock, signal, log, server, timeoutMs } = this.#options
    const filter = announced(client)
    if (client.getProtocolEra() !== 'modern' || Object.keys(filter).length === 0) return
    const retries = new RetryPace({ clock })
    while (!signal.aborted && retries.failures < FAILURES_MAX) {
      const sinceMs = clock.monotonicMs()
      try {
        const subscription = await client.listen(filter, { timeout: timeoutMs, signal })
        // A change before the subscription was not announced.
        if (retries.failures > 0) this.#changed()
        if ((await subscription.closed) === 'local') return
      } catch (error) {
        log.debug('MCP server announces no changes', { server, reason: errorText(error) })
        if (error instanceof ProtocolError) return
      }
      if (clock.monotonicMs() - sinceMs >= LASTING_MS) retries.reset()
      await clock.sleep(retries.failed(), signal)
    }
  }
}

/** The lists whose changes the server announces. */
function announced(client: Client): SubscriptionFilter {
  const { tools, resources, prompts } = client.getServerCapabilities() ?? {}
  return {
    ...(tools?.listChanged && { toolsListChanged: true }),
    ...(resources?.listChanged && { resourcesListChanged: true }),
    ...(prompts?.listChanged && { promptsListChanged: true }),
  }
}
