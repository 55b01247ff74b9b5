/** Short hashes of texts of any length: the keys of rows and of idempotency claims. */
import { hash } from 'node:crypto'
import { type IdempotencyKey, sha256Hex } from '@sluice/sdk'

const ROW_KEY_BYTES = 16

/** Joins texts into one that is unique for them, whatever characters they contain. */
export const joinTexts = (...texts: readonly string[]): string => JSON.stringify(texts)

/**
 * Returns half of a SHA-256 digest, which is enough and halves the index. The digest is made as text with one character for each byte,
 * which costs less than a buffer of its own or hex.
 */
export const rowKey = (text: string): Buffer => Buffer.from(hash('sha256', text, 'binary').slice(0, ROW_KEY_BYTES), 'latin1')

/** Different keys have different hashes: the length separates scope and key, and UTF-16 preserves invalid Unicode. */
export const hashKey = ({ scope, key }: IdempotencyKey): string => sha256Hex(Buffer.from(`${scope.length}:${scope}${key}`, 'utf16le'))
