import { text } from '@sluice/kit/foreign-json'

/** An id, which is a text or a number by the age of the server; empty if it is neither. */
export const idText = (value: unknown): string => (Number.isSafeInteger(value) ? String(value) : text(value).trim())
