/** Shows in each room up to which message the bot has stored it (client-server API, "Receipts"). */
import { errorText, type Logger } from '@sluice/sdk'
import type { MatrixApi } from './api.ts'

export class Receipts {
  readonly #api: MatrixApi
  readonly #log: Logger
  /** The newest message of each room without a receipt. */
  #unsent = new Map<string, string>()
  #sending: Promise<void> | undefined

  constructor(api: MatrixApi, log: Logger) {
    this.#api = api
    this.#log = log
  }

  /** Notes a message, whose receipt `send` sends once it is durable. */
  note(room: string, event: string): void {
    this.#unsent.set(room, event)
  }

  /** Sends receipts in the background. A failure is only logged: a later receipt covers earlier messages. */
  send(signal: AbortSignal): void {
    this.#sending ??= this.#run(signal).finally(() => {
      this.#sending = undefined
    })
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (this.#unsent.size > 0 && !signal.aborted) {
      const unsent = this.#unsent
      this.#unsent = new Map()
      for (const [room, event] of unsent) {
        try {
          await this.#api.client('POST', ['rooms', room, 'receipt', 'm.read', event], { body: {}, signal })
        } catch (error) {
          if (!signal.aborted) this.#log.debug('receipt not sent', { channel: 'fedchat', reason: errorText(error) })
        }
      }
    }
  }
}
