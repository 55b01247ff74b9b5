/** Looks into JSON of any shape: what is missing or of another kind is empty, and nothing throws. */
export type Members = Readonly<Record<string, unknown>>

const NONE: Members = Object.freeze({})

export const members = (value: unknown): Members => (typeof value === 'object' && value !== null ? (value as Members) : NONE)

export const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

export const text = (value: unknown): string => (typeof value === 'string' ? value : '')
