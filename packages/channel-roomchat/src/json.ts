/** Looks into JSON of any shape: what is missing or of another kind is empty, and nothing throws. */
export type Members = Readonly<Record<string, unknown>>

const NONE: Members = Object.freeze({})

export const members = (value: unknown): Members => (typeof value === 'object' && value !== null ? (value as Members) : NONE)

export const text = (value: unknown): string => (typeof value === 'string' ? value : '')

/** An id, which is a text or a number by the age of the server; empty if it is neither. */
export const idText = (value: unknown): string => (Number.isSafeInteger(value) ? String(value) : text(value).trim())

export function parsedOrUndefined(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}
