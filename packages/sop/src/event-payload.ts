/** The payload of one event, read as JSON at most once however many conditions look at it. */
import { parsedOrUndefined } from '@sluice/kit/foreign-json'

export class EventPayload {
  readonly text: string
  #json: { readonly value: unknown } | undefined

  constructor(text: string | null) {
    this.text = text ?? ''
  }

  get isEmpty(): boolean {
    return this.text === ''
  }

  /** Undefined if it is no JSON. */
  get json(): unknown {
    this.#json ??= { value: parsedOrUndefined(this.text) }
    return this.#json.value
  }
}
