/** The session with the gateway and the number of the last event that is durable, kept across restarts, so that QQ repeats what was missed. */
import type { Presence } from '@sluice/kit'
import { members, text } from '@sluice/kit/foreign-json'
import type { KeyValue, ListenCursors } from '@sluice/sdk'

const KEY = 'session'

export interface SessionState {
  readonly id: string
  /** The number of the last event that is durable. */
  readonly seq: number
}

/** See `ListenCursors`. */
export class Session implements ListenCursors {
  readonly presence: Presence
  readonly #keyValue: KeyValue
  readonly #appId: string
  #state: SessionState | undefined
  #isDirty = false

  constructor(keyValue: KeyValue, appId: string, presence: Presence) {
    this.#keyValue = keyValue
    this.#appId = appId
    this.presence = presence
  }

  /** The session to resume; undefined without one. */
  get state(): SessionState | undefined {
    return this.#state
  }

  begin(id: string, seq: number): void {
    this.#state = { id, seq }
    this.#isDirty = true
    // A session that a crash made unknown could not be resumed after it. The runner reports a failed write.
    void this.flush().catch(() => undefined)
  }

  /** Records that every event of the session up to this one is durable. */
  advance(id: string, seq: number): void {
    if (this.#state?.id !== id || !(seq > this.#state.seq)) return
    this.#state = { id, seq }
    this.#isDirty = true
  }

  end(): void {
    this.#state = undefined
    this.#isDirty = true
  }

  async load(): Promise<void> {
    const { app, id, seq } = members(await this.#keyValue.get(KEY))
    if (app === this.#appId && text(id) !== '' && Number.isSafeInteger(seq)) this.#state ??= { id: text(id), seq: Number(seq) }
    await this.presence.load()
  }

  async flush(): Promise<void> {
    await this.presence.flush()
    if (!this.#isDirty) return
    this.#isDirty = false
    await this.#keyValue.set(KEY, { app: this.#appId, ...(this.#state ?? { id: '', seq: 0 }) }).catch((error: unknown) => {
      this.#isDirty = true
      throw error
    })
  }
}
