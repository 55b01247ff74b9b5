/**
 * Receives messages as server-sent events. signal-cli acknowledges a message to the servers of Signal when it has written it to this
 * connection. It repeats the last events to the next connection, unless it is older: then only a message that is kept here until it is
 * stored is not lost. Nothing further is read meanwhile.
 */
import { storePatiently, urlUnder } from '@sluice/kit'
import { parsedOrUndefined } from '@sluice/kit/foreign-json'
import { AppError, type Deliver, errorText, type Host, type ListenContext } from '@sluice/sdk'
import type { EventCursor } from './event-cursor.ts'
import { type ParseOptions, parse } from './parse.ts'

/** signal-cli writes a comment every 15 s. */
const SILENT_MS_MAX = 60_000
const CONNECT_MS_MAX = 30_000
/** An event with a large quoted message; attachments are not in it. */
const EVENT_CHARS_MAX = 4 * 1024 * 1024

/** An event, with its id if this version of signal-cli gives one. */
interface Received {
  readonly id: string | undefined
  readonly data: string
}

export class Connection {
  readonly #host: Host
  readonly #url: string
  readonly #options: ParseOptions
  readonly #cursor: EventCursor

  constructor(host: Host, url: string, options: ParseOptions, cursor: EventCursor) {
    this.#host = host
    this.#url = urlUnder(url, `/api/v1/events?${new URLSearchParams({ account: options.account })}`)
    this.#options = options
    this.#cursor = cursor
  }

  /** See `Channel.listen`. */
  async listen(deliver: Deliver, context: ListenContext): Promise<void> {
    const { signal, report } = context
    const over = new AbortController()
    const stop = (): void => over.abort(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
    try {
      const body = await this.#open(over)
      report.connected()
      const gap = await this.#cursor.connected()
      if (gap) report.gap(gap)
      await this.#read(body, over, deliver, context)
    } catch (error) {
      if (signal.aborted) return this.#cursor.left()
      throw over.signal.aborted && over.signal.reason instanceof AppError ? over.signal.reason : unavailable(error)
    } finally {
      signal.removeEventListener('abort', stop)
      over.abort()
    }
  }

  async #open(over: AbortController): Promise<ReadableStream<Uint8Array>> {
    const silent = this.#watch(over, CONNECT_MS_MAX)
    try {
      const { lastId } = this.#cursor
      const headers = { accept: 'text/event-stream', ...(lastId !== undefined && { 'last-event-id': lastId }) }
      const response = await this.#host.fetch(this.#url, { headers, redirect: 'manual', signal: over.signal })
      const { status, body } = response
      // Only the operator can help: signal-cli answers 400 when it has no such account.
      if (status === 400) throw new AppError('forbidden', `signal-cli has no account ${this.#options.account}`)
      if (status === 401 || status === 403) throw new AppError('forbidden', `signal-cli answered ${status}`)
      if (status !== 200 || !body) throw new AppError('unavailable', `signal-cli answered ${status}`)
      return body
    } finally {
      silent.abort()
    }
  }

  async #read(body: ReadableStream<Uint8Array>, over: AbortController, deliver: Deliver, context: ListenContext): Promise<void> {
    const { createParser } = await import('eventsource-parser')
    const events: Received[] = []
    const parser = createParser({ onEvent: ({ event, id, data }) => void (event === 'receive' && events.push({ id, data })) })
    const decoder = new TextDecoder()
    let chars = 0
    let silent = this.#watch(over, SILENT_MS_MAX)
    try {
      for await (const chunk of body) {
        silent.abort()
        this.#cursor.heard(this.#host.clock.nowMs())
        const before = events.length
        const words = decoder.decode(chunk, { stream: true })
        parser.feed(words)
        chars = events.length > before ? 0 : chars + words.length
        if (chars > EVENT_CHARS_MAX) throw new AppError('upstream', 'signal-cli sent an event that is too large')
        for (const event of events.splice(0)) await this.#take(event, deliver, context)
        silent = this.#watch(over, SILENT_MS_MAX)
      }
      throw new AppError('unavailable', 'signal-cli ended the connection')
    } finally {
      silent.abort()
    }
  }

  async #take({ id, data }: Received, deliver: Deliver, { signal, report }: ListenContext): Promise<void> {
    for (const inbound of parse(parsedOrUndefined(data), this.#options)) {
      report.event()
      if (!(await storePatiently(this.#host, { channel: 'signal', inbound, deliver, signal }))) return
    }
    this.#cursor.took(id, this.#host.clock.nowMs())
  }

  /** Ends the connection unless the watch is aborted in time. */
  #watch(over: AbortController, ms: number): AbortController {
    const watch = new AbortController()
    const silence = new AppError('unavailable', `signal-cli was silent for ${ms / 1000} s`)
    void this.#host.clock.sleep(ms, watch.signal).then(() => {
      if (!watch.signal.aborted) over.abort(silence)
    })
    return watch
  }
}

const unavailable = (error: unknown): AppError =>
  error instanceof AppError ? error : new AppError('unavailable', `signal-cli cannot be reached: ${errorText(error)}`, { cause: error })
