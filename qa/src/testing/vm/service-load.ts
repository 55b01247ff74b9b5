/** Posts messages to a daemon while it restarts, and records every answer and every failure. */
import { request } from 'node:http'

const SENDERS = 4
const OK = 200
const UNAVAILABLE = 503

/** How one request ended: its status, or the code of the error. */
type Outcome = number | string

interface Summary {
  readonly answered: number
  /** The time between the first and the last 503. */
  readonly unavailableMs: number
  readonly unavailable: number
  /** Connections that were refused. */
  readonly refused: number
  /** Connections that ended without an answer; the message is sent again with the same key. */
  readonly broken: number
  /** The longest wait for an answer. */
  readonly longestMs: number
}

/** Sends from the start to `stop`, several messages at a time, each on a connection of its own and until it is answered. */
export class Load {
  readonly session: string
  /** The texts of the messages that were answered with 200. */
  readonly answered: string[] = []
  readonly #url: string
  readonly #outcomes: { readonly outcome: Outcome; readonly atMs: number; readonly tookMs: number }[] = []
  readonly #senders: Promise<void>[]
  #stopped = false
  #count = 0

  constructor(url: string, session: string, signal: AbortSignal) {
    this.#url = url
    this.session = session
    signal.addEventListener('abort', () => {
      this.#stopped = true
    })
    this.#senders = Array.from({ length: SENDERS }, () => this.#send())
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all(this.#senders)
  }

  summary(): Summary {
    const of = (outcome: Outcome) => this.#outcomes.filter((each) => each.outcome === outcome)
    const unavailable = of(UNAVAILABLE).map(({ atMs }) => atMs)
    const refused = of('ECONNREFUSED').length
    return {
      answered: this.answered.length,
      unavailableMs: unavailable.length === 0 ? 0 : Math.round(Math.max(...unavailable) - Math.min(...unavailable)),
      unavailable: unavailable.length,
      refused,
      broken: this.#outcomes.filter(({ outcome }) => typeof outcome === 'string').length - refused,
      longestMs: Math.round(Math.max(0, ...this.#outcomes.map(({ tookMs }) => tookMs))),
    }
  }

  async #send(): Promise<void> {
    while (!this.#stopped) {
      const text = `message-${this.#count++}`
      for (;;) {
        const startedMs = performance.now()
        const outcome = await post(`${this.#url}/webhook`, text, this.session)
        const atMs = performance.now()
        this.#outcomes.push({ outcome, atMs, tookMs: atMs - startedMs })
        if (outcome === OK) {
          this.answered.push(text)
          break
        }
        if (typeof outcome === 'number' && outcome !== UNAVAILABLE) throw new Error(`a message was answered with ${outcome}`)
        if (this.#stopped) return
      }
    }
  }
}

const post = (url: string, message: string, session: string): Promise<Outcome> =>
  new Promise((resolve) => {
    const headers = {
      'content-type': 'application/json',
      'x-session-id': session,
      'x-idempotency-key': `${session}-${message}`,
      connection: 'close',
    }
    const sent = request(url, { method: 'POST', headers, agent: false }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0))
      response.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error'))
    })
    sent.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error'))
    sent.end(JSON.stringify({ message }))
  })

/** The texts of the users' messages in a session, in order. */
export async function keptIn(url: string, session: string): Promise<readonly string[]> {
  const response = await fetch(`${url}/api/sessions/${session}/export`)
  const lines = (await response.text()).trim().split('\n')
  return lines
    .map((line) => JSON.parse(line) as { readonly role: string; readonly content: string })
    .flatMap(({ role, content }) => (role === 'user' ? content : []))
}
