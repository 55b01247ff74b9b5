/**
 * The questions of a server to the person behind a call (elicitation). A person can only approve: a question is put to them if its form
 * can be filled in without them, and they see the values that are sent.
 */

/** Asks a person; resolves to who approved, or undefined. */
type Ask = (about: Readonly<Record<string, unknown>>) => Promise<string | undefined>

type Value = string | number | boolean | string[]
export type Answer = { readonly action: 'accept'; readonly content: Record<string, Value> } | { readonly action: 'decline' }

const DECLINED: Answer = { action: 'decline' }
const MESSAGE_CHARS_MAX = 2000
const FIELDS_MAX = 50

export class Questions {
  readonly #calls = new Set<Ask>()
  #isAsking = false

  /** Begins a call whose person may be asked. Returns a function that ends it. */
  begin(ask: Ask): () => void {
    // Each call needs an entry of its own.
    const own: Ask = (about) => ask(about)
    this.#calls.add(own)
    return () => void this.#calls.delete(own)
  }

  /**
   * The protocol does not say which call a question belongs to, so it is declined unless exactly one call runs. So is a second question
   * while a person thinks about the first.
   */
  async answer(params: object): Promise<Answer> {
    const { message, requestedSchema, mode } = params as { message?: unknown; requestedSchema?: unknown; mode?: unknown }
    const [ask] = this.#calls
    const content = mode === undefined || mode === 'form' ? presets(requestedSchema) : undefined
    if (!ask || this.#calls.size !== 1 || this.#isAsking || !content || typeof message !== 'string') return DECLINED
    const question = message.slice(0, MESSAGE_CHARS_MAX).toWellFormed()
    this.#isAsking = true
    try {
      const by = await ask({ question, answer: content })
      return by === undefined ? DECLINED : { action: 'accept', content }
    } finally {
      this.#isAsking = false
    }
  }
}

/** Returns the preset value of each field; undefined if a required field has none. */
function presets(schema: unknown): Record<string, Value> | undefined {
  const { properties = {}, required = [] } = (schema ?? {}) as { properties?: Record<string, { default?: unknown }>; required?: unknown }
  const fields = Object.entries(properties)
  if (fields.length > FIELDS_MAX) return undefined
  const given = fields.flatMap(([name, field]): [string, Value][] => (isValue(field?.default) ? [[name, field.default]] : []))
  const names = given.map(([name]) => name)
  const isComplete = !Array.isArray(required) || required.every((name) => names.includes(name))
  return isComplete ? Object.fromEntries(given) : undefined
}

const isValue = (value: unknown): value is Value =>
  ['string', 'number', 'boolean'].includes(typeof value) || (Array.isArray(value) && value.every((one) => typeof one === 'string'))
